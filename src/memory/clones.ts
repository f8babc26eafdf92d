import { checkName, checkNames, checkWhole, refused } from '../base/arguments.ts'
import { newId } from '../base/ids.ts'
import type { JSONValue } from '../base/json.ts'
import type { Message } from '../message/message.ts'
import type { ThreadRow, ThreadStore } from '../store/contract/threads.ts'
import { callerQuota } from '../store/contract/usage.ts'
import { copyMetadata, parseScope, parseTime } from './arguments.ts'
import { allMessages } from './messages.ts'
import { checkTitle } from './titles.ts'

/** What `cloneThread()` copies. */
export interface CloneThreadArgs {
  sourceThreadId: string
  newThreadId?: string
  /** The resource of the copy. Defaults to the source's. */
  resourceId?: string
  title?: string
  /** The metadata of the copy; the source's is not copied. */
  metadata?: Record<string, JSONValue>
  options?: {
    /** Copies only the newest so many messages. */
    messageLimit?: number
    messageFilter?: { startDate?: Date; endDate?: Date; messageIds?: readonly string[] }
  }
  /** `false`: the copied messages are not read back, and `clonedMessages` is absent. For long threads. */
  readMessages?: boolean
}

/** The copy of a thread. */
export interface ClonedThread {
  thread: ThreadRow
  /** The messages of the copy. */
  clonedMessages: Message[]
}

/** The arguments of a clone whose messages are not read back. */
export type UnreadClone = CloneThreadArgs & { readMessages: false }

/** The origin of a clone, from its metadata. */
export interface CloneMetadata {
  sourceThreadId: string
  clonedAt: Date
  lastMessageId?: string
}

/** A longer history of clones is taken for a circle. */
const maxHistory = 1_000

export function cloneThread(store: ThreadStore, args: UnreadClone, now: number, owner?: string): Promise<Pick<ClonedThread, 'thread'>>
export function cloneThread(store: ThreadStore, args: CloneThreadArgs, now: number, owner?: string): Promise<ClonedThread>
/** The database copies the messages; they don't pass through the process. */
export async function cloneThread(
  store: ThreadStore,
  args: CloneThreadArgs,
  now: number,
  owner?: string,
): Promise<Pick<ClonedThread, 'thread'> | ClonedThread> {
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
  if (messageIds !== undefined && !(Array.isArray(messageIds) && messageIds.every((one) => typeof one === 'string'))) {
    throw refused('messageIds', 'a list of ids')
  }
  const from = parseTime('startDate', filter.startDate)
  const to = parseTime('endDate', filter.endDate)
  const thread = await store.cloneThread(parseScope(sourceThreadId, owner), {
    id,
    ...(resourceId !== undefined && { resourceId }),
    ...(title !== undefined && { title }),
    metadata: copyMetadata(args.metadata) ?? {},
    ...(limit !== undefined && { limit }),
    ...(from && { from }),
    ...(to && { to }),
    ...(messageIds && { messageIds }),
    ...callerQuota(),
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

/** Null when the thread is not a clone, or its source was deleted or belongs to another resource. */
export async function sourceOf(store: ThreadStore, threadId: string, owner?: string): Promise<ThreadRow | null> {
  const clone = cloneMetadataOf(await store.getThread(parseScope(threadId, owner)))
  const source = clone && (await store.getThread({ threadId: clone.sourceThreadId }))
  return source && (owner === undefined || source.resourceId === owner) ? source : null
}

export async function clonesOf(store: ThreadStore, sourceThreadId: string, resourceId?: string): Promise<ThreadRow[]> {
  checkName('sourceThreadId', sourceThreadId)
  const clones: ThreadRow[] = []
  const query = {
    cloneOf: sourceThreadId,
    orderBy: { field: 'createdAt', direction: 'ASC' },
    limit: 500,
    ...(resourceId !== undefined && { resourceId }),
  } as const
  for (;;) {
    const last = clones.at(-1)
    const { threads, more } = await store.listThreads({ ...query, ...(last && { after: { at: last.createdAt.getTime(), id: last.id } }) })
    clones.push(...threads)
    if (!more) return clones
  }
}

/** From the first source to this thread. It begins after a source that was deleted or belongs to another resource. */
export async function cloneHistory(store: ThreadStore, threadId: string, owner?: string): Promise<ThreadRow[]> {
  const history: ThreadRow[] = []
  const seen = new Set<string>()
  let next: string | undefined = threadId
  while (next !== undefined && !seen.has(next) && seen.size < maxHistory) {
    seen.add(next)
    const thread: ThreadRow | null = await store.getThread(next === threadId ? parseScope(next, owner) : { threadId: next })
    if (!thread || (owner !== undefined && thread.resourceId !== owner)) break
    history.unshift(thread)
    next = cloneMetadataOf(thread)?.sourceThreadId
  }
  return history
}
