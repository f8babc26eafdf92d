import { groupBy, notes, type Check, type Evidence, type Violation } from '../checks/evidence.ts'
import { allAnswered, trueOutcomes } from '../checks/outcomes.ts'
import { noLateWords, oneHolder, oneWriter, samePrompts } from '../checks/runs.ts'
import { answered, inOrder, nothingLost, nothingStuck, nothingTwice, shownOnce } from '../checks/signals.ts'
import { trueSnapshots } from '../checks/snapshots.ts'
import { callsSettled, effectsKnown, noEffectTwice, recordedFirst } from '../checks/tools.ts'
import { noGap, sameForAll } from '../checks/watching.ts'

/** What was done to the store, or to the process in a slot, and when. */
export interface FaultSpan {
  fault: string
  from: number
  to: number
  slot?: number
}

export interface FaultEvidence extends Evidence {
  spans: FaultSpan[]
}

type FaultCheck = (evidence: FaultEvidence) => Violation[]

/** Calls of the model with one prompt by one process: an attempt and those after failures, whose pauses double. */
const mostCalls = 8

/** A process that knows that its store has failed permanently stores no send, calls no model and starts no tool until the store is back. */
const failStop: FaultCheck = (evidence) => failures(evidence).flatMap(({ by, from, to }): Violation[] => {
  const meanwhile = ({ by: other, at }: { by: string; at: number }) => other === by && at > from && at < to
  const sent = new Set(notes(evidence, 'send').filter(meanwhile).map(({ thread, id }) => `${thread}|${id}`))
  const say = (what: string): Violation => ({ promise: 'A1.5', what: `${by} ${what} although its store was gone` })
  return [
    ...notes(evidence, 'accepted').filter((note) => meanwhile(note) && sent.has(`${note.thread}|${note.id}`)).map(({ thread, id }) => say(`stored ${thread}|${id}`)),
    ...notes(evidence, 'asked').filter(meanwhile).map(({ thread }) => say(`called the model for ${thread}`)),
    ...evidence.effects.filter((effect) => effect.phase === 'begun' && meanwhile(effect)).map(({ thread, call, tool }) => say(`ran ${tool} for ${thread} ${call}`)),
  ]
})

/** While a process knows that its store has failed permanently, it is not ready. */
const notReady: FaultCheck = (evidence) => failures(evidence).flatMap(({ by, from, to }) => {
  const wrong = notes(evidence, 'readiness').filter((note) => note.by === by && note.ready && note.began > from && note.at < to)
  return wrong.slice(0, 1).map(() => ({ promise: 'A1.5', what: `${by} was ready although its store was gone` }))
})

/** A permanent failure is logged once, until the store works again. */
const loggedOnce: FaultCheck = (evidence) => [...groupBy(notes(evidence, 'trouble'), ({ by }) => by)].flatMap(([by, all]): Violation[] => {
  const failing = all.flatMap(({ what }) => (what.startsWith('the storage failed') ? [true] : what.startsWith('the storage works again') ? [false] : []))
  return failing.some((failed, index) => failed && failing[index - 1] === true) ? [{ promise: 'A1.5', what: `${by} logged one failure of its store twice` }] : []
})

/** From when a process knew that the database is gone, by a send that it refused for that, until the database was back. */
function failures(evidence: FaultEvidence): Array<{ by: string; from: number; to: number }> {
  return evidence.spans.filter(({ fault }) => fault === 'away').flatMap(({ from, to }) => {
    const refused = notes(evidence, 'refused').filter(({ why, at }) => why === 'store_gone' && at > from && at < to)
    return [...groupBy(refused, ({ by }) => by)].map(([by, all]) => ({ by, from: Math.min(...all.map(({ at }) => at)), to }))
  })
}

/** A send is refused for a fault of the store or by a process that was asked to end, and once the faults are over, no more. */
const refusedForFaults: FaultCheck = (evidence) => {
  const stopping = new Map(notes(evidence, 'stopping').map(({ by, at }) => [by, at]))
  const calm = new Map(notes(evidence, 'calm').map(({ by, at }) => [by, at]))
  const faults = new Set(evidence.spans.map(({ fault }) => fault))
  return notes(evidence, 'refused').flatMap(({ thread, id, by, why, at }): Violation[] => {
    if (why === 'closed' && at > (stopping.get(by) ?? Infinity)) return []
    const meant = why === 'store_failed' || why === 'store_full' ? faults.size > 0 : why === 'store_gone' && faults.has('away')
    if (meant && at < (calm.get(by) ?? Infinity)) return []
    return [{ promise: meant ? 'A1.5' : 'A1.4', what: `${by} was refused ${thread}|${id} with ${why}${meant ? ' after the last fault' : ''}` }]
  })
}

/** Of a send whose outcome is `rejected` nothing is stored, unless it was sent again, or the answer of the store was lost. */
const refusedIsNotStored: FaultCheck = (evidence) => {
  const stored = new Set(evidence.ledger.threads.flatMap(({ id, mail }) => mail.map((one) => `${id}|${one.id}`)))
  const lost = new Set(notes(evidence, 'storeFailed').flatMap(({ thread, ids, lost: carriedOut }) => (carriedOut ? ids.map((id) => `${thread}|${id}`) : [])))
  const sends = groupBy(notes(evidence, 'send'), ({ thread, id }) => `${thread}|${id}`)
  return notes(evidence, 'outcome').flatMap(({ thread, id, action, by }): Violation[] => {
    const key = `${thread}|${id}`
    if (action !== 'rejected' || lost.has(key) || sends.get(key)?.length !== 1 || !stored.has(key)) return []
    return [{ promise: 'A1.4', what: `${by} got the outcome rejected for ${key}, and it is stored` }]
  })
}

/** The model is not called in a storm while the store fails: the pauses between attempts grow. */
const noStorm: FaultCheck = (evidence) => {
  const taken = notes(evidence, 'leaseTaken')
  return [...groupBy(notes(evidence, 'asked'), ({ by, thread, prompt }) => `${by} ${thread} ${prompt.join()}`)].flatMap(([, all]): Violation[] => {
    const { by = '', thread = '' } = all[0] ?? {}
    const others = taken.filter((note) => note.thread === thread && note.by !== by).length
    if (all.length <= mostCalls + others) return []
    return [{ promise: 'R5.7', what: `${by} called the model ${all.length} times with one prompt of ${thread}` }]
  })
}

/** No run is parked: none of these faults is a fault of the run. */
const noneParked: FaultCheck = ({ ledger }) => ledger.threads.flatMap(({ id, runs }) => runs.filter(({ status }) => status === 'parked').map(({ runId, attempts }) => ({
  promise: 'R5.7', what: `${id}: the run ${runId} is parked after ${attempts} attempts`,
})))

/** A process does not take over its own thread from itself, except for a host that gave its lease up. */
const oneTaker: FaultCheck = (evidence) => {
  const holders = new Map(notes(evidence, 'written').map(({ thread, epoch, by }) => [`${thread} ${epoch}`, by]))
  return notes(evidence, 'leaseTaken').flatMap(({ thread, epoch, takenOver, again, by }): Violation[] => {
    if (!takenOver || again || holders.get(`${thread} ${epoch - 1}`) !== by) return []
    return [{ promise: 'R1.7', what: `${by} took ${thread} over from itself at epoch ${epoch}` }]
  })
}

/** What a tool came to is stored, unless its process died, another took the thread, or the store failed meanwhile. */
const noResultLost: FaultCheck = (evidence) => {
  const unknown = new Set(interruptedCalls(evidence).map(({ thread, call }) => `${thread} ${call}`))
  const taken = notes(evidence, 'leaseTaken').toSorted((a, b) => a.at - b.at)
  return evidence.effects.flatMap(({ phase, thread, call, tool, by, at }): Violation[] => {
    if (phase === 'begun' || !unknown.has(`${thread} ${call}`)) return []
    const begun = evidence.effects.find((effect) => effect.phase === 'begun' && effect.call === call && effect.thread === thread)?.at ?? at
    const next = taken.find((note) => note.thread === thread && note.at > begun)
    if (next?.by !== by || !storeWorked(evidence, by, begun, next.at)) return []
    return [{ promise: 'R1.8', what: `${by} dropped the result of ${tool} for ${thread} ${call}, and took the thread again` }]
  })
}

/** Whether no fault of the store, or of the files of a process, falls into a time. */
function storeWorked({ spans }: FaultEvidence, by: string, from: number, to: number): boolean {
  const slot = Number(by.split('.')[0])
  return !spans.some((span) => span.from < to && span.to > from - 2_000_000 && (span.slot === undefined || span.slot === slot) && !['stop', 'block', 'kill', 'close'].includes(span.fault))
}

/** Only a call whose beginning was stored is reported as interrupted. */
const interruptedHadBegun: FaultCheck = (evidence) => {
  const starting = new Set(notes(evidence, 'callsStarting').flatMap(({ thread, calls }) => calls.map((call) => `${thread} ${call}`)))
  return interruptedCalls(evidence).flatMap(({ thread, call, tool }): Violation[] => {
    return starting.has(`${thread} ${call}`) ? [] : [{ promise: 'R6.8', what: `the call ${call} of ${tool} on ${thread} is reported as interrupted, and never began` }]
  })
}

function interruptedCalls({ ledger }: Evidence): Array<{ thread: string; call: string; tool: string }> {
  return ledger.threads.flatMap(({ id, rows }) => rows.flatMap(({ calls }) => calls.filter(({ error }) => error?.includes('It is not known') === true).map(({ call, tool }) => ({ thread: id, call, tool }))))
}

/** What was pending when a run was aborted at its end is cancelled, whatever the abort answered. */
const clearedAtEnd: FaultCheck = (evidence) => {
  const answers = new Set(notes(evidence, 'endAbortAnswer').map(({ thread, run }) => `${thread} ${run}`))
  return notes(evidence, 'endAbort').flatMap(({ thread, run, queued, by }): Violation[] => {
    const state = evidence.ledger.threads.find(({ id }) => id === thread)?.mail.find(({ id }) => id === queued)?.state
    if (!answers.has(`${thread} ${run}`) || state === 'cancelled') return []
    return [{ promise: 'R8.7', what: `${by} aborted ${run} on ${thread} with all pending signals, and ${queued} is ${state ?? 'unknown'}` }]
  })
}

/** An abort answers what the run ended as. */
const trueAborts: FaultCheck = (evidence) => {
  const runs = new Map(evidence.ledger.threads.flatMap(({ id, runs: all }) => all.map(({ runId, status }) => [`${id} ${runId}`, status])))
  const meant = new Set(notes(evidence, 'endAbort').map(({ thread, run }) => `${thread} ${run}`))
  const lies = notes(evidence, 'endAbortAnswer').flatMap(({ thread, run, aborted, by }): Violation[] => {
    const status = runs.get(`${thread} ${run}`)
    return (status === 'aborted') === aborted ? [] : [{ promise: 'R8.7', what: `${by} got aborted: ${aborted} for ${run} on ${thread}, which is ${status}` }]
  })
  const strange = [...runs].flatMap(([key, status]): Violation[] => (status === 'aborted' && !meant.has(key) ? [{ promise: 'R8.4', what: `${key} was aborted, and no call asked for it` }] : []))
  return [...lies, ...strange]
}

/** The evidence without what aborts were meant to end: signals that they cancelled, and the input of runs that they ended. */
function withoutAborted(evidence: FaultEvidence): FaultEvidence {
  const aborted = new Set(notes(evidence, 'endAbort').map(({ thread }) => thread))
  const away = new Set<string>()
  const threads = evidence.ledger.threads.map((thread) => {
    if (!aborted.has(thread.id)) return thread
    const ended = new Set(thread.runs.filter(({ status }) => status === 'aborted').map(({ runId }) => runId))
    const mail = thread.mail.filter(({ id, state, runId }) => {
      const gone = state === 'cancelled' || (runId !== null && ended.has(runId))
      if (gone) away.add(`${thread.id}|${id}`)
      return !gone
    })
    return { ...thread, mail }
  })
  const journals = evidence.journals.map((journal) => ({
    ...journal, notes: journal.notes.filter((note) => !((note.note === 'stored' || note.note === 'outcome') && away.has(`${note.thread}|${note.id}`))),
  }))
  return { ...evidence, journals, ledger: { ...evidence.ledger, threads } }
}

const soundFile: Check = ({ ledger }) => (ledger.integrity === 'ok' ? [] : [{ promise: 'A1', what: `the database is damaged: ${ledger.integrity}` }])

/** Everything that has to hold after a round, each as a function of the evidence alone. */
export const faultChecks: Readonly<Record<string, FaultCheck>> = {
  soundFile, nothingTwice, shownOnce, inOrder, nothingStuck, allAnswered,
  noEffectTwice, recordedFirst, effectsKnown, callsSettled,
  oneWriter, oneHolder, noLateWords, samePrompts, sameForAll, noGap, trueSnapshots,
  nothingLost: (evidence) => nothingLost(withoutAborted(evidence)),
  answered: (evidence) => answered(withoutAborted(evidence)),
  trueOutcomes: (evidence) => trueOutcomes(withoutAborted(evidence)),
  failStop, notReady, loggedOnce, refusedForFaults, refusedIsNotStored, noStorm, noneParked, oneTaker, noResultLost, interruptedHadBegun, clearedAtEnd, trueAborts,
}

export function judgeFaults(evidence: FaultEvidence): Violation[] {
  return Object.entries(faultChecks).flatMap(([name, check]) => check(evidence).map(({ promise, what }) => ({ promise, what: `${name}: ${what}` })))
}
