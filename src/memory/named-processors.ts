import { HeedError } from '../base/errors.ts'
import type { Processor } from '../processors/processor.ts'
import type { MemoryOptions, WorkingMemoryOptions } from '../run/options.ts'
import { placeOf, type Storage } from '../store/contract/storage.ts'
import type { MessageHistory } from './message-history.ts'
import type { SemanticRecall } from './semantic-recall.ts'
import { defaultLastMessages } from './window.ts'

type Lists = ReadonlyArray<readonly Processor[] | undefined>

/** A memory processor that was given by hand. It is known by its id: the class may come from another copy of this package. */
function namedProcessor(lists: Lists, id: string): Processor | undefined {
  let found: Processor | undefined
  for (const list of lists) {
    // Every run looks through all of them, for each name.
    for (let index = 0; list !== undefined && index < list.length; index++) {
      const processor = list[index] as Processor
      if (processor.id !== id || processor === found) continue
      if (found) throw new HeedError('invalid_agent', `Two processors are called '${id}', and only one can be the memory's. Leave one out.`, { details: { processor: id } })
      found = processor
    }
  }
  return found
}

/**
 * The window that a MessageHistory among these asks for; nothing when there is none. A stranger's processor of that name brings
 * history itself: the automatic one is then left out.
 */
export function historyIn(lists: Lists): MemoryOptions | undefined {
  const named = namedProcessor(lists, 'message-history') as Partial<MessageHistory> | undefined
  if (!named) return undefined
  return { lastMessages: defaultLastMessages, ...(named.options ?? { lastMessages: false }) }
}

/** The options of a WorkingMemory among these. A stranger's processor of that name does it itself: the automatic one is left out. */
export function workingMemoryOptionsIn(lists: Lists): WorkingMemoryOptions | undefined {
  const named = namedProcessor(lists, 'working-memory') as { options?: WorkingMemoryOptions } | undefined
  return named && (named.options ?? { enabled: false })
}

/** The options of a SemanticRecall among these, and its embedder. A stranger's processor of that name does it itself. */
export function semanticRecallIn(lists: Lists): Pick<SemanticRecall, 'options' | 'embedder'> | undefined {
  const named = namedProcessor(lists, 'semantic-recall') as Partial<SemanticRecall> | undefined
  return named && { options: named.options ?? { enabled: false }, embedder: named.embedder }
}

/** Where threads are kept: memory says so, or a MessageHistory. A thread can't be in two places, so both have to name the same one. */
export function storageIn(agent: string, memory: Storage | undefined, lists: Lists): Storage | undefined {
  const history = (namedProcessor(lists, 'message-history') as Partial<MessageHistory> | undefined)?.storage
  if (!history || !memory || placeOf(history) === placeOf(memory)) return memory ?? history
  throw new HeedError('invalid_agent', `MessageHistory and the memory of agent '${agent}' name two storages. A thread lives in one: name the same, or leave one out.`, {
    details: { option: 'storage' },
  })
}
