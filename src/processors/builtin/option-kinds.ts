import { HeedError } from '../../base/errors.ts'

/*
 * What options of built-in processors have to be. A guardrail that was told something else than it understands would be none, so each of these
 * refuses by name. `of` is the processor.
 */

export function checkFunction(of: string, field: string, value: unknown): void {
  if (typeof value !== 'function') throw wrong(of, field, 'a function')
}

export function checkFlag(of: string, field: string, value: unknown): void {
  if (typeof value !== 'boolean') throw wrong(of, field, 'true or false')
}

export function checkCount(of: string, field: string, value: unknown, least: number): void {
  if (!Number.isInteger(value) || Number(value) < least) throw wrong(of, field, `a whole number of at least ${least}`)
}

export function checkTextOption(of: string, field: string, value: unknown): void {
  if (typeof value !== 'string' || value === '') throw wrong(of, field, 'a text that is not empty')
}

/** One of these words. */
export function checkWord(of: string, field: string, known: readonly string[], value: unknown): void {
  if (typeof value !== 'string' || !known.includes(value)) throw wrong(of, field, `one of ${known.join(', ')}`)
}

/** A list of texts; of these words, where there are such. One at least unless told otherwise: to look nowhere is to do nothing. */
export function checkTexts(of: string, field: string, value: unknown, known?: readonly string[], least = 1): void {
  const fits = Array.isArray(value) && value.length >= least && value.every((text) => typeof text === 'string' && text !== '' && (known?.includes(text) ?? true))
  if (!fits) throw wrong(of, field, `a list of ${known?.join(', ') ?? 'texts'}${least === 0 ? '' : ', and not empty'}`)
}

function wrong(of: string, field: string, wanted: string): HeedError {
  return new HeedError('invalid_argument', `${of}: ${field} must be ${wanted}.`, { details: { field } })
}
