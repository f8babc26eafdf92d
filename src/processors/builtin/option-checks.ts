import { HeedError } from '../../base/errors.ts'

/*
 * Checks of the options of built-in processors. A guardrail that ignored an invalid option would not guard, so each check throws and
 * names the processor and the option.
 */

export function checkFunction(processor: string, field: string, value: unknown): void {
  if (typeof value !== 'function') throw invalidOption(processor, field, 'a function')
}

export function checkFlag(processor: string, field: string, value: unknown): void {
  if (typeof value !== 'boolean') throw invalidOption(processor, field, 'true or false')
}

export function checkCount(processor: string, field: string, value: unknown, min: number): void {
  if (!Number.isInteger(value) || Number(value) < min) throw invalidOption(processor, field, `a whole number of at least ${min}`)
}

export function checkTextOption(processor: string, field: string, value: unknown): void {
  if (typeof value !== 'string' || value === '') throw invalidOption(processor, field, 'a text that is not empty')
}

export function checkOneOf(processor: string, field: string, known: readonly string[], value: unknown): void {
  if (typeof value !== 'string' || !known.includes(value)) throw invalidOption(processor, field, `one of ${known.join(', ')}`)
}

/** Checks a list of texts, all of them in `known` where it is passed. By default the list must not be empty: it would check nothing. */
export function checkTextList(processor: string, field: string, value: unknown, known?: readonly string[], min = 1): void {
  const isItem = (text: unknown) => typeof text === 'string' && text !== '' && (known?.includes(text) ?? true)
  if (Array.isArray(value) && value.length >= min && value.every(isItem)) return
  throw invalidOption(processor, field, `a list of ${known?.join(', ') ?? 'texts'}${min === 0 ? '' : ', and not empty'}`)
}

/** Rejects an option that is about output where the processor does not check output. */
export function checkForOutput(processor: string, field: string, isSet: boolean, phases: readonly string[]): void {
  if (isSet && !phases.includes('output')) throw invalidOption(processor, field, "left out: phases has no 'output', and it is about output")
}

export function invalidOption(processor: string, field: string, expected: string): HeedError {
  return new HeedError('invalid_argument', `${processor}: ${field} must be ${expected}.`, { details: { field } })
}
