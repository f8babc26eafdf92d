import { checkName, checkNames, checkWhole, refused } from '../base/arguments.ts'
import type { Message } from '../message/message.ts'
import type { MemoryOptions } from '../run/options.ts'
import type { Scope, ThreadStore } from '../store/contract/threads.ts'
import type { MessageStart } from '../store/contract/messages.ts'
import type { IncompleteReason, RecallHit } from '../store/contract/recall.ts'
import { checkOrder, checkPage, decodeCursor, encodeCursor, parseScope, parseTime } from './arguments.ts'
import { allMessages, countMessages, findStart, messagesAt, readStarts, type PositionedMessage, type Span } from './messages.ts'
import { checkListConfig } from './thread-config.ts'

/** A message that a page has besides its own, with messages around it. */
export interface IncludedMessage {
  id: string
  /** When the message is in another thread than those in `RecallArgs.threadId`. */
  threadId?: string
  withPreviousMessages?: number
  withNextMessages?: number
}

/** Which messages `recall()` returns. */
export interface RecallArgs {
  threadId: string | string[]
  /** Rejects threads that belong to another resource. */
  resourceId?: string
  /** From 0. Without `orderBy`, page 0 has the newest messages. */
  page?: number
  /** `false`: all. Defaults to `lastMessages` of the memory. */
  perPage?: number | false
  /** The `nextCursor` of the previous page, instead of `page`: its cost does not grow with the position in the thread. */
  cursor?: string
  /** The end that page 0 begins at, and the order of a page. Without it: the newest page, in chronological order. */
  orderBy?: { field?: 'createdAt'; direction?: 'ASC' | 'DESC' }
  /** With `vectorSearchString`: both the messages that are found and their neighbors are within the range. */
  filter?: { dateRange?: { start?: Date; end?: Date; startExclusive?: boolean; endExclusive?: boolean } }
  /** Adds these messages and their neighbors. Without `page`, `perPage`, `cursor` and `filter`, returns only them. */
  include?: readonly IncludedMessage[]
  /**
   * Returns only the `perPage` messages that fit this text best: of all threads of the resource, or of one thread with the scope `thread`.
   */
  vectorSearchString?: string
  /** Counts all messages that match. */
  total?: boolean
  /** Options for this call alone: `semanticRecall` with `vectorSearchString`, `lastMessages` without it. */
  threadConfig?: MemoryOptions
}

/** A page of messages, with the hits of a search. */
export interface RecalledMessages {
  messages: Message[]
  page: number
  perPage: number | false
  hasMore: boolean
  nextCursor?: string
  total?: number
  /** With `vectorSearchString`: the hits, best first, with their scores and reasons. */
  hits?: RecallHit[]
  /** With `vectorSearchString`: the searched scope. */
  scope?: 'resource' | 'thread'
  /** With `vectorSearchString`: the search could not find every message that it should. Search again later. */
  incomplete?: true
  /** Why: `indexing`: the index does not have all messages yet; `vectors`: the vector store did not answer, so that words alone counted. */
  incompleteReason?: IncompleteReason
}

const names = ['threadId', 'resourceId', 'page', 'perPage', 'cursor', 'orderBy', 'filter', 'include', 'total', 'threadConfig']

/** Messages of one thread. */
interface ThreadPart {
  scope: Scope
  messages: PositionedMessage[]
}

export async function recall(store: ThreadStore, given: RecallArgs, defaultPerPage: number): Promise<RecalledMessages> {
  checkArguments(given, defaultPerPage)
  const args = { ...given, threadId: [...new Set([given.threadId].flat())] }
  const scopes = args.threadId.map((threadId) => parseScope(threadId, args.resourceId))
  const existing: Scope[] = []
  for (const scope of scopes) if (await store.getThread(scope)) existing.push(scope)
  const page = args.page ?? 0
  const perPage = args.perPage ?? defaultPerPage
  const order = args.orderBy?.direction
  const found = isOnlyIncluded(args) ? { parts: [], merged: [], more: false } : await readPage(store, existing, args, page, perPage)
  const included = await readIncluded(store, existing, args)
  const messages = included.length === 0 ? found.merged : merge([...found.parts, ...included])
  const total = args.total ? await countAll(store, existing, args) : undefined
  return {
    messages: (order === 'DESC' ? messages.toReversed() : messages).map(({ message }) => message),
    page,
    perPage,
    hasMore: found.more,
    ...(found.more && nextCursor(args, found.merged)),
    ...(total !== undefined && { total }),
  }
}

function checkArguments(args: RecallArgs, defaultPerPage: number): void {
  checkNames('recall()', args, names)
  const { threadId, page, perPage, cursor, orderBy, filter, include } = args
  if (Array.isArray(threadId) ? threadId.length === 0 : threadId === undefined) {
    throw refused('threadId', 'the id of a thread, or a list of them')
  }
  if (perPage !== undefined && perPage !== false) checkWhole('perPage', perPage)
  if (page !== undefined) checkPage(page, perPage ?? defaultPerPage)
  checkOrder(orderBy, ['createdAt'])
  checkFilter(filter)
  checkListConfig(args.threadConfig, perPage)
  if (include !== undefined && !Array.isArray(include)) throw refused('include', 'a list of { id }')
  for (const item of include ?? []) {
    checkNames('include', item, ['id', 'threadId', 'withPreviousMessages', 'withNextMessages'])
    checkName('include.id', item.id)
    for (const name of ['withPreviousMessages', 'withNextMessages'] as const)
      if (item[name] !== undefined) checkWhole(`include.${name}`, item[name])
  }
  if (cursor === undefined) return
  if (Array.isArray(threadId) && new Set(threadId).size > 1) throw refused('cursor', 'left out when several threads are read')
  if (page !== undefined || perPage === false) throw refused('cursor', 'given without page, and with a perPage that is a number')
}

export function checkFilter(filter: RecallArgs['filter']): void {
  checkNames('filter', filter ?? {}, ['dateRange'])
  const range = filter?.dateRange ?? {}
  checkNames('filter.dateRange', range, ['start', 'end', 'startExclusive', 'endExclusive'])
  for (const side of ['start', 'end'] as const) {
    const exclusive = range[`${side}Exclusive`]
    if (exclusive !== undefined && typeof exclusive !== 'boolean') throw refused(`filter.dateRange.${side}Exclusive`, 'true or false')
    if (exclusive && (range[side] ?? undefined) === undefined) {
      throw refused(`filter.dateRange.${side}Exclusive`, `given with filter.dateRange.${side}`)
    }
  }
}

function isOnlyIncluded({ include, page, perPage, cursor, filter }: RecallArgs): boolean {
  return (
    include !== undefined &&
    include.length > 0 &&
    page === undefined &&
    perPage === undefined &&
    cursor === undefined &&
    filter === undefined
  )
}

/** The first and the last time of the date range, both inclusive. */
export function timesOf({ filter }: Pick<RecallArgs, 'filter'>): Pick<Span, 'start' | 'end'> {
  const { startExclusive, endExclusive, ...range } = filter?.dateRange ?? {}
  const start = parseTime('filter.dateRange.start', range.start)
  const end = parseTime('filter.dateRange.end', range.end)
  return {
    ...(start && { start: startExclusive ? new Date(start.getTime() + 1) : start }),
    ...(end && { end: endExclusive ? new Date(end.getTime() - 1) : end }),
  }
}

interface Page {
  parts: ThreadPart[]
  merged: PositionedMessage[]
  more: boolean
}

async function readPage(
  store: ThreadStore,
  scopes: readonly Scope[],
  args: RecallArgs,
  page: number,
  perPage: number | false,
): Promise<Page> {
  const times = timesOf(args)
  if (perPage === false && !times.start && !times.end) {
    const parts = await Promise.all(scopes.map(async (scope) => ({ scope, messages: await allMessages(store, scope) })))
    return { parts, merged: merge(parts), more: false }
  }
  const from = args.orderBy?.direction === 'ASC' ? 'oldest' : 'newest'
  const [only] = scopes
  if (scopes.length === 1 && only) {
    const limit = perPage === false ? Number.MAX_SAFE_INTEGER : perPage
    const beyond = await cursorSeq(store, only, args)
    const { starts, more } = await readStarts(store, only, {
      from,
      limit,
      skip: perPage === false ? 0 : page * perPage,
      ...(beyond !== undefined && { beyond }),
      ...times,
    })
    const messages = await messagesAt(store, only, starts)
    return { parts: [{ scope: only, messages }], merged: messages, more }
  }
  return readPageOfSeveral(store, scopes, { from, ...times }, page, perPage)
}

/**
 * Orders the messages of several threads by time. Each thread keeps its own order; for equal times, the thread that was named first is
 * first.
 */
async function readPageOfSeveral(
  store: ThreadStore,
  scopes: readonly Scope[],
  span: Omit<Span, 'limit'>,
  page: number,
  perPage: number | false,
): Promise<Page> {
  const needed = perPage === false ? Number.MAX_SAFE_INTEGER : Math.min((page + 1) * perPage + 1, Number.MAX_SAFE_INTEGER)
  const lists = await Promise.all(scopes.map(async (scope) => (await readStarts(store, scope, { ...span, limit: needed })).starts))
  const ordered = interleave(lists, ({ createdAt }) => createdAt.getTime(), span.from === 'newest')
  const wanted =
    perPage === false
      ? ordered
      : span.from === 'newest'
        ? pageFromEnd(ordered, page, perPage)
        : ordered.slice(page * perPage, (page + 1) * perPage)
  const chosen = new Set(wanted)
  const parts = await Promise.all(
    scopes.map(async (scope, index) => ({
      scope,
      messages: await messagesAt(store, scope, lists[index]?.filter((start) => chosen.has(start)) ?? []),
    })),
  )
  return { parts, merged: merge(parts), more: perPage !== false && ordered.length > (page + 1) * perPage }
}

function pageFromEnd<Item>(list: readonly Item[], page: number, perPage: number): Item[] {
  const end = Math.max(0, list.length - page * perPage)
  return list.slice(Math.max(0, end - perPage), end)
}

/** Merges lists by time; each keeps its order. `backwards` merges from the end, where all lists are complete. */
function interleave<Item>(lists: ReadonlyArray<readonly Item[]>, getTime: (item: Item) => number, backwards: boolean): Item[] {
  const rest = lists.map((list) => ({ list, at: backwards ? list.length - 1 : 0 }))
  const all: Item[] = []
  for (;;) {
    let next: { at: number; list: readonly Item[]; time: number; from: (typeof rest)[number] } | undefined
    for (const from of rest) {
      const item = from.list[from.at]
      if (item === undefined) continue
      const time = getTime(item)
      if (!next || (backwards ? time >= next.time : time < next.time)) next = { ...from, time, from }
    }
    if (!next) return backwards ? all.reverse() : all
    const item = next.list[next.at]
    if (item !== undefined) all.push(item)
    next.from.at += backwards ? -1 : 1
  }
}

/** Merges the parts of each thread, in its order and without duplicates, then the threads by time. */
function merge(parts: readonly ThreadPart[]): PositionedMessage[] {
  const byThread = new Map<string, Map<string, PositionedMessage>>()
  for (const { scope, messages } of parts) {
    const byId = byThread.get(scope.threadId) ?? new Map<string, PositionedMessage>()
    for (const one of messages) byId.set(one.message.id, one)
    byThread.set(scope.threadId, byId)
  }
  const lists = [...byThread.values()].map((byId) => [...byId.values()].toSorted((a, b) => a.seq - b.seq))
  const [only] = lists
  return lists.length === 1 && only ? only : interleave(lists, ({ message }) => message.createdAt.getTime(), false)
}

async function readIncluded(store: ThreadStore, scopes: readonly Scope[], args: RecallArgs): Promise<ThreadPart[]> {
  const parts: ThreadPart[] = []
  for (const item of args.include ?? []) {
    const searched = item.threadId === undefined ? scopes : [parseScope(item.threadId, args.resourceId)]
    for (const scope of searched) {
      if (item.threadId !== undefined && !(await store.getThread(scope))) continue
      const starts = await readStartsAround(store, scope, item)
      if (starts.length > 0) parts.push({ scope, messages: await messagesAt(store, scope, starts) })
    }
  }
  return parts
}

async function readStartsAround(
  store: ThreadStore,
  scope: Scope,
  { id, withPreviousMessages = 0, withNextMessages = 0 }: IncludedMessage,
): Promise<MessageStart[]> {
  const start = await findStart(store, scope, id)
  if (!start) return []
  const before = await readStarts(store, scope, { from: 'newest', beyond: start.seq, limit: withPreviousMessages })
  const after = await readStarts(store, scope, { from: 'oldest', beyond: start.seq, limit: withNextMessages })
  return [...before.starts, start, ...after.starts]
}

async function countAll(store: ThreadStore, scopes: readonly Scope[], args: RecallArgs): Promise<number> {
  const counts = await Promise.all(scopes.map((scope) => countMessages(store, scope, timesOf(args))))
  return counts.reduce((sum, count) => sum + count, 0)
}

// Cursors

function listName({ threadId, orderBy, ...args }: RecallArgs): string {
  const { start, end } = timesOf(args)
  return `messages ${orderBy?.direction === 'ASC' ? 'ASC' : 'DESC'} ${JSON.stringify([[threadId].flat(), start ?? null, end ?? null])}`
}

function nextCursor(args: RecallArgs, page: readonly PositionedMessage[]): { nextCursor?: string } {
  const edge = args.orderBy?.direction === 'ASC' ? page.at(-1) : page[0]
  if (!edge || [args.threadId].flat().length > 1) return {}
  return { nextCursor: encodeCursor({ list: listName(args), at: edge.seq, id: edge.message.id }) }
}

/** The present `seq` of the cursor's message: a message behind a run moves when the run ends. For a deleted message, its former `seq`. */
async function cursorSeq(store: ThreadStore, scope: Scope, args: RecallArgs): Promise<number | undefined> {
  if (args.cursor === undefined) return undefined
  const { at, id } = decodeCursor(args.cursor, listName(args))
  return (await findStart(store, scope, id))?.seq ?? at
}
