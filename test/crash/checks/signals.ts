import type { LedgerThread } from '../ledger.ts'
import { groupBy, notes, type Check, type Evidence, type Violation } from './evidence.ts'

/** Whatever was confirmed is in history, once. */
export const nothingLost: Check = (evidence) => {
  const violations: Violation[] = []
  for (const [key, confirmed] of groupBy(notes(evidence, 'stored'), ({ thread, id }) => `${thread}|${id}`)) {
    const { thread: threadId, id } = confirmed[0] ?? { thread: '', id: '' }
    const thread = threadOf(evidence, threadId)
    if (!thread?.mail.some((mail) => mail.id === id)) violations.push({ promise: 'A1', what: `${key} was confirmed and the store doesn't know it` })
    else if (!thread.rows.some((row) => row.id === id)) violations.push({ promise: 'A1', what: `${key} was confirmed and is not in history` })
  }
  return violations
}

/** An id is one signal: one row has its mark, and history has no signal that was not sent. */
export const nothingTwice: Check = (evidence) => {
  const sent = new Set(notes(evidence, 'send').map(({ thread, id }) => `${thread}|${id}`))
  return evidence.ledger.threads.flatMap((thread) => {
    const rows = thread.rows.flatMap((row) => (row.role === 'signal' ? row.marks : []))
    return [...groupBy(rows, (id) => id)].flatMap(([id, found]): Violation[] => {
      if (found.length > 1) return [{ promise: 'A2', what: `${thread.id}|${id} is in history ${found.length} times` }]
      return sent.has(`${thread.id}|${id}`) ? [] : [{ promise: 'A2', what: `${thread.id}|${id} is in history and nobody sent it` }]
    })
  })
}

/** A prompt has a signal once. */
export const shownOnce: Check = (evidence) => notes(evidence, 'asked').flatMap(({ thread, marks, by }) => {
  const twice = marks.filter((id, index) => marks.indexOf(id) !== index)
  return twice.map((id) => ({ promise: 'A2', what: `process ${by} showed ${thread}|${id} twice in one prompt` }))
})

/** Acceptance follows the order of sends where that is known, and history follows acceptance. */
export const inOrder: Check = (evidence) => evidence.ledger.threads.flatMap((thread) => [...acceptedInOrder(evidence, thread), ...takenInOrder(thread)])

function acceptedInOrder(evidence: Evidence, thread: LedgerThread): Violation[] {
  const ord = new Map(thread.mail.map((mail) => [mail.id, mail.ord]))
  // Only the first time counts: a repeated send is the first one again.
  const sent = [...groupBy(notes(evidence, 'send').filter((note) => note.thread === thread.id), ({ id }) => id)]
    .map(([id, all]) => ({ id, at: Math.min(...all.map(({ at }) => at)) }))
  const confirmed = notes(evidence, 'stored').filter((note) => note.thread === thread.id).toSorted((a, b) => a.at - b.at)
  return sent.flatMap(({ id, at }): Violation[] => {
    const mine = ord.get(id)
    const before = mine === undefined ? undefined : confirmed.find((other) => other.at < at && (ord.get(other.id) ?? 0) > mine)
    return before ? [{ promise: 'D1', what: `${thread.id}: ${before.id} was confirmed before ${id} was sent, and comes after it` }] : []
  })
}

function takenInOrder(thread: LedgerThread): Violation[] {
  const seq = new Map(thread.rows.map((row) => [row.id, row.seq]))
  return ['enter', 'turn'].flatMap((kind) => {
    const mail = thread.mail.filter((one) => one.kind === kind && one.route !== 'persist' && seq.has(one.id))
    return mail.slice(1).flatMap((one, index): Violation[] => {
      const before = mail[index]
      if (!before || (seq.get(before.id) ?? 0) < (seq.get(one.id) ?? 0)) return []
      return [{ promise: 'R2', what: `${thread.id}: ${one.id} was accepted after ${before.id} and is before it in history` }]
    })
  })
}

/** A model was shown each signal that was to be answered, and the run that took it said something after it; or that run is parked for everyone to see. */
export const answered: Check = (evidence) => {
  const shown = new Set(notes(evidence, 'asked').flatMap(({ thread, marks }) => marks.map((id) => `${thread}|${id}`)))
  return evidence.ledger.threads.flatMap((thread) => thread.mail.flatMap((mail): Violation[] => {
    if (mail.route === 'persist') return []
    const say = (what: string): Violation[] => [{ promise: 'R3', what: `${thread.id}|${mail.id} is ${mail.state} and ${what}` }]
    const row = thread.rows.find(({ id }) => id === mail.id)
    const run = thread.runs.find(({ runId }) => runId === mail.runId)
    if (!row || !run) return say('no run took it')
    if (row.runId !== run.runId) return say(`stands in run ${row.runId}, not in ${run.runId}, which took it`)
    if (run.status === 'parked') return []
    if (run.status !== 'finished') return say(`its run ${run.runId} is ${run.status}`)
    if (!shown.has(`${thread.id}|${mail.id}`)) return say('no model was shown it')
    const answer = thread.rows.find(({ role, runId, seq, text }) => role === 'assistant' && runId === run.runId && seq > row.seq && text !== '')
    return answer ? [] : say(`its run ${run.runId} said nothing after it`)
  }))
}

/** No thread runs, no signal is pending. */
export const nothingStuck: Check = ({ ledger }) => ledger.threads.flatMap((thread) => {
  const open = thread.mail.filter(({ state }) => state === 'pending' || state === 'taken')
  const running = thread.runs.filter(({ status }) => status === 'running' || status === 'suspended')
  if (thread.status === 'idle' && open.length === 0 && running.length === 0) return []
  const what = `${thread.id} is ${thread.status} with ${open.length} open signals and the runs ${running.map(({ runId, status, attempts }) => `${runId} ${status} (${attempts})`).join(', ') || 'none'}`
  return [{ promise: 'R5.4', what }]
})

function threadOf({ ledger }: Evidence, id: string): LedgerThread | undefined {
  return ledger.threads.find((thread) => thread.id === id)
}
