import { HeedError } from '../base/errors.ts'
import type { MemoryOptions } from '../run/options.ts'
import { parseRecallOptions } from './semantic/setting.ts'
import { parseTitleOptions } from './titles.ts'
import { windowOf } from './window.ts'
import { parseWorkingMemory } from './working-memory/setting.ts'

const known: Record<keyof MemoryOptions, true> = {
  lastMessages: true, window: true, workingMemory: true, semanticRecall: true, readOnly: true, generateTitle: true, save: true,
}

/** Validates the options of a memory: their names and their values. */
export function checkMemoryOptions(options: unknown): void {
  if (typeof options !== 'object' || options === null) throw invalidOption('memory.options', 'The options of a memory must be an object.')
  checkOptionNames(options)
  const { readOnly, save } = options as MemoryOptions
  if (save !== undefined && typeof save !== 'boolean') throw invalidOption('save', 'save must be true or false.')
  if (readOnly !== undefined && typeof readOnly !== 'boolean') throw invalidOption('readOnly', 'readOnly must be true or false.')
  windowOf(options)
  parseWorkingMemory(options)
  parseRecallOptions(options)
  parseTitleOptions(options)
}

/** Rejects unknown options. `others` are names that the caller handles; the error lists them too. */
export function checkOptionNames(options: object, others: readonly string[] = []): void {
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined || Object.hasOwn(known, key)) continue
    const names = [...others, ...Object.keys(known)].join(', ')
    throw new HeedError('unsupported_option', `Memory has no option '${key}'. Known: ${names}.`, { details: { option: key } })
  }
}

function invalidOption(option: string, message: string): HeedError {
  return new HeedError('invalid_argument', message, { details: { option } })
}
