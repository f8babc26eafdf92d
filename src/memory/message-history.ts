import { HeedError } from '../base/errors.ts'
import type { Processor } from '../processors/processor.ts'
import type { MemoryOptions } from '../run/options.ts'
import type { Storage } from '../store/contract/storage.ts'
import { windowOf } from './window.ts'

export interface MessageHistoryOptions extends Pick<MemoryOptions, 'lastMessages' | 'window'> {
  /** The storage of the threads; the same as the memory's when both have one. */
  storage?: Storage
  /** An alias of `lastMessages`. */
  limit?: MemoryOptions['lastMessages']
}

const known: readonly string[] = ['storage', 'lastMessages', 'limit', 'window']

/**
 * The history of a thread as a processor. An agent with memory has history without it; a `MessageHistory` in a list replaces its options.
 * Its
 * position in the list does not matter: history is loaded before the first processor runs, and the answer is stored after the last one.
 *
 * @example new Agent({ …, inputProcessors: [new MessageHistory({ lastMessages: 20 }), new TokenLimiter(4000)] })
 */
export class MessageHistory implements Processor<'message-history'> {
  readonly id = 'message-history'
  readonly storage: Storage | undefined
  readonly options: Pick<MemoryOptions, 'lastMessages' | 'window'>

  constructor({ storage, limit, ...given }: MessageHistoryOptions = {}) {
    if (limit !== undefined && given.lastMessages !== undefined)
      throw new HeedError('invalid_argument', 'MessageHistory: limit is an alias of lastMessages. Pass one of them.', {
        details: { option: 'limit' },
      })
    const options = limit === undefined ? given : { ...given, lastMessages: limit }
    for (const key of Object.keys(options)) {
      if (known.includes(key)) continue
      throw new HeedError('unsupported_option', `MessageHistory has no '${key}'. Known: ${known.join(', ')}.`, { details: { option: key } })
    }
    windowOf(options)
    this.storage = storage
    this.options = options
  }
}
