import { HeedError } from '../../base/errors.ts'
import type { JSONValue } from '../../base/json.ts'
import { requireResource, resolveResource } from '../auth/principal.ts'
import {
  agentMemory, callerMemory, memoryBody, memoryQuery, requireCallerThread, threadIdOf, unlessForeign, type MemoryQuery,
} from '../request/access.ts'
import { omitUndefined } from '../request/fields.ts'
import { route, type Route } from '../route.ts'
import * as responses from '../schema/response-schemas.ts'
import { flag, id, object, page, perPage, record, text } from '../schema/schemas.ts'

interface ListQuery extends MemoryQuery {
  metadata?: Record<string, string | number | boolean | null>
  orderBy?: { field?: 'createdAt' | 'updatedAt'; direction?: 'ASC' | 'DESC' }
  page?: number
  perPage?: number
  cursor?: string
  parentId?: string
  children?: boolean
  total?: boolean
}

interface Patch {
  title?: string
  metadata?: Record<string, JSONValue>
}

interface CloneBody extends Patch {
  newThreadId?: string
  resourceId?: string
  options?: Record<string, unknown>
  readMessages?: boolean
}

const all = '/memory/threads'
const one = `${all}/:threadId`
const query = object(memoryQuery)
const order = object({ field: { enum: ['createdAt', 'updatedAt'] }, direction: { enum: ['ASC', 'DESC'] } })

/** The number of messages in the response of a clone; older ones are read page by page. */
const maxClonedMessages = 1_000

/** Threads, as existing clients list and change them, and their clones. */
export const threads: readonly Route[] = [
  route<never, ListQuery>({
    method: 'GET',
    path: all,
    summary: 'Threads, with their active runs',
    response: 'json',
    responseSchema: responses.threadPage,
    read: true,
    query: object({
      ...memoryQuery, metadata: record, orderBy: order, page, perPage, cursor: text, parentId: id, children: flag, total: flag,
    }),
    async handle(call) {
      const { agentId: _, resourceId: __, metadata, parentId, total = call.query.cursor === undefined, ...rest } = call.query
      return (await callerMemory(call)).listThreads({ ...rest, filter: omitUndefined({ metadata, parentId }), total })
    },
  }),
  route<Patch & { resourceId?: string; threadId?: string }, MemoryQuery>({
    method: 'POST',
    path: all,
    summary: 'Creates a thread',
    creates: true,
    response: 'json',
    responseSchema: responses.thread,
    query,
    body: object({ ...memoryBody, resourceId: id, threadId: id, title: text, metadata: record }),
    async handle(call) {
      const { resourceId, threadId, title, metadata } = call.body
      const resource = requireResource(call.principal, resourceId ?? call.query.resourceId)
      return (await agentMemory(call)).forResource(resource).createThread(omitUndefined({ threadId, title, metadata }))
    },
  }),
  route<never, MemoryQuery>({
    method: 'GET',
    path: one,
    summary: 'One thread',
    response: 'json',
    responseSchema: responses.thread,
    read: true,
    query,
    handle: (call) => requireCallerThread(call),
  }),
  route<Patch & { resourceId?: string }, MemoryQuery>({
    method: 'PATCH',
    path: one,
    summary: 'Changes title and metadata; null removes a key',
    response: 'json',
    responseSchema: responses.thread,
    query,
    body: object({ title: text, metadata: record, resourceId: id }),
    async handle(call) {
      const { title, metadata, resourceId } = call.body
      const memory = await callerMemory(call, resourceId ?? call.query.resourceId)
      return memory.updateThread({ id: threadIdOf(call), ...omitUndefined({ title, metadata }) })
    },
  }),
  route<never, MemoryQuery>({
    method: 'DELETE',
    path: one,
    summary: 'Deletes a thread and everything that belongs to it',
    response: 'json',
    responseSchema: responses.deletedThread,
    query,
    async handle(call) {
      await unlessForeign(call, (await callerMemory(call)).deleteThread({ threadId: threadIdOf(call) }), () => undefined)
      return { result: 'Thread deleted' }
    },
  }),
  route<CloneBody, MemoryQuery>({
    method: 'POST',
    path: `${one}/clone`,
    summary: `Clones a thread; the response has its newest ${maxClonedMessages} messages unless readMessages is false`,
    response: 'json',
    responseSchema: responses.clonedThread,
    query,
    body: object({ newThreadId: id, resourceId: id, title: text, metadata: record, options: record, readMessages: flag }),
    async handle(call) {
      const { newThreadId, resourceId, title, metadata, options, readMessages = true } = call.body
      const memory = await callerMemory(call, resourceId ?? call.query.resourceId)
      const optional = omitUndefined({ newThreadId, title, metadata, options })
      const { thread } = await memory.cloneThread({ sourceThreadId: threadIdOf(call), ...optional, readMessages: false })
      if (!readMessages) return { thread }
      const { messages } = await memory.recall({ threadId: thread.id, perPage: maxClonedMessages })
      return { thread, clonedMessages: messages }
    },
  }),
  route<{ resourceId: string }, MemoryQuery>({
    method: 'POST',
    path: `${one}/transfer`,
    summary: 'Transfers a thread to another resource',
    response: 'json',
    responseSchema: responses.thread,
    query,
    body: object({ resourceId: id }, ['resourceId']),
    async handle(call) {
      const from = resolveResource(call.principal, call.query.resourceId)
      const resourceId = resolveResource(call.principal, call.body.resourceId) ?? call.body.resourceId
      return (await agentMemory(call)).transferThread({ threadId: threadIdOf(call), resourceId, ...omitUndefined({ from }) })
    },
  }),
  route<never, MemoryQuery>({
    method: 'GET',
    path: `${one}/clones`,
    summary: 'The clones of a thread, oldest first',
    response: 'json',
    responseSchema: responses.threadList,
    read: true,
    query,
    async handle(call) {
      await requireCallerThread(call)
      return { threads: await (await callerMemory(call)).listClones(threadIdOf(call)) }
    },
  }),
  route<never, MemoryQuery>({
    method: 'GET',
    path: `${one}/source`,
    summary: 'The thread that this one was cloned from',
    response: 'json',
    responseSchema: responses.thread,
    read: true,
    query,
    async handle(call) {
      await requireCallerThread(call)
      const threadId = threadIdOf(call)
      const source = await (await callerMemory(call)).getSourceThread(threadId)
      if (!source) throw new HeedError('not_found', 'This thread is not a clone, or its source was deleted.', { details: { threadId } })
      return source
    },
  }),
  route<never, MemoryQuery>({
    method: 'GET',
    path: `${one}/clone-history`,
    summary: 'The chain of clones from the first source to this thread',
    response: 'json',
    responseSchema: responses.threadList,
    read: true,
    query,
    async handle(call) {
      await requireCallerThread(call)
      return { threads: await (await callerMemory(call)).getCloneHistory(threadIdOf(call)) }
    },
  }),
]
