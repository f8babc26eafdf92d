import { HeedError } from '../base/errors.ts'
import type { Processor } from '../processors/processor.ts'
import type { TextEmbedder } from '../recall/embedder.ts'
import { checkObject } from '../base/arguments.ts'
import type { EmbedderInput } from '../run/model/model-router.ts'
import type { MemoryOptions, SemanticRecallOptions, WorkingMemoryOptions } from '../run/options.ts'
import { storageKey, type Storage } from '../store/contract/storage.ts'
import { defaultLastMessages, windowOf } from './options.ts'
import { checkVectorOption, embedderWith, isPlaced, type VectorOption } from './semantic/search.ts'
import { parseRecallOptions } from './semantic/setting.ts'
import { parseWorkingMemory } from './working-memory/setting.ts'

/** The options of `MessageHistory`. */
export interface MessageHistoryOptions extends Pick<MemoryOptions, 'lastMessages' | 'window'> {
  /** The storage of the threads; the same as the memory's when both have one. */
  storage?: Storage
  /** An alias of `lastMessages`. */
  limit?: MemoryOptions['lastMessages']
}

const known: readonly string[] = ['storage', 'lastMessages', 'limit', 'window']

/**
 * The history of a thread as a processor. An agent with memory has history without it; a `MessageHistory` in a list replaces its options.
 * Its position in the list does not matter: history is loaded before the first processor runs, and the answer is stored after the last
 * one.
 *
 * @example new Agent({ …, inputProcessors: [new MessageHistory({ lastMessages: 20 }), new TokenLimiter(4000)] })
 */
export class MessageHistory implements Processor<'message-history'> {
  readonly id = 'message-history'
  readonly storage: Storage | undefined
  readonly options: Pick<MemoryOptions, 'lastMessages' | 'window'>

  constructor(config: MessageHistoryOptions = {}) {
    const passed: unknown = config
    checkObject('MessageHistory', passed)
    const { storage, limit, ...given } = config
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

export interface SemanticRecallProcessorOptions extends SemanticRecallOptions {
  embedder?: EmbedderInput
  /** As that of a memory. */
  vector?: VectorOption
}

/**
 * Recall as a processor. An agent with memory recalls without it; a `SemanticRecall` in a list replaces that, with its own options. Its
 * position in the list does not matter: the recall block is at the end of the prompt.
 *
 * @example new Agent({ …, inputProcessors: [new SemanticRecall({ topK: 10, scope: 'thread' })] })
 */
export class SemanticRecall implements Processor<'semantic-recall'> {
  readonly id = 'semantic-recall'
  readonly options: SemanticRecallOptions
  readonly embedder: TextEmbedder | undefined
  readonly vector: VectorOption | undefined

  constructor(config: SemanticRecallProcessorOptions = {}) {
    const passed: unknown = config
    checkObject('SemanticRecall', passed)
    const { embedder, vector, ...options } = config
    if ('storage' in options) {
      throw new HeedError(
        'unsupported_option',
        'SemanticRecall uses the storage of the threads. Pass storage to the memory, the Heed or a MessageHistory.',
        { details: { option: 'storage' } },
      )
    }
    checkVectorOption(vector)
    parseRecallOptions({ semanticRecall: options }, { placed: isPlaced(vector) })
    this.vector = vector
    this.options = options
    this.embedder = embedderWith(vector, { ...(embedder !== undefined && { embedder }) }, options)
  }
}

/**
 * Working memory as a processor. An agent with memory has working memory without it; a `WorkingMemory` in a list replaces its options. Its
 * position in the list does not matter: the content is at the end of the prompt.
 *
 * @example new Agent({ …, inputProcessors: [new WorkingMemory({ scope: 'thread', template: '# Task\n- Goal:' })] })
 */
export class WorkingMemory implements Processor<'working-memory'> {
  readonly id = 'working-memory'
  readonly options: WorkingMemoryOptions

  constructor(options: WorkingMemoryOptions = {}) {
    if (typeof options === 'object' && options !== null && 'storage' in options) {
      const why = 'WorkingMemory uses the storage of the threads. Pass storage to the memory, the Heed or a MessageHistory.'
      throw new HeedError('unsupported_option', why, { details: { option: 'storage' } })
    }
    parseWorkingMemory({ workingMemory: options })
    this.options = options
  }
}

type Lists = ReadonlyArray<readonly Processor[] | undefined>

/** A memory processor in one of the lists. It is recognized by its id: its class may come from another copy of this package. */
function findProcessor(lists: Lists, id: string): Processor | undefined {
  let found: Processor | undefined
  for (const list of lists) {
    // A plain loop: every run searches all lists, once per id.
    for (let index = 0; list !== undefined && index < list.length; index++) {
      const processor = list[index] as Processor
      if (processor.id !== id || processor === found) continue
      if (found)
        throw new HeedError('invalid_agent', `Two processors have the id '${id}', which only one may have. Remove one.`, {
          details: { processor: id },
        })
      found = processor
    }
  }
  return found
}

/**
 * The options of a MessageHistory in the lists; undefined without one. Another processor with that id brings history itself: the automatic
 * history is then left out.
 */
export function historyIn(lists: Lists): MemoryOptions | undefined {
  const named = findProcessor(lists, 'message-history') as Partial<MessageHistory> | undefined
  if (!named) return undefined
  return { lastMessages: defaultLastMessages, ...(named.options ?? { lastMessages: false }) }
}

/** The options of a WorkingMemory in the lists. Another processor with that id replaces working memory, which is then left out. */
export function workingMemoryOptionsIn(lists: Lists): WorkingMemoryOptions | undefined {
  const named = findProcessor(lists, 'working-memory') as { options?: WorkingMemoryOptions } | undefined
  return named && (named.options ?? { enabled: false })
}

/** The options, the embedder and the vectors of a SemanticRecall in the lists. Another processor with that id replaces recall. */
export function semanticRecallIn(lists: Lists): Pick<SemanticRecall, 'options' | 'embedder' | 'vector'> | undefined {
  const named = findProcessor(lists, 'semantic-recall') as Partial<SemanticRecall> | undefined
  return named && { options: named.options ?? { enabled: false }, embedder: named.embedder, vector: named.vector }
}

/** The storage of an agent's threads: the memory's, or a MessageHistory's. Both must be the same: a thread is stored once. */
export function storageIn(agent: string, memory: Storage | undefined, lists: Lists): Storage | undefined {
  const history = (findProcessor(lists, 'message-history') as Partial<MessageHistory> | undefined)?.storage
  if (!history || !memory || storageKey(history) === storageKey(memory)) return memory ?? history
  throw new HeedError(
    'invalid_agent',
    `MessageHistory and the memory of agent '${agent}' have different storages. Pass the same storage to both, or remove one.`,
    {
      details: { option: 'storage' },
    },
  )
}
