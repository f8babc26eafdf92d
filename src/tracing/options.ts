import { HeedError } from '../base/errors.ts'

/** What of a conversation is written into traces. Names, times, counts and ids always are, where an SDK is registered. */
export interface TracingOptions {
  /** Also instructions, prompts and what tools were called with. Defaults to false. */
  recordInputs?: boolean
  /** Also what models and tools answered. Defaults to false. */
  recordOutputs?: boolean
}

/** The words of an error may quote both what was asked and what was answered. */
export function recordsErrors({ recordInputs, recordOutputs }: TracingOptions): boolean {
  return recordInputs === true && recordOutputs === true
}

const known = new Set(['recordInputs', 'recordOutputs'])

export function checkTracing(tracing: TracingOptions | false | undefined): void {
  if (tracing === undefined || tracing === false) return
  if (typeof tracing !== 'object' || tracing === null) throw new HeedError('invalid_argument', 'tracing must be false or { recordInputs, recordOutputs }.', { details: { option: 'tracing' } })
  for (const [name, value] of Object.entries(tracing)) {
    if (!known.has(name)) throw new HeedError('unsupported_option', `tracing has no '${name}'. Known: ${[...known].join(', ')}.`, { details: { option: `tracing.${name}` } })
    if (typeof value !== 'boolean' && value !== undefined) throw new HeedError('invalid_argument', `tracing.${name} must be true or false.`, { details: { option: `tracing.${name}` } })
  }
}
