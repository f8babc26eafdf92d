import { HeedError } from '../base/errors.ts'

/** The contents of traces. Names, times, counts and ids are always recorded, where an SDK is registered. */
export interface TracingOptions {
  /** Also record instructions, prompts and the arguments of tools. Defaults to false. */
  recordInputs?: boolean
  /** Also record the output of models and tools. Defaults to false. */
  recordOutputs?: boolean
}

/** The message of an error may quote both inputs and outputs. */
export function recordsErrors({ recordInputs, recordOutputs }: TracingOptions): boolean {
  return recordInputs === true && recordOutputs === true
}

const known = ['recordInputs', 'recordOutputs']

export function checkTracing(tracing: TracingOptions | false | undefined): void {
  if (tracing === undefined || tracing === false) return
  if (typeof tracing !== 'object' || tracing === null) {
    throw new HeedError('invalid_argument', 'tracing must be false or { recordInputs, recordOutputs }.', { details: { option: 'tracing' } })
  }
  for (const [name, value] of Object.entries(tracing)) {
    const details = { option: `tracing.${name}` }
    if (!known.includes(name)) {
      throw new HeedError('unsupported_option', `tracing has no '${name}'. Known: ${known.join(', ')}.`, { details })
    }
    if (typeof value !== 'boolean' && value !== undefined) {
      throw new HeedError('invalid_argument', `tracing.${name} must be true or false.`, { details })
    }
  }
}
