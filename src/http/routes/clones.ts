import { HeedError } from '../../base/errors.ts'
import { ownMemory, type MemoryQuery } from './memory-of.ts'
import { route, type Route } from '../route.ts'
import { object } from '../schema/schemas.ts'
import { found, of, threadOf } from './threads.ts'

const path = '/memory/threads/:threadId'

/** Where threads were copied from, and where to. */
export const clones: readonly Route[] = [
  route<never, MemoryQuery>({
    method: 'GET', path: `${path}/clones`, summary: 'Copies of a thread, the oldest first', answer: 'json', read: true, query: object(of),
    async handle(call) {
      await found(call)
      return { threads: await (await ownMemory(call)).listClones(threadOf(call)) }
    },
  }),
  route<never, MemoryQuery>({
    method: 'GET', path: `${path}/source`, summary: 'The thread that this one is a copy of', answer: 'json', read: true, query: object(of),
    async handle(call) {
      await found(call)
      const source = await (await ownMemory(call)).getSourceThread(threadOf(call))
      if (!source) throw new HeedError('not_found', 'This thread is no copy, or its source is gone.', { details: { threadId: threadOf(call) } })
      return source
    },
  }),
  route<never, MemoryQuery>({
    method: 'GET', path: `${path}/clone-history`, summary: 'From the first source to this thread, each a copy of the one before', answer: 'json', read: true, query: object(of),
    async handle(call) {
      await found(call)
      return { threads: await (await ownMemory(call)).getCloneHistory(threadOf(call)) }
    },
  }),
]
