import type { LedgerThread } from '../ledger.ts'
import { groupBy, type Check, type Violation } from './evidence.ts'

/** A tool that isn't idempotent runs once for each call, whatever happened to the processes. */
export const noEffectTwice: Check = ({ effects }) => {
  const begun = effects.filter(({ idempotent, phase }) => !idempotent && phase === 'begun')
  return [...groupBy(begun, ({ thread, call }) => `${thread} ${call}`)].flatMap(([key, all]): Violation[] => {
    if (all.length === 1) return []
    return [{ promise: 'R5.5', what: `${all[0]?.tool} ran ${all.length} times for the call ${key}, in the processes ${all.map(({ by }) => by).join(', ')}` }]
  })
}

/**
 * When a tool began, the store had the step that asked for it, and, where it may not begin twice, that it began or was decided. A process that
 * is stopped in the very instant in which it begins can't know that another took its thread: then the model received that the outcome is unknown.
 */
export const recordedFirst: Check = ({ effects, ledger }) => {
  const unknown = new Set(ledger.threads.flatMap((thread) => thread.rows.flatMap((row) => row.calls.filter(({ error }) => error?.includes('It is not known') === true).map(({ call }) => `${thread.id} ${call}`))))
  return effects.flatMap(({ phase, record, thread, call, tool, by, idempotent }): Violation[] => {
    if (phase === 'done') return []
    if (!record?.inHistory) return [{ promise: 'G1.2', what: `${tool} ran for the call ${thread} ${call} in ${by} before the step was stored that asked for it` }]
    if (idempotent || record.started || record.decided || unknown.has(`${thread} ${call}`)) return []
    return [{ promise: 'R5.5', what: `${tool} ran for the call ${thread} ${call} in ${by} before it was stored that it had begun` }]
  })
}

/** Whatever a tool did, history knows the call, in the run that it was done for. */
export const effectsKnown: Check = ({ effects, ledger }) => {
  const asked = new Set(ledger.threads.flatMap((thread) => thread.rows.flatMap((row) => row.calls.map(({ call }) => `${thread.id} ${row.runId} ${call}`))))
  return effects.filter(({ phase, thread, run, call }) => phase === 'begun' && !asked.has(`${thread} ${run} ${call}`)).map(({ thread, run, call, tool, by }) => ({
    promise: 'R5.5', what: `${tool} took effect in ${by} for the call ${call} of ${thread}, and its run ${run} doesn't know it`,
  }))
}

const settledStates = new Set(['result', 'output-error', 'output-denied'])

/** Every call of history has one outcome, and the one that is true: a result was done, a refusal was not, anything else is not known. */
export const callsSettled: Check = ({ ledger, effects }) => {
  const done = new Set(effects.filter(({ phase }) => phase === 'done').map(({ thread, call }) => `${thread} ${call}`))
  const begun = new Set(effects.map(({ thread, call }) => `${thread} ${call}`))
  return ledger.threads.flatMap((thread) => [...callsOf(thread)].flatMap(([call, { parts, parked }]): Violation[] => {
    const say = (what: string): Violation[] => [{ promise: 'R5.2', what: `${thread.id}: the call ${call} of ${parts[0]?.tool} ${what}` }]
    const asked = parts.filter(({ state }) => !settledStates.has(state))
    const settled = parts.filter(({ state }) => settledStates.has(state))
    const [outcome] = settled
    if (asked.length !== 1) return say(`is in history ${asked.length} times`)
    if (!outcome) return parked ? [] : say('has no result')
    if (settled.length > 1) return say(`has ${settled.length} results`)
    const key = `${thread.id} ${call}`
    if (outcome.state === 'result') return done.has(key) && outcome.done === call ? [] : say('has a result that no tool came to')
    if (outcome.state === 'output-denied') return begun.has(key) ? say('was denied, and ran') : []
    return /interrupted|stopped/.test(outcome.error ?? '') ? [] : say(`failed: ${outcome.error}`)
  }))
}

function callsOf({ rows, runs }: LedgerThread): Map<string, { parts: LedgerThread['rows'][number]['calls']; parked: boolean }> {
  const parked = new Set(runs.filter(({ status }) => status === 'parked').map(({ runId }) => runId))
  const found = rows.flatMap(({ calls, runId }) => calls.map((part) => ({ part, runId })))
  return new Map([...groupBy(found, ({ part }) => part.call)].map(([call, all]) => [call, {
    parts: all.map(({ part }) => part), parked: all.some(({ runId }) => runId !== null && parked.has(runId)),
  }]))
}
