import type { JSONValue } from '../../base/json.ts'
import { HeedError } from '../../base/errors.ts'
import * as shapes from '../schema/answer-schemas.ts'
import { memoryOf, ownMemory, type MemoryQuery } from './memory-of.ts'
import { resourceOf } from '../auth/principal.ts'
import { route, type Call, type Route } from '../route.ts'
import { flag, id, object, page, perPage, record, text } from '../schema/schemas.ts'

interface ListQuery extends MemoryQuery {
  metadata?: Record<string, string | number | boolean | null>
  orderBy?: { field?: 'createdAt' | 'updatedAt'; direction?: 'ASC' | 'DESC' }
  page?: number
  perPage?: number
  cursor?: string
}

interface Patch {
  title?: string
  metadata?: Record<string, JSONValue>
}

export const of = { agentId: id, resourceId: id }
const order = object({ field: { enum: ['createdAt', 'updatedAt'] }, direction: { enum: ['ASC', 'DESC'] } })
const thread = object({ title: text, metadata: record })

/** Of a copy, in one answer; those that are older are read page by page. */
const mostCopied = 1_000

/** Threads as existing clients list and change them. */
export const threads: readonly Route[] = [
  route<never, ListQuery>({
    method: 'GET', path: '/memory/threads', summary: 'Threads, with what is active on them', answer: 'json', answers: shapes.threadPage, read: true,
    query: object({ ...of, metadata: record, orderBy: order, page, perPage, cursor: text }),
    async handle(call) {
      const { agentId: _, resourceId: __, metadata, ...rest } = call.query
      const memory = await ownMemory(call)
      return memory.listThreads({ ...rest, ...(metadata ? { filter: { metadata } } : {}), ...(rest.cursor === undefined ? { total: true } : {}) })
    },
  }),
  route<Patch & { resourceId?: string; threadId?: string }, MemoryQuery>({
    method: 'POST', path: '/memory/threads', summary: 'A new thread', answer: 'json', answers: shapes.thread, query: object(of),
    body: object({ ...of, threadId: id, title: text, metadata: record }),
    async handle(call) {
      const { resourceId, threadId, title, metadata } = call.body
      const resource = resourceOf(call.principal, resourceId ?? call.query.resourceId)
      if (resource === undefined) throw new HeedError('invalid_argument', 'resourceId is missing: say whom the thread belongs to.', { details: { field: 'resourceId' } })
      return (await memoryOf(call)).forResource(resource).createThread({ ...given({ threadId, title, metadata }) })
    },
  }),
  route<never, MemoryQuery>({
    method: 'GET', path: '/memory/threads/:threadId', summary: 'One thread', answer: 'json', answers: shapes.thread, read: true, query: object(of),
    handle: (call) => found(call),
  }),
  route<Patch & { resourceId?: string }, MemoryQuery>({
    method: 'PATCH', path: '/memory/threads/:threadId', summary: 'Changes title and metadata; null removes a key', answer: 'json', answers: shapes.thread, query: object(of),
    body: object({ ...thread.properties, resourceId: id }),
    handle: async (call) => (await ownMemory(call, call.body.resourceId ?? call.query.resourceId)).updateThread({ id: threadOf(call), ...given({ title: call.body.title, metadata: call.body.metadata }) }),
  }),
  route<never, MemoryQuery>({
    method: 'DELETE', path: '/memory/threads/:threadId', summary: 'Deletes a thread with everything that belongs to it', answer: 'json', answers: shapes.deletedThread, query: object(of),
    async handle(call) {
      await (await ownMemory(call)).deleteThread({ threadId: threadOf(call) })
      return { result: 'Thread deleted' }
    },
  }),
  route<{ newThreadId?: string; resourceId?: string; title?: string; metadata?: Record<string, JSONValue>; options?: Record<string, unknown>; readMessages?: boolean }, MemoryQuery>({
    method: 'POST', path: '/memory/threads/:threadId/clone', summary: `A copy of a thread, and its newest ${mostCopied} messages unless readMessages is false`, answer: 'json', answers: shapes.copy, query: object(of),
    body: object({ newThreadId: id, resourceId: id, title: text, metadata: record, options: record, readMessages: flag }),
    async handle(call) {
      const { newThreadId, resourceId, title, metadata, options, readMessages = true } = call.body
      const memory = await ownMemory(call, resourceId ?? call.query.resourceId)
      const { thread } = await memory.cloneThread({ sourceThreadId: threadOf(call), ...given({ newThreadId, title, metadata, options }), readMessages: false })
      return readMessages ? { thread, clonedMessages: (await memory.recall({ threadId: thread.id, perPage: mostCopied })).messages } : { thread }
    },
  }),
  route<{ resourceId: string }, MemoryQuery>({
    method: 'POST', path: '/memory/threads/:threadId/transfer', summary: 'Gives a thread to another resource', answer: 'json', answers: shapes.thread, query: object(of), body: object({ resourceId: id }, ['resourceId']),
    async handle(call) {
      const from = resourceOf(call.principal, call.query.resourceId)
      const to = resourceOf(call.principal, call.body.resourceId) ?? call.body.resourceId
      return (await memoryOf(call)).transferThread({ threadId: threadOf(call), resourceId: to, ...(from === undefined ? {} : { from }) })
    },
  }),
]

export async function found(call: Call<unknown, MemoryQuery>): Promise<unknown> {
  const threadId = threadOf(call)
  const thread = await (await ownMemory(call)).getThreadById({ threadId })
  if (!thread) throw new HeedError('thread_not_found', 'There is no such thread.', { details: { threadId } })
  return thread
}

export function threadOf({ params }: { params: Readonly<Record<string, string>> }): string {
  return params.threadId ?? ''
}

/** Without what is undefined: an option that isn't given is not there. */
export function given<T extends object>(values: T): { [Key in keyof T]: Exclude<T[Key], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as { [Key in keyof T]: Exclude<T[Key], undefined> }
}
