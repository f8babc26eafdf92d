import type { Clock } from '../../../base/clock.ts'
import type { ExpectedThread } from '../recent.ts'
import type { SqlStatement } from './known-answers.ts'
import {
  Replay, SpeculationFailed, type Execute, type Pass, type Replayed, type ReplayDriver, type ReplayOptions,
} from './replay.ts'
import type { Statements } from '../statements.ts'
import type { SqlTables } from '../tables.ts'

/** What became of one of several works: it is committed, or it failed without a write. */
export type PartOutcome<Result> = { replayed: Replayed<Result> } | { error: unknown }

export interface TogetherOptions<Result> extends Omit<ReplayOptions<Result>, 'done' | 'driver' | 'expected'> {
  /** It locks nothing: the locks of all works are taken at first. Absent for works that only read. */
  driver: ReplayDriver | undefined
  /** The statements that take the locks of all works. */
  locks: readonly SqlStatement[]
  /** What each of the works expects to find; undefined where one of them expects nothing. */
  expected?: readonly ExpectedThread[] | undefined
  /** Called with what becomes of all works before the last statements are sent with the commit. */
  done(outcomes: Array<PartOutcome<Result>>): void
}

interface Part<Result> {
  readonly number: number
  readonly replay: Replay<Result>
  /** What it has asked for and not sent yet. */
  pass: Pass<Result> | undefined
  outcome: PartOutcome<Result> | undefined
  wrote: boolean
}

/**
 * Runs several works as one transaction. They lock different records, so each could as well run beside the others: none has to see what
 * another one writes, and what they ask for is sent together. One that fails before it has written fails alone. Throws `SpeculationFailed`
 * where they can't share a transaction.
 */
export async function replayTogether<Result>(
  execute: Execute, clock: Clock, works: ReadonlyArray<(tables: SqlTables, statements: Statements) => Result>,
  options: TogetherOptions<Result>,
): Promise<Array<PartOutcome<Result>>> {
  const parts = works.map((work, number): Part<Result> => ({
    number, pass: undefined, outcome: undefined, wrote: false,
    replay: new Replay(clock, work, { ...options, expected: options.expected?.[number], done: () => {} }),
  }))
  const outcomes = () => parts.map(({ outcome }) => outcome ?? { error: new Error('a work of the transaction is not done') })
  let locks = options.locks.map(({ sql, args }) => ({ kind: 'lock' as const, sql, args }))
  for (;;) {
    const open = parts.flatMap((part) => (part.outcome ? [] : { part, pass: (part.pass ??= part.replay.next()) }))
    if (open.length === 0) return outcomes()
    const last = open.every(({ pass }) => pass.last)
    // One that only has its last statements left waits for the others.
    const sending = open.filter(({ pass }) => last || !pass.last)
    for (const { part, pass } of sending) noteWrites(part, pass)
    const statements = [...locks, ...sending.flatMap(({ part, pass }) => pass.sent.map((one) => ({ ...one, part: part.number })))]
    const ahead = sending.flatMap(({ pass }) => pass.ahead)
    if (last) {
      for (const { part, pass } of open) part.outcome = { replayed: pass.outcome() }
      options.done(outcomes())
    }
    const given = statements.length + ahead.length === 0 ? { answers: [] } : await execute({ statements, ahead, last })
    if (last) return outcomes()
    const answers = given.answers.slice(locks.length)
    const aheadAnswers = given.ahead ?? []
    locks = []
    for (const { part, pass } of sending) {
      part.pass = undefined
      const own = { answers: answers.splice(0, pass.sent.length), ahead: aheadAnswers.splice(0, pass.ahead.length) }
      if (part.replay.answered(pass, own)) part.outcome = outcomeOf(pass)
    }
  }
}

/** One that fails after a write would have to take it back, and the others with it. */
function noteWrites(part: { wrote: boolean }, { sent, failed, stopped }: Pass<unknown>): void {
  part.wrote ||= sent.some(({ kind }) => kind !== 'read' && kind !== 'lock')
  if (part.wrote && failed && !stopped) throw new SpeculationFailed('a work of several failed after a write')
}

function outcomeOf<Result>(pass: Pass<Result>): PartOutcome<Result> {
  try {
    return { replayed: pass.outcome() }
  } catch (error) {
    return { error }
  }
}
