import { HeedError } from '../base/errors.ts'
import type { Processor } from '../processors/processor.ts'
import type { MemoryOptions } from '../run/options.ts'
import type { Storage } from '../store/contract/storage.ts'
import { windowOf } from './window.ts'

export interface MessageHistoryOptions extends Pick<MemoryOptions, 'lastMessages' | 'window'> {
  /** Where the threads are kept. The same place as the memory's, where both name one. */
  storage?: Storage
  /** Another name of `lastMessages`. */
  limit?: MemoryOptions['lastMessages']
}

const known: readonly string[] = ['storage', 'lastMessages', 'limit', 'window']

/**
 * The history of a thread as a processor. An agent with memory has one by itself; one that is given by hand is used in its place, so
 * that its `lastMessages` is what counts. History is there before the first processor is asked and is stored after the last one let the
 * answer pass, wherever in the list this stands.
 *
 * @example new Agent({ …, inputProcessors: [new MessageHistory({ lastMessages: 20 }), new TokenLimiter(4000)] })
 */
export class MessageHistory implements Processor<'message-history'> {
  readonly id = 'message-history'
  readonly storage: Storage | undefined
  readonly options: Pick<MemoryOptions, 'lastMessages' | 'window'>

  constructor({ storage, limit, ...given }: MessageHistoryOptions = {}) {
    if (limit !== undefined && given.lastMessages !== undefined) throw new HeedError('invalid_argument', 'MessageHistory: limit and lastMessages are the same. Give one of them.', { details: { option: 'limit' } })
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
