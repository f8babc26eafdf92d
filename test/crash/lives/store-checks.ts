import { groupBy, notes, type Violation } from '../checks/evidence.ts'
import { slack, type Lived, type LivesCheck } from './evidence.ts'
import { copySeparator, present } from './lives.ts'

/** The epochs of a life are above those of all lives of its thread before. */
export const epochsGrow: LivesCheck = ({ lives }) => [...groupBy(lives, ({ thread }) => thread)].flatMap(([thread, all]) => all.slice(1).flatMap((life, index): Violation[] => {
  const before = Math.max(...all.slice(0, index + 1).map(({ last }) => last))
  return life.first > before ? [] : [{ promise: 'R11.1', what: `a life of ${thread} begins at epoch ${life.first}, and one before it had ${before}` }]
}))

/** Nothing is stored in a thread that is gone. */
export const nothingAfterTheEnd: LivesCheck = ({ lives }) => lives.flatMap(({ thread, first, late }): Violation[] => {
  const [event] = late
  return event ? [{ promise: 'R11.2', what: `the life of ${thread} from epoch ${first} on had ended, and a ${event.what} (${event.id}) was stored in it` }] : []
})

/** A thread has one run at a time, by its rows. */
export const oneActiveRun: LivesCheck = ({ lives }) => lives.flatMap(({ thread, runs, restored, born }) => {
  const changes = [...runs].flatMap(([id, states]) => states.map((state) => ({ id, ...state }))).toSorted((a, b) => a.at - b.at)
  const active = new Set<string>()
  return changes.flatMap(({ id, status, at }): Violation[] => {
    // A restore inserts them in the order of their keys.
    if (status !== 'running' && status !== 'suspended') active.delete(id)
    else active.add(id)
    return active.size > 1 && !(restored && at === born) ? [{ promise: 'R1.3', what: `${thread} has the runs ${[...active].join(' and ')} at once` }] : []
  })
})

/** The rows of a life are of runs that began in it. */
export const ownRuns: LivesCheck = ({ lives }) => lives.flatMap(({ thread, first, runs, rows }) => (thread.includes(copySeparator) ? [] : [...rows.values()]).flatMap(({ id, runId }): Violation[] => {
  return runId === null || runs.has(runId) ? [] : [{ promise: 'R11.2', what: `the life of ${thread} from epoch ${first} on has a row (${id}) of the run ${runId}, which is not of it` }]
}))

/** What was confirmed was stored in one life; a restore may bring it back. */
export const onceEach: LivesCheck = (evidence) => {
  const sent = new Map(notes(evidence, 'send').map(({ id, at }) => [id, at]))
  return notes(evidence, 'stored').flatMap(({ thread, id, at }): Violation[] => storedOnce(evidence, { thread, id, sent: sent.get(id) ?? 0, at }))
}

function storedOnce(evidence: Lived, { thread, id, sent, at }: { thread: string; id: string; sent: number; at: number }): Violation[] {
  const stored = evidence.lives.filter((life) => life.thread === thread && life.mail.has(id))
  const first = stored.filter(({ restored, key }, index) => !restored || !stored.slice(0, index).some((before) => before.key === key))
  // Accepted and deleted in one transaction: its row was never inserted.
  const gone = evidence.lives.some((life) => life.thread === thread && life.died > sent - slack && life.died < at + slack)
  return first.length === 1 || (stored.length === 0 && gone) ? [] : [{ promise: 'A1', what: `${thread}|${id} was confirmed and was stored in ${first.length} lives (and ${stored.length} with those that were restored)` }]
}

/** A copy has what its source had at one moment, and nothing that happens to its source changes it. */
export const clonesWhole: LivesCheck = ({ lives }) => lives.flatMap((life): Violation[] => {
  const { thread, copy } = life
  if (!copy) return []
  const say = (what: string): Violation[] => [{ promise: 'M1.4', what: `the copy ${thread} ${what}` }]
  const [began, source] = [copy.began.toSorted(), copy.source]
  if (!source) return say('has no source')
  if (began.length !== source.length || began.some((content, index) => content !== source[index])) return say(`has ${began.length} rows, and its source had ${source.length} then`)
  const now = present(life)
  return now.length === began.length && now.every((content, index) => content === began[index]) ? [] : say('was changed')
})

/** The store had each call before its tool began, in whichever life. */
export const effectsKnown: LivesCheck = ({ effects, lives }) => {
  const known = new Set(lives.flatMap(({ thread, rows }) => [...rows.values()].flatMap(({ runId, calls }) => calls.map((call) => `${thread} ${runId} ${call}`))))
  return effects.filter(({ phase, thread, run, call }) => phase === 'begun' && !known.has(`${thread} ${run} ${call}`)).map(({ thread, call, tool, by }) => ({
    promise: 'R5.5', what: `${tool} began in ${by} for the call ${call} of ${thread}, which was never stored`,
  }))
}
