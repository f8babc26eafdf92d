import { groupBy, notes, type Check, type Evidence, type Violation } from './evidence.ts'

interface Span {
  by: string
  from: number
  to: number
  what: string
}

/** Never two runs on a thread: while a model is asked or a tool works for it in one process, nothing does in another. */
export const oneRun: Check = (evidence) => [...groupBy(spans(evidence), ({ thread }) => thread)].flatMap(([thread, all]) => {
  const inOrder = all.toSorted((a, b) => a.from - b.from)
  let last = new Map<string, Span>()
  return inOrder.flatMap((span): Violation[] => {
    const other = [...last.values()].find(({ by, to }) => by !== span.by && to > span.from)
    const own = last.get(span.by)
    if (!own || own.to < span.to) last = last.set(span.by, span)
    return other ? [{ promise: 'R1.4', what: `${thread}: ${span.what} in ${span.by} began ${other.to - span.from} µs before ${other.what} in ${other.by} was over` }] : []
  })
})

function spans(evidence: Evidence): Array<Span & { thread: string }> {
  const over = new Map(notes(evidence, 'over').map(({ by, call, at }) => [`${by} ${call}`, at]))
  const models = notes(evidence, 'asked').map(({ thread, by, at, call }) => ({ thread, by, from: at, to: over.get(`${by} ${call}`) ?? at, what: 'a model' }))
  const done = new Map(evidence.effects.filter(({ phase }) => phase === 'done').map(({ by, call, at }) => [`${by} ${call}`, at]))
  const tools = evidence.effects.filter(({ phase }) => phase === 'begun').map(({ thread, by, at, call }) => ({ thread, by, from: at, to: done.get(`${by} ${call}`) ?? at, what: 'a tool' }))
  return [...models, ...tools]
}

/** What was accepted enters the run at its next boundary, in whichever process: no boundary that began afterwards passed it by. */
export const nextBoundary: Check = (evidence) => entries(evidence).flatMap(({ thread, id, accepted, entered, drains }): Violation[] => {
  const passed = drains.find(({ began, at }) => began > accepted.at && at < entered.began)
  return passed ? [{ promise: 'A4.2', what: `${thread}|${id}, accepted in ${accepted.by}, was passed by a boundary in ${passed.by} ${passed.began - accepted.at} µs later` }] : []
})

type Written = ReturnType<typeof notes<'written'>>[number]

interface Entry {
  thread: string
  id: string
  accepted: { by: string; at: number }
  /** The write that took it. */
  entered: Written
  /** All boundaries of its thread. */
  drains: Written[]
}

/** Signals that entered a run which was at work, with when that was. Turns of their own wait for the end of it. */
export function entries(evidence: Evidence): Entry[] {
  const accepted = new Map<string, { by: string; at: number }>()
  for (const { thread, id, by, at } of notes(evidence, 'accepted')) if (!accepted.has(`${thread}|${id}`)) accepted.set(`${thread}|${id}`, { by, at })
  const entering = new Set(evidence.ledger.threads.flatMap((thread) => thread.mail.flatMap(({ id, kind, route }) => (kind === 'enter' && (route === 'deliver' || route === 'interrupt') ? [`${thread.id}|${id}`] : []))))
  return [...groupBy(notes(evidence, 'written'), ({ thread }) => thread)].flatMap(([thread, writes]) => {
    const drains = writes.filter(({ what }) => what === 'drain').toSorted((a, b) => a.at - b.at)
    return drains.flatMap((entered) => entered.rows.flatMap((id): Entry[] => {
      const known = accepted.get(`${thread}|${id}`)
      return known && entering.has(`${thread}|${id}`) ? [{ thread, id, accepted: known, entered, drains }] : []
    }))
  })
}
