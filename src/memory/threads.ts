import { isDeepStrictEqual } from 'node:util'
import { checkName, checkNames, checkWhole, refused } from '../base/arguments.ts'
import { newId } from '../base/ids.ts'
import type { JSONValue } from '../base/json.ts'
import type { ThreadDependents } from '../store/contract/thread-row.ts'
import type { Scope, ThreadQuery, ThreadRow, ThreadStore } from '../store/contract/threads.ts'
import { callerQuota } from '../store/contract/usage.ts'
import { checkOrder, checkPage, copyMetadata, decodeCursor, encodeCursor, parseScope } from './arguments.ts'
import { checkTitle } from './titles.ts'
import { splitMetadata } from './working-memory/access.ts'
import type { WorkingMemorySetting } from './working-memory/setting.ts'

/** A thread that `createThread()` creates. */
export interface NewThreadArgs {
  resourceId: string
  threadId?: string
  title?: string
  metadata?: Record<string, JSONValue>
}

/** What `updateThread()` changes. */
export interface ThreadUpdate {
  id: string
  /** Rejects the call when the thread belongs to another resource. */
  resourceId?: string
  title?: string
  /** Merged key by key; null removes a key. */
  metadata?: Record<string, JSONValue | undefined>
}

type Scalar = string | number | boolean | null

/** Which threads `listThreads()` returns, and in which order. */
export interface ListThreadsArgs {
  filter?: {
    resourceId?: string
    /** All of these values must be equal; null also matches an absent key. */
    metadata?: Record<string, Scalar>
    /** Only the child threads of this thread. */
    parentId?: string
  }
  /** Includes child threads. */
  children?: boolean
  /** The former name of `filter.resourceId`. */
  resourceId?: string
  orderBy?: { field?: 'createdAt' | 'updatedAt'; direction?: 'ASC' | 'DESC' }
  /** From 0. */
  page?: number
  /** Defaults to 100; `false`: all. */
  perPage?: number | false
  /** The `nextCursor` of the previous page, instead of `page`: its cost does not grow with the position in the list. */
  cursor?: string
  /** Counts all threads that match. */
  total?: boolean
}

/** A page of threads. */
export interface ThreadList {
  threads: ThreadRow[]
  page: number
  perPage: number | false
  hasMore: boolean
  nextCursor?: string
  total?: number
}

export const listNames = ['filter', 'children', 'resourceId', 'orderBy', 'page', 'perPage', 'cursor', 'total']
const readAtOnce = 500

export async function createThread(
  store: ThreadStore,
  args: NewThreadArgs,
  now: number,
  setting?: WorkingMemorySetting,
): Promise<ThreadRow> {
  checkNames('createThread()', args, ['resourceId', 'threadId', 'title', 'metadata'])
  const { resourceId, threadId = newId(), title } = args
  checkName('resourceId', resourceId)
  checkName('threadId', threadId)
  checkTitle(title)
  const split = await splitMetadata(setting, copyMetadata(args.metadata))
  const optional = { ...(title !== undefined && { title }), ...split, ...callerQuota() }
  const { thread, created } = await store.createThread({ id: threadId, resourceId, ...optional, now })
  if (created || isDescribedBy(thread, title, split)) return thread
  return store.patchThread({ threadId, resourceId }, optional)
}

/** True where a thread has this title and these metadata already: to create it again changes nothing. */
function isDescribedBy(
  thread: ThreadRow, title: string | undefined, { metadata = {}, workingMemory }: Awaited<ReturnType<typeof splitMetadata>>,
): boolean {
  if (workingMemory || (title !== undefined && title !== thread.title)) return false
  return Object.entries(metadata).every(([key, value]) => isDeepStrictEqual(thread.metadata[key] ?? null, value ?? null))
}

export async function updateThread(store: ThreadStore, args: ThreadUpdate, setting?: WorkingMemorySetting): Promise<ThreadRow> {
  checkNames('updateThread()', args, ['id', 'resourceId', 'title', 'metadata'])
  const { title } = args
  checkTitle(title)
  const split = await splitMetadata(setting, copyMetadata(args.metadata))
  return store.patchThread(parseScope(args.id, args.resourceId), { ...(title !== undefined && { title }), ...split, ...callerQuota() })
}

/**
 * Deletes a thread with its child threads and its records in other stores, also those that an interrupted deletion left. The records of
 * child threads are deleted first: they can be found only while the thread exists.
 */
export async function deleteThread(store: ThreadStore, scope: Scope, belongings: () => Promise<ThreadDependents[]>): Promise<boolean> {
  const stores = await belongings()
  const children = (await store.getThread(scope)) ? await childThreadIds(store, scope) : []
  if (children.length > 0) for (const one of stores) await one.forgetThreads(children, scope.resourceId)
  const deleted = await store.deleteThread(scope)
  for (const one of stores) await one.forgetThreads([scope.threadId], scope.resourceId)
  return deleted
}

/** The ids of all child threads and their child threads, the deepest first. */
export async function childThreadIds(store: ThreadStore, { threadId, resourceId }: Scope): Promise<string[]> {
  const query = {
    parentId: threadId,
    orderBy: { field: 'createdAt', direction: 'ASC' },
    ...(resourceId !== undefined && { resourceId }),
  } as const
  const ids: string[] = []
  for (const { id } of await allThreads(store, query, undefined)) {
    ids.push(...(await childThreadIds(store, { threadId: id, ...(resourceId !== undefined && { resourceId }) })), id)
  }
  return ids
}

export async function listThreads(store: ThreadStore, args: ListThreadsArgs = {}): Promise<ThreadList> {
  const { query, list } = parseQuery(args)
  const perPage = args.perPage ?? 100
  if (perPage !== false) checkWhole('perPage', perPage, 1)
  const page = args.page ?? 0
  checkPage(page, perPage)
  const after = args.cursor === undefined ? undefined : decodeCursor(args.cursor, list)
  if (after && args.page !== undefined) throw refused('page', 'left out when a cursor is given')
  if (perPage === false) {
    const threads = await allThreads(store, query, after)
    return { threads, page: 0, perPage, hasMore: false, ...(args.total && { total: threads.length }) }
  }
  const result = await store.listThreads({
    ...query,
    limit: perPage,
    ...(after ? { after } : { offset: page * perPage }),
    ...(args.total && { total: true }),
  })
  const last = result.threads.at(-1)
  return {
    threads: result.threads,
    page,
    perPage,
    hasMore: result.more,
    ...(result.more && last && { nextCursor: encodeCursor({ list, ...positionOf(last, query) }) }),
    ...(result.total !== undefined && { total: result.total }),
  }
}

type ListQuery = Omit<ThreadQuery, 'limit'> & Required<Pick<ThreadQuery, 'orderBy'>>

function parseQuery(args: ListThreadsArgs): { query: ListQuery; list: string } {
  checkNames('listThreads()', args, listNames)
  checkNames('filter', args.filter ?? {}, ['resourceId', 'metadata', 'parentId'])
  if (args.children !== undefined && typeof args.children !== 'boolean') throw refused('children', 'true or false')
  const parentId = args.filter?.parentId ?? (args.children ? undefined : null)
  if (args.filter?.parentId !== undefined) checkName('filter.parentId', args.filter.parentId)
  const resourceId = args.filter?.resourceId ?? args.resourceId
  if (resourceId !== undefined) checkName('filter.resourceId', resourceId)
  if (args.resourceId !== undefined && args.resourceId !== resourceId) throw refused('resourceId', 'that of filter.resourceId, or left out')
  const metadata = args.filter?.metadata
  if (metadata !== undefined) checkScalars(metadata)
  checkOrder(args.orderBy, ['createdAt', 'updatedAt'])
  const { field = 'createdAt', direction = 'DESC' } = args.orderBy ?? {}
  const query: ListQuery = {
    orderBy: { field, direction },
    ...(resourceId !== undefined && { resourceId }),
    ...(metadata && { metadata }),
    ...(parentId !== undefined && { parentId }),
  }
  const sorted = Object.entries(metadata ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1))
  const conditions = JSON.stringify([resourceId ?? null, parentId ?? args.children ?? null, sorted])
  return { query, list: `threads ${field} ${direction} ${conditions}` }
}

function checkScalars(metadata: unknown): void {
  checkNames('filter.metadata', metadata, Object.keys(metadata ?? {}))
  for (const [key, value] of Object.entries(metadata as Record<string, unknown>)) {
    const isScalar =
      value === null || typeof value === 'string' || typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))
    if (!isScalar) throw refused(`filter.metadata.${key}`, 'a string, a number, true, false or null')
  }
}

function positionOf(thread: ThreadRow, { orderBy }: ListQuery): { at: number; id: string } {
  return { at: thread[orderBy.field].getTime(), id: thread.id }
}

async function allThreads(store: ThreadStore, query: ListQuery, from: { at: number; id: string } | undefined): Promise<ThreadRow[]> {
  const threads: ThreadRow[] = []
  let after = from
  for (;;) {
    const result = await store.listThreads({ ...query, limit: readAtOnce, ...(after && { after }) })
    threads.push(...result.threads)
    const last = result.threads.at(-1)
    if (!result.more || !last) return threads
    after = positionOf(last, query)
  }
}
