import { checkNames } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import type { MemoryOptions } from '../run/options.ts'
import type { Window } from '../store/contract/threads.ts'
import { parseRecallOptions } from './semantic/setting.ts'
import { parseTitleOptions } from './titles.ts'
import { parseWorkingMemory } from './working-memory/setting.ts'

const known: Record<keyof MemoryOptions, true> = {
  lastMessages: true, window: true, workingMemory: true, semanticRecall: true, readOnly: true, generateTitle: true, save: true,
}

/** Validates the options of a memory: their names and their values. `placed`: its vectors are in a vector store. */
export function checkMemoryOptions(options: unknown, recall: { placed?: boolean } = {}): void {
  if (typeof options !== 'object' || options === null) throw invalidOption('memory.options', 'The options of a memory must be an object.')
  checkOptionNames(options)
  const { readOnly, save } = options as MemoryOptions
  if (save !== undefined && typeof save !== 'boolean') throw invalidOption('save', 'save must be true or false.')
  if (readOnly !== undefined && typeof readOnly !== 'boolean') throw invalidOption('readOnly', 'readOnly must be true or false.')
  windowOf(options)
  parseWorkingMemory(options)
  parseRecallOptions(options, recall)
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

export const defaultLastMessages = 10

/** The window of history that a prompt begins with: it grows to twice `lastMessages` before it is cut back to `lastMessages`. */
export function windowOf({ lastMessages: given, window }: Pick<MemoryOptions, 'lastMessages' | 'window'>): Window {
  if (window !== undefined) {
    if (given !== undefined) {
      throw invalidOption('window', 'window and lastMessages both set the window of history. Pass one of them.')
    }
    checkNames('window', window, ['low', 'high'])
    if (!Number.isInteger(window.low) || !Number.isInteger(window.high) || window.low < 1 || window.high < window.low) {
      throw invalidOption('window', 'window must have whole numbers: low of at least 1, and high of at least low.')
    }
    return window
  }
  const lastMessages = given ?? defaultLastMessages
  if (lastMessages === false) return false
  if (!Number.isInteger(lastMessages) || lastMessages < 1) {
    throw invalidOption('lastMessages', 'lastMessages must be a whole number above 0, or false.')
  }
  return { low: lastMessages, high: lastMessages * 2 }
}

/** The history options of the last layer that has any; each of the two options replaces the other. */
export function historyOption(...layers: ReadonlyArray<MemoryOptions | undefined>): Pick<MemoryOptions, 'lastMessages' | 'window'> {
  const layer = layers.findLast((options) => options?.window !== undefined || options?.lastMessages !== undefined)
  if (layer?.window !== undefined) return { window: layer.window }
  return layer?.lastMessages === undefined ? {} : { lastMessages: layer.lastMessages }
}
