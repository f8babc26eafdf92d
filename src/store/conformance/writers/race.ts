import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { isHeedError, type HeedErrorCode } from '../../../base/errors.ts'
import { withChance, type Chance } from '../fixture.ts'

/** A database and a second connection to it. */
interface Connections<Store> {
  store(): Promise<Store>
  another?(store: Store): Promise<Store>
}

type Calls<Results extends unknown[]> = { [Index in keyof Results]: () => Promise<Results[Index]> }

interface Round<Store> {
  /** From 0. Cases name a thread of its own by it. */
  nth: number
  /** The two connections. Which of them is `one` changes from round to round. */
  one: Store
  two: Store
  /**
   * Starts the calls in random order without awaiting one before the next, and resolves when all are settled. Rejects if one did.
   */
  together<Results extends unknown[]>(...calls: Calls<Results>): Promise<Results>
}

const roundsOfCase = 8
/** The maximum of event loop turns between the starts of two calls, in every second pair of rounds; none in the others. */
const longestLead = 3

/**
 * Repeats a case on two connections. The store and the machine decide how the calls interleave: the assertions of a case hold in every
 * order. A failure names the round, and the seed of the order in which the calls were started.
 */
export function rounds<Store>(harness: Connections<Store>, round: (round: Round<Store>) => Promise<void>): Promise<void> {
  return withChance(async (chance) => {
    assert.ok(harness.another, 'not applicable: the harness has no `another`, so its database has one writer')
    const first = await harness.store()
    const second = await harness.another(first)
    for (let nth = 0; nth < roundsOfCase; nth += 1) {
      const [one, two] = nth % 2 === 0 ? [first, second] : [second, first]
      try {
        const lead = nth % 4 < 2 ? 0 : longestLead
        await round({ nth, one, two, together: (...calls) => together(chance, lead, calls) })
      } catch (error) {
        throw new Error(`round ${nth}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
      }
    }
  })
}

async function together<Results extends unknown[]>(chance: Chance, longest: number, calls: Calls<Results>): Promise<Results> {
  const started: Array<Promise<unknown>> = []
  for (const index of chance.shuffle(calls.map((_, at) => at))) {
    const call = calls[index]?.() ?? Promise.resolve()
    // It may be rejected before the others have started.
    call.catch(() => {})
    started[index] = call
    for (let lead = chance.below(longest + 1); lead > 0; lead -= 1) await turn()
  }
  await Promise.allSettled(started)
  return Promise.all(started) as Promise<Results>
}

/**
 * The answer, or the error code that the contract names for a call that came second. Any other failure is thrown, a conflict of the
 * database above all.
 */
export async function answerOr<Result, Code extends HeedErrorCode>(call: Promise<Result>, ...codes: Code[]): Promise<Result | Code> {
  try {
    return await call
  } catch (error) {
    const code = codes.find((expected) => isHeedError(error) && error.code === expected)
    if (code === undefined) throw error
    return code
  }
}

/** Asserts that exactly one of these is true. */
export function exactlyOne(answers: ReadonlyArray<boolean | undefined>): void {
  assert.equal(answers.filter(Boolean).length, 1, `exactly one of ${String(answers)}`)
}

/** `length` integers from `from` on. */
export function countFrom(from: number, length: number): number[] {
  return Array.from({ length }, (_, index) => from + index)
}

export function ascending(numbers: readonly number[]): number[] {
  return numbers.toSorted((a, b) => a - b)
}
