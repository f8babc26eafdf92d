import type { LedgerThread } from '../ledger.ts'
import { groupBy, notes, type Check, type Evidence, type Violation } from './evidence.ts'

type Mail = LedgerThread['mail'][number]

/** The outcome that a sender received is what happened, by the rows that are left of it. */
export const trueOutcomes: Check = (evidence) => {
  const mail = mailOf(evidence.ledger.threads)
  return notes(evidence, 'outcome').flatMap(({ thread, id, by, action, runId, step, reason }): Violation[] => {
    const about = mail.get(`${thread}|${id}`)
    const lie = lieIn({ action, runId, step, reason }, about)
    return lie === undefined ? [] : [{ promise: 'A4.1', what: `${by} was told that ${thread}|${id} is ${action}${reason === undefined ? '' : ` (${reason})`}: ${lie}` }]
  })
}

/** What is true of a signal that entered a run: one that was accepted for this run was delivered, also where the run began with it. */
export function entered(route: string, step: number | undefined): 'woke' | 'delivered' {
  return step === 0 && route !== 'deliver' && route !== 'interrupt' ? 'woke' : 'delivered'
}

function lieIn({ action, runId, step, reason }: { action: string; runId?: string | undefined; step?: number | undefined; reason?: string | undefined }, mail: Mail | undefined): string | undefined {
  switch (action) {
    case 'woke':
    case 'delivered':
      if (mail?.state !== 'consumed' || mail.route === 'persist') return `it is ${mail?.state ?? 'not stored'} (${mail?.route})`
      if (mail.runId !== runId || mail.step !== step) return `it entered the run ${mail.runId} at step ${mail.step}, not ${runId} at ${step}`
      return action === entered(mail.route, step) ? undefined : `it entered at step ${step} (${mail.route})`
    case 'persisted':
      return mail?.state === 'consumed' && mail.route === 'persist' ? undefined : `it is ${mail?.state ?? 'not stored'} (${mail?.route})`
    case 'queued':
      return mail ? undefined : 'it is not stored'
    case 'rejected':
      // The same id may have come by another send: whether this one left anything is for `trueRefusals`.
      return reason === undefined ? 'and nobody says why' : undefined
    default:
      // Nothing of this load asks for it.
      return mail ? `it is ${mail.state}` : 'nobody asked for that'
  }
}

/** Every send of a process that came to its own end was confirmed or refused, and has an outcome. */
export const allAnswered: Check = (evidence) => {
  const ended = new Set(notes(evidence, 'closed').map(({ by }) => by))
  const key = ({ by, thread, id }: { by: string; thread: string; id: string }) => `${by} ${thread}|${id}`
  const count = (found: Array<{ by: string; thread: string; id: string }>) => new Map([...groupBy(found, key)].map(([name, all]) => [name, all.length]))
  const settled = count(notes(evidence, 'stored', 'refused'))
  const told = count(notes(evidence, 'outcome'))
  return [...groupBy(notes(evidence, 'send').filter(({ by }) => ended.has(by)), key)].flatMap(([name, sends]): Violation[] => {
    const [confirmations, outcomes] = [settled.get(name) ?? 0, told.get(name) ?? 0]
    if (confirmations === sends.length && outcomes === sends.length) return []
    return [{ promise: 'A4.1', what: `${name} was sent ${sends.length} times, confirmed or refused ${confirmations} times, and told ${outcomes} outcomes` }]
  })
}

/** A send is refused only by a process that was asked to end, and then nothing of it is there. */
export const trueRefusals: Check = (evidence) => {
  const mail = mailOf(evidence.ledger.threads)
  const stopping = new Map(notes(evidence, 'stopping').map(({ by, at }) => [by, at]))
  const sends = groupBy(notes(evidence, 'send'), ({ thread, id }) => `${thread}|${id}`)
  return notes(evidence, 'refused').flatMap(({ thread, id, by, why, at }): Violation[] => {
    const key = `${thread}|${id}`
    if (why !== 'closed' || at < (stopping.get(by) ?? Infinity)) return [{ promise: 'A1.4', what: `${by} was refused ${key} with ${why}` }]
    return mail.has(key) && sends.get(key)?.length === 1 ? [{ promise: 'A1.4', what: `${by} was refused ${key}, and it is stored` }] : []
  })
}

/**
 * What a process may complain about: it was stopped beyond its lease, or had not a moment for so long. That the others hear of each other all
 * the same is for the checks of watching.
 */
const expected: readonly RegExp[] = [
  /^the host of a thread failed; the thread is claimed again .*The lease of (?:thread \S+ expired|(?:thread \S+ is not confirmed: The lease of )?this process could not be renewed)/,
  /^the bus does not answer; sweeps of the store find the work of other processes/,
]

const leftRuns = /^runs or titles did not end when they were aborted; the process closes without them (.*)$/

/**
 * The runs that `close()` left at its deadline while the store had not answered a commit of theirs, or while the process had no processor, as
 * process and thread. The deadline of five seconds is a fraction of one by the fast clock, which a loaded machine may exceed. A run that is
 * left although the store had answered and the process could work is a broken promise.
 */
export function leftByClose(evidence: Evidence): Set<string> {
  const writes = notes(evidence, 'written')
  const stalls = notes(evidence, 'stalled')
  const closing = new Map(notes(evidence, 'stopping').map(({ by, at }) => [by, at]))
  return new Set(notes(evidence, 'trouble').flatMap(({ by, what, at }) => {
    const threadIds = leftIn(what)
    const isStalled = stalls.some((stall) => stall.by === by && (closing.get(by) ?? Infinity) < stall.at && stall.at < at)
    const waits = (id: string) =>
      isStalled || writes.some((write) => write.by === by && write.thread === id && write.began < at && at < write.at)
    return threadIds.every(waits) ? threadIds.map((id) => `${by} ${id}`) : []
  }))
}

function leftIn(what: string): string[] {
  return (JSON.parse(leftRuns.exec(what)?.[1] ?? '{"threadIds":[]}') as { threadIds: string[] }).threadIds
}

/** A process reports what went wrong; only what a fault of the round explains may. */
export const noTrouble: Check = (evidence) => {
  const left = leftByClose(evidence)
  return notes(evidence, 'trouble').flatMap(({ by, what }): Violation[] => {
    const isExplained = expected.some((one) => one.test(what)) || leftIn(what).some((id) => left.has(`${by} ${id}`))
    return isExplained ? [] : [{ promise: 'harness', what: `${by} says: ${what}` }]
  })
}

function mailOf(threads: readonly LedgerThread[]): Map<string, Mail> {
  return new Map(threads.flatMap((thread) => thread.mail.map((mail) => [`${thread.id}|${mail.id}`, mail] as const)))
}
