import { newId } from '../base/ids.ts'
import type { JSONValue } from '../base/json.ts'
import type { Belongings } from '../store/contract/thread-dependents.ts'
import type { Scope, ThreadQuery, ThreadRow, ThreadStore } from '../store/contract/threads.ts'
import { checkNames, checkOrder, checkPage, checkName, checkTitle, checkWhole, metadataOf, refused, scopeOf } from './arguments.ts'
import { cursorOf, placeIn } from './cursor.ts'
import { splitMetadata } from './working-memory/initial.ts'
import type { WorkingMemorySetting } from './working-memory/setting.ts'

export interface NewThreadArgs {
  resourceId: string
  threadId?: string
  title?: string
  metadata?: Record<string, JSONValue>
}

export interface ThreadUpdate {
  id: string
  /** Refuses the thread when it belongs to another resource. */
  resourceId?: string
  title?: string
  /** Merged key by key; null removes a key. */
  metadata?: Record<string, JSONValue | undefined>
}

type Scalar = string | number | boolean | null

export interface ListThreadsArgs {
  filter?: {
    resourceId?: string
    /** All of these values, each the very same; null is also what isn't there. */
    metadata?: Record<string, Scalar>
    /** Only the threads right below this one: those in which agents were asked that it called. */
    parentId?: string
  }
  /** Also threads below others, which are left out unless asked for. */
  children?: boolean
  /** Older names of the same. */
  resourceId?: string
  orderBy?: { field?: 'createdAt' | 'updatedAt'; direction?: 'ASC' | 'DESC' }
  /** From 0 on. */
  page?: number
  /** Defaults to 100; `false`: all. */
  perPage?: number | false
  /** `nextCursor` of the page before: costs the same however far in the list it is. In place of `page`. */
  cursor?: string
  /** Also count them. */
  total?: boolean
}

export interface ThreadList {
  threads: ThreadRow[]
  page: number
  perPage: number | false
  hasMore: boolean
  nextCursor?: string
  total?: number
}

export const listNames = ['filter', 'children', 'resourceId', 'orderBy', 'page', 'perPage', 'cursor', 'total']
const atOnce = 500

export async function createThread(store: ThreadStore, args: NewThreadArgs, now: number, setting?: WorkingMemorySetting): Promise<ThreadRow> {
  checkNames('createThread()', args, ['resourceId', 'threadId', 'title', 'metadata'])
  const { resourceId, threadId = newId(), title } = args
  checkName('resourceId', resourceId)
  checkName('threadId', threadId)
  checkTitle(title)
  const described = await splitMetadata(setting, metadataOf(args.metadata))
  const { thread } = await store.createThread({ id: threadId, resourceId, ...(title !== undefined && { title }), ...described, now })
  return thread
}

export async function updateThread(store: ThreadStore, args: ThreadUpdate, setting?: WorkingMemorySetting): Promise<ThreadRow> {
  checkNames('updateThread()', args, ['id', 'resourceId', 'title', 'metadata'])
  const { title } = args
  checkTitle(title)
  const described = await splitMetadata(setting, metadataOf(args.metadata))
  return store.patchThread(scopeOf(args.id, args.resourceId), { ...(title !== undefined && { title }), ...described })
}

/**
 * With the threads below it, and its belongings wherever they are: also those of a thread whose deletion was cut short. What hangs on those
 * below goes first: while the thread is there, they are found.
 */
export async function deleteThread(store: ThreadStore, scope: Scope, belongings: () => Promise<Belongings[]>): Promise<boolean> {
  const places = await belongings()
  const below = (await store.getThread(scope)) ? await idsBelow(store, scope) : []
  if (below.length > 0) for (const place of places) await place.forgetThreads(below, scope.resourceId)
  const deleted = await store.deleteThread(scope)
  for (const place of places) await place.forgetThreads([scope.threadId], scope.resourceId)
  return deleted
}

/** Of the threads below one and below those, the deepest first. */
export async function idsBelow(store: ThreadStore, { threadId, resourceId }: Scope): Promise<string[]> {
  const query = { parentId: threadId, orderBy: { field: 'createdAt', direction: 'ASC' }, ...(resourceId !== undefined && { resourceId }) } as const
  const ids: string[] = []
  for (const { id } of await allThreads(store, query, undefined)) ids.push(...(await idsBelow(store, { threadId: id, ...(resourceId !== undefined && { resourceId }) })), id)
  return ids
}

export async function listThreads(store: ThreadStore, args: ListThreadsArgs = {}): Promise<ThreadList> {
  const { query, list } = queryOf(args)
  const perPage = args.perPage ?? 100
  if (perPage !== false) checkWhole('perPage', perPage, 1)
  const page = args.page ?? 0
  checkPage(page, perPage)
  const after = args.cursor === undefined ? undefined : placeIn(args.cursor, list)
  if (after && args.page !== undefined) throw refused('page', 'left out where a cursor is given')
  if (perPage === false) {
    const threads = await allThreads(store, query, after)
    return { threads, page: 0, perPage, hasMore: false, ...(args.total && { total: threads.length }) }
  }
  const found = await store.listThreads({ ...query, limit: perPage, ...(after ? { after } : { offset: page * perPage }), ...(args.total && { total: true }) })
  const last = found.threads.at(-1)
  return {
    threads: found.threads,
    page,
    perPage,
    hasMore: found.more,
    ...(found.more && last && { nextCursor: cursorOf({ list, at: placeOf(last, query).at, id: last.id }) }),
    ...(found.total !== undefined && { total: found.total }),
  }
}

type Wanted = Omit<ThreadQuery, 'limit'> & Required<Pick<ThreadQuery, 'orderBy'>>

function queryOf(args: ListThreadsArgs): { query: Wanted; list: string } {
  checkNames('listThreads()', args, listNames)
  checkNames('filter', args.filter ?? {}, ['resourceId', 'metadata', 'parentId'])
  if (args.children !== undefined && typeof args.children !== 'boolean') throw refused('children', 'true or false')
  const parentId = args.filter?.parentId ?? (args.children ? undefined : null)
  if (args.filter?.parentId !== undefined) checkName('filter.parentId', args.filter.parentId)
  const resourceId = args.filter?.resourceId ?? args.resourceId
  if (resourceId !== undefined) checkName('filter.resourceId', resourceId)
  const metadata = args.filter?.metadata
  if (metadata !== undefined) checkScalars(metadata)
  checkOrder(args.orderBy, ['createdAt', 'updatedAt'])
  const { field = 'createdAt', direction = 'DESC' } = args.orderBy ?? {}
  const query: Wanted = { orderBy: { field, direction }, ...(resourceId !== undefined && { resourceId }), ...(metadata && { metadata }), ...(parentId !== undefined && { parentId }) }
  return { query, list: `threads ${field} ${direction} ${JSON.stringify([resourceId ?? null, parentId ?? args.children ?? null, Object.entries(metadata ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1))])}` }
}

function checkScalars(metadata: unknown): void {
  checkNames('filter.metadata', metadata, Object.keys(metadata ?? {}))
  for (const [key, value] of Object.entries(metadata as Record<string, unknown>)) {
    const fits = value === null || typeof value === 'string' || typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))
    if (!fits) throw refused(`filter.metadata.${key}`, 'a text, a number, true, false or null')
  }
}

function placeOf(thread: ThreadRow, { orderBy }: Wanted): { at: number; id: string } {
  return { at: thread[orderBy.field].getTime(), id: thread.id }
}

async function allThreads(store: ThreadStore, query: Wanted, from: { at: number; id: string } | undefined): Promise<ThreadRow[]> {
  const threads: ThreadRow[] = []
  let after = from
  for (;;) {
    const found = await store.listThreads({ ...query, limit: atOnce, ...(after && { after }) })
    threads.push(...found.threads)
    const last = found.threads.at(-1)
    if (!found.more || !last) return threads
    after = placeOf(last, query)
  }
}
