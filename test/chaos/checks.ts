import { checks as ofCrashes } from '../crash/checks/index.ts'
import { unheard } from '../crash/checks/watching.ts'
import { notes, type Check, type Evidence, type Violation } from '../crash/checks/evidence.ts'

/** What a refused send leaves: nothing, unless its outcome is unknown. */
const nothingOfRefused: Check = (evidence) => {
  const stored = new Set(evidence.ledger.threads.flatMap((thread) => thread.mail.map(({ id }) => `${thread.id}|${id}`)))
  const sends = new Map<string, number>()
  for (const { thread, id } of notes(evidence, 'send')) sends.set(`${thread}|${id}`, (sends.get(`${thread}|${id}`) ?? 0) + 1)
  return notes(evidence, 'refused').flatMap(({ thread, id, by, why }): Violation[] => {
    const key = `${thread}|${id}`
    if (!/^(?:store_failed|store_full|store_unknown|closed|overloaded)$/.test(why)) return [{ promise: 'A1.4', what: `${by} was refused ${key} with ${why}` }]
    if (why === 'store_unknown' || !stored.has(key) || sends.get(key) !== 1) return []
    return [{ promise: 'Q2.6', what: `${by} was refused ${key} with ${why}, and it is stored` }]
  })
}

/** When nothing fails any more, every watcher receives the chunks that were published meanwhile. */
const heardInTheEnd: Check = (evidence) => {
  const last = new Set(notes(evidence, 'calm').map(({ by }) => by))
  return unheard(evidence, (by) => last.has(by)).map(({ watcher, by, chunk, last: from }) => ({
    promise: 'W1.2', what: `${watcher} in ${by} saw nothing after ${from}: ${chunk.cursor} (${chunk.type}) was said by ${chunk.by}`,
  }))
}

const { nothingLost, nothingTwice, shownOnce, inOrder, answered, nothingStuck, trueOutcomes, allAnswered } = ofCrashes
const { noEffectTwice, effectsKnown, callsSettled, oneWriter, oneHolder, samePrompts, sameForAll, noGap, trueSnapshots } = ofCrashes

/** Those of test/crash that hold under every fault of the database and the network. What a process logs is not judged: each fault is logged. */
const checks = {
  nothingLost, nothingTwice, shownOnce, inOrder, answered, nothingStuck, trueOutcomes, allAnswered, noEffectTwice, effectsKnown, callsSettled,
  oneWriter, oneHolder, samePrompts, sameForAll, noGap, trueSnapshots, nothingOfRefused, heardInTheEnd,
}

export function judge(evidence: Evidence): Violation[] {
  return Object.entries(checks).flatMap(([name, check]) => (check?.(evidence) ?? []).map(({ promise, what }) => ({ promise, what: `${name}: ${what}` })))
}
