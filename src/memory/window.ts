import { HeedError } from '../base/errors.ts'
import type { MemoryOptions } from '../run/options.ts'
import type { Window } from '../store/contract/threads.ts'

export const defaultLastMessages = 10

/** How much history a prompt begins with: `lastMessages` is the low mark, and the window grows to twice that before it is cut. */
export function windowOf({ lastMessages = defaultLastMessages, window }: Pick<MemoryOptions, 'lastMessages' | 'window'>): Window {
  if (window) {
    if (!(window.low >= 1) || !(window.high >= window.low)) throw new HeedError('invalid_argument', 'window needs low of at least 1 and high of at least low.', { details: { option: 'window' } })
    return window
  }
  if (lastMessages === false) return false
  if (!Number.isInteger(lastMessages) || lastMessages < 1) throw new HeedError('invalid_argument', 'lastMessages must be a whole number above 0, or false.', { details: { option: 'lastMessages' } })
  return { low: lastMessages, high: lastMessages * 2 }
}

/** The last of these that says how much history it wants; each of the two options takes the place of the other. */
export function historyOption(...layers: ReadonlyArray<MemoryOptions | undefined>): Pick<MemoryOptions, 'lastMessages' | 'window'> {
  const said = layers.findLast((options) => options?.window !== undefined || options?.lastMessages !== undefined)
  if (said?.window !== undefined) return { window: said.window }
  return said?.lastMessages === undefined ? {} : { lastMessages: said.lastMessages }
}
