import { HeedError } from '../base/errors.ts'
import type { Processor } from '../processors/processor.ts'
import type { MemoryOptions, WorkingMemoryOptions } from '../run/options.ts'
import { storageKey, type Storage } from '../store/contract/storage.ts'
import type { MessageHistory } from './message-history.ts'
import type { SemanticRecall } from './semantic-recall.ts'
import { defaultLastMessages } from './window.ts'

type Lists = ReadonlyArray<readonly Processor[] | undefined>

/** A memory processor in one of the lists. It is recognised by its id: its class may come from another copy of this package. */
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

/** The options and the embedder of a SemanticRecall in the lists. Another processor with that id replaces recall. */
export function semanticRecallIn(lists: Lists): Pick<SemanticRecall, 'options' | 'embedder'> | undefined {
  const named = findProcessor(lists, 'semantic-recall') as Partial<SemanticRecall> | undefined
  return named && { options: named.options ?? { enabled: false }, embedder: named.embedder }
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
