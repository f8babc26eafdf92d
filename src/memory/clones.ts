import { newId } from '../base/ids.ts'
import type { JSONValue } from '../base/json.ts'
import type { Message } from '../message/message.ts'
import type { ThreadRow, ThreadStore } from '../store/contract/threads.ts'
import { checkNames, checkName, checkTitle, checkWhole, metadataOf, refused, scopeOf, timeOf } from './arguments.ts'
import { allMessages } from './messages.ts'

export interface CloneThreadArgs {
  sourceThreadId: string
  newThreadId?: string
  /** Whose the copy is. Defaults to the source's. */
  resourceId?: string
  title?: string
  /** Of the copy. The source's is not taken along. */
  metadata?: Record<string, JSONValue>
  options?: {
    /** The newest so many. */
    messageLimit?: number
    messageFilter?: { startDate?: Date; endDate?: Date; messageIds?: readonly string[] }
  }
  /** `false`: what was copied stays in the database, and `clonedMessages` isn't there. For long threads that nobody looks at. */
  readMessages?: boolean
}

export interface ClonedThread {
  thread: ThreadRow
  /** Read from the copy, a page at a time, once it is made. */
  clonedMessages: Message[]
}

/** Of a clone whose messages are not read. */
export type UnreadClone = CloneThreadArgs & { readMessages: false }

/** Where a copy came from, as its metadata has it. */
export interface CloneMetadata {
  sourceThreadId: string
  clonedAt: Date
  lastMessageId?: string
}

/** A history of clones that is longer than this has a circle in it. */
const longestHistory = 1_000

export function cloneThread(store: ThreadStore, args: UnreadClone, now: number, owner?: string): Promise<Pick<ClonedThread, 'thread'>>
export function cloneThread(store: ThreadStore, args: CloneThreadArgs, now: number, owner?: string): Promise<ClonedThread>
/** The copying itself happens in the database: no message passes through the program for it. */
export async function cloneThread(store: ThreadStore, args: CloneThreadArgs, now: number, owner?: string): Promise<Pick<ClonedThread, 'thread'> | ClonedThread> {
  checkNames('cloneThread()', args, ['sourceThreadId', 'newThreadId', 'resourceId', 'title', 'metadata', 'options', 'readMessages'])
  checkNames('options', args.options ?? {}, ['messageLimit', 'messageFilter'])
  const filter = args.options?.messageFilter ?? {}
  checkNames('options.messageFilter', filter, ['startDate', 'endDate', 'messageIds'])
  const { sourceThreadId, newThreadId: id = newId(), resourceId, title } = args
  checkName('sourceThreadId', sourceThreadId)
  checkName('newThreadId', id)
  if (resourceId !== undefined) checkName('resourceId', resourceId)
  checkTitle(title)
  if (args.readMessages !== undefined && typeof args.readMessages !== 'boolean') throw refused('readMessages', 'true or false')
  const limit = args.options?.messageLimit
  if (limit !== undefined) checkWhole('options.messageLimit', limit)
  const { messageIds } = filter
  if (messageIds !== undefined && !(Array.isArray(messageIds) && messageIds.every((one) => typeof one === 'string'))) throw refused('messageIds', 'a list of ids')
  const from = timeOf('startDate', filter.startDate)
  const to = timeOf('endDate', filter.endDate)
  const thread = await store.cloneThread(scopeOf(sourceThreadId, owner), {
    id,
    ...(resourceId !== undefined && { resourceId }),
    ...(title !== undefined && { title }),
    metadata: metadataOf(args.metadata) ?? {},
    ...(limit !== undefined && { limit }),
    ...(from && { from }),
    ...(to && { to }),
    ...(messageIds && { messageIds }),
    now,
  })
  if (args.readMessages === false) return { thread }
  const copied = await allMessages(store, { threadId: thread.id })
  return { thread, clonedMessages: copied.map(({ message }) => message) }
}

export function cloneMetadataOf(thread: Pick<ThreadRow, 'metadata'> | null | undefined): CloneMetadata | null {
  const clone = thread?.metadata?.clone
  if (typeof clone !== 'object' || clone === null || Array.isArray(clone)) return null
  const { sourceThreadId, clonedAt, lastMessageId } = clone
  if (typeof sourceThreadId !== 'string' || typeof clonedAt !== 'string') return null
  return { sourceThreadId, clonedAt: new Date(clonedAt), ...(typeof lastMessageId === 'string' && { lastMessageId }) }
}

/** Null for what is no clone, and where the source is gone or another's. */
export async function sourceOf(store: ThreadStore, threadId: string, owner?: string): Promise<ThreadRow | null> {
  const clone = cloneMetadataOf(await store.getThread(scopeOf(threadId, owner)))
  const source = clone && (await store.getThread({ threadId: clone.sourceThreadId }))
  return source && (owner === undefined || source.resourceId === owner) ? source : null
}

export async function clonesOf(store: ThreadStore, sourceThreadId: string, resourceId?: string): Promise<ThreadRow[]> {
  checkName('sourceThreadId', sourceThreadId)
  const clones: ThreadRow[] = []
  const query = { cloneOf: sourceThreadId, orderBy: { field: 'createdAt', direction: 'ASC' }, limit: 500, ...(resourceId !== undefined && { resourceId }) } as const
  for (;;) {
    const last = clones.at(-1)
    const { threads, more } = await store.listThreads({ ...query, ...(last && { after: { at: last.createdAt.getTime(), id: last.id } }) })
    clones.push(...threads)
    if (!more) return clones
  }
}

/** From the first thread to this one. It ends where a source is gone, or is another's. */
export async function cloneHistory(store: ThreadStore, threadId: string, owner?: string): Promise<ThreadRow[]> {
  const history: ThreadRow[] = []
  const seen = new Set<string>()
  let next: string | undefined = threadId
  while (next !== undefined && !seen.has(next) && seen.size < longestHistory) {
    seen.add(next)
    const thread: ThreadRow | null = await store.getThread(next === threadId ? scopeOf(next, owner) : { threadId: next })
    if (!thread || (owner !== undefined && thread.resourceId !== owner)) break
    history.unshift(thread)
    next = cloneMetadataOf(thread)?.sourceThreadId
  }
  return history
}
