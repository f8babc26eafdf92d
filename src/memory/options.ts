import { HeedError } from '../base/errors.ts'
import type { MemoryOptions } from '../run/options.ts'
import { titleOptionsIn } from './titles.ts'
import { recallSettingIn } from './semantic/setting.ts'
import { windowOf } from './window.ts'
import { workingMemoryIn } from './working-memory/setting.ts'

const known: Record<keyof MemoryOptions, true> = { lastMessages: true, window: true, workingMemory: true, semanticRecall: true, readOnly: true, generateTitle: true, save: true }

/** Refuses what is not an option of a memory, and values that can't be meant. */
export function checkMemoryOptions(options: unknown): void {
  if (typeof options !== 'object' || options === null) throw new HeedError('invalid_argument', 'The options of a memory must be an object.', { details: { option: 'memory.options' } })
  checkOptionNames(options)
  const { readOnly, save } = options as MemoryOptions
  if (save !== undefined && typeof save !== 'boolean') throw new HeedError('invalid_argument', 'save must be true or false.', { details: { option: 'save' } })
  if (readOnly !== undefined && typeof readOnly !== 'boolean') throw new HeedError('invalid_argument', 'readOnly must be true or false.', { details: { option: 'readOnly' } })
  windowOf(options)
  workingMemoryIn(options)
  recallSettingIn(options)
  titleOptionsIn(options)
}

/** Refuses names that are not those of options; `more` are names that have another meaning there. */
export function checkOptionNames(options: object, more: readonly string[] = []): void {
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined || Object.hasOwn(known, key)) continue
    throw new HeedError('unsupported_option', `Memory has no '${key}' yet. Known: ${[...more, ...Object.keys(known)].join(', ')}.`, { details: { option: key } })
  }
}
