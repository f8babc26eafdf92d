import { HeedError } from '../base/errors.ts'
import type { MemoryOptions } from '../run/options.ts'
import type { Window } from '../store/contract/threads.ts'

export const defaultLastMessages = 10

/** The window of history that a prompt begins with: it grows to twice `lastMessages` before it is cut back to `lastMessages`. */
export function windowOf({ lastMessages = defaultLastMessages, window }: Pick<MemoryOptions, 'lastMessages' | 'window'>): Window {
  if (window) {
    if (!(window.low >= 1) || !(window.high >= window.low))
      throw new HeedError('invalid_argument', 'window must have low of at least 1 and high of at least low.', {
        details: { option: 'window' },
      })
    return window
  }
  if (lastMessages === false) return false
  if (!Number.isInteger(lastMessages) || lastMessages < 1)
    throw new HeedError('invalid_argument', 'lastMessages must be a whole number above 0, or false.', {
      details: { option: 'lastMessages' },
    })
  return { low: lastMessages, high: lastMessages * 2 }
}

/** The history options of the last layer that has any; each of the two options replaces the other. */
export function historyOption(...layers: ReadonlyArray<MemoryOptions | undefined>): Pick<MemoryOptions, 'lastMessages' | 'window'> {
  const layer = layers.findLast((options) => options?.window !== undefined || options?.lastMessages !== undefined)
  if (layer?.window !== undefined) return { window: layer.window }
  return layer?.lastMessages === undefined ? {} : { lastMessages: layer.lastMessages }
}
