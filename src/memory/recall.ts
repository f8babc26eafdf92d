import type { Message } from '../message/message.ts'
import type { MemoryOptions } from '../run/options.ts'
import type { Scope, ThreadStore } from '../store/contract/threads.ts'
import type { MessageStart } from '../store/contract/messages.ts'
import type { RecallHit } from '../store/contract/recall.ts'
import { checkNames, checkOrder, checkPage, checkName, checkWhole, refused, scopeOf, timeOf } from './arguments.ts'
import { cursorOf, placeIn } from './cursor.ts'
import { allMessages, countMessages, messagesAt, placeOfMessage, startsIn, type Placed, type Span } from './messages.ts'

export interface IncludedMessage {
  id: string
  /** When it isn't one of the threads that are read. */
  threadId?: string
  withPreviousMessages?: number
  withNextMessages?: number
}

export interface RecallArgs {
  threadId: string | string[]
  /** Refuses threads that belong to another resource. */
  resourceId?: string
  /** From 0 on. Without `orderBy`, page 0 has the newest messages. */
  page?: number
  /** `false`: all. Defaults to `lastMessages` of the memory. */
  perPage?: number | false
  /** `nextCursor` of the page before: costs the same however far in the thread it is. In place of `page`. */
  cursor?: string
  /** Which end page 0 begins at and how a page is ordered. Without it: the newest page, in chronological order. */
  orderBy?: { field?: 'createdAt'; direction?: 'ASC' | 'DESC' }
  filter?: { dateRange?: { start?: Date; end?: Date; startExclusive?: boolean; endExclusive?: boolean } }
  /** These and their neighbours; alone, nothing else. */
  include?: readonly IncludedMessage[]
  /** Find those that fit this best, `perPage` of them, and nothing else: in all threads of the resource unless `scope` says otherwise. */
  vectorSearchString?: string
  /** Also count them. */
  total?: boolean
  /** Options for this call alone. */
  threadConfig?: MemoryOptions
}

export interface RecalledMessages {
  messages: Message[]
  page: number
  perPage: number | false
  hasMore: boolean
  nextCursor?: string
  total?: number
  /** With `vectorSearchString`: what was found, best first, with its score and what spoke for it. */
  hits?: RecallHit[]
  /** With `vectorSearchString`: where it was looked for. */
  scope?: 'resource' | 'thread'
}

const names = ['threadId', 'resourceId', 'page', 'perPage', 'cursor', 'orderBy', 'filter', 'include', 'total', 'threadConfig']

/** A thread, its place among those that are read, and what was found in it. */
interface Part {
  scope: Scope
  placed: Placed[]
}

export async function recall(store: ThreadStore, given: RecallArgs, perPageByDefault: number): Promise<RecalledMessages> {
  check(given, perPageByDefault)
  const args = { ...given, threadId: [...new Set([given.threadId].flat())] }
  const scopes = args.threadId.map((threadId) => scopeOf(threadId, args.resourceId))
  const there: Scope[] = []
  for (const scope of scopes) if (await store.getThread(scope)) there.push(scope)
  const page = args.page ?? 0
  const perPage = args.perPage ?? perPageByDefault
  const order = args.orderBy?.direction
  const found = onlyIncluded(args) ? { parts: [], merged: [], more: false } : await pageOf(store, there, args, page, perPage)
  const included = await includedIn(store, there, args)
  const messages = included.length === 0 ? found.merged : merge([...found.parts, ...included])
  const total = args.total ? await countAll(store, there, args) : undefined
  return {
    messages: (order === 'DESC' ? messages.toReversed() : messages).map(({ message }) => message),
    page,
    perPage,
    hasMore: found.more,
    ...(found.more && nextCursor(args, found.merged)),
    ...(total !== undefined && { total }),
  }
}

function check(args: RecallArgs, perPageByDefault: number): void {
  checkNames('recall()', args, names)
  const { threadId, page, perPage, cursor, orderBy, filter, include } = args
  if (Array.isArray(threadId) ? threadId.length === 0 : threadId === undefined) throw refused('threadId', 'the id of a thread, or a list of them')
  if (perPage !== undefined && perPage !== false) checkWhole('perPage', perPage)
  if (page !== undefined) checkPage(page, perPage ?? perPageByDefault)
  checkOrder(orderBy, ['createdAt'])
  checkNames('filter', filter ?? {}, ['dateRange'])
  checkNames('filter.dateRange', filter?.dateRange ?? {}, ['start', 'end', 'startExclusive', 'endExclusive'])
  if (include !== undefined && !Array.isArray(include)) throw refused('include', 'a list of { id }')
  for (const item of include ?? []) {
    checkNames('include', item, ['id', 'threadId', 'withPreviousMessages', 'withNextMessages'])
    checkName('include.id', item.id)
    for (const name of ['withPreviousMessages', 'withNextMessages'] as const) if (item[name] !== undefined) checkWhole(`include.${name}`, item[name])
  }
  if (cursor === undefined) return
  if (Array.isArray(threadId) && new Set(threadId).size > 1) throw refused('cursor', 'left out where several threads are read')
  if (page !== undefined || perPage === false) throw refused('cursor', 'given with perPage alone')
}

function onlyIncluded({ include, page, perPage, cursor, filter }: RecallArgs): boolean {
  return include !== undefined && include.length > 0 && page === undefined && perPage === undefined && cursor === undefined && filter === undefined
}

function timesOf({ filter }: RecallArgs): Pick<Span, 'start' | 'end'> {
  const { startExclusive, endExclusive, ...range } = filter?.dateRange ?? {}
  const start = timeOf('filter.dateRange.start', range.start)
  const end = timeOf('filter.dateRange.end', range.end)
  return {
    ...(start && { start: startExclusive ? new Date(start.getTime() + 1) : start }),
    ...(end && { end: endExclusive ? new Date(end.getTime() - 1) : end }),
  }
}

interface Found {
  parts: Part[]
  merged: Placed[]
  more: boolean
}

async function pageOf(store: ThreadStore, scopes: readonly Scope[], args: RecallArgs, page: number, perPage: number | false): Promise<Found> {
  const times = timesOf(args)
  if (perPage === false && !times.start && !times.end) {
    const parts = await Promise.all(scopes.map(async (scope) => ({ scope, placed: await allMessages(store, scope) })))
    return { parts, merged: merge(parts), more: false }
  }
  const from = args.orderBy?.direction === 'ASC' ? 'oldest' : 'newest'
  const [only] = scopes
  if (scopes.length === 1 && only) {
    const limit = perPage === false ? Number.MAX_SAFE_INTEGER : perPage
    const beyond = await beyondOf(store, only, args)
    const { starts, more } = await startsIn(store, only, { from, limit, skip: perPage === false ? 0 : page * perPage, ...(beyond !== undefined && { beyond }), ...times })
    const placed = await messagesAt(store, only, starts)
    return { parts: [{ scope: only, placed }], merged: placed, more }
  }
  return pageOfSeveral(store, scopes, { from, ...times }, page, perPage)
}

/** Threads have no common order but time. Each keeps its own; where times are equal, the thread that was named first comes first. */
async function pageOfSeveral(store: ThreadStore, scopes: readonly Scope[], span: Omit<Span, 'limit'>, page: number, perPage: number | false): Promise<Found> {
  const needed = perPage === false ? Number.MAX_SAFE_INTEGER : Math.min((page + 1) * perPage + 1, Number.MAX_SAFE_INTEGER)
  const lists = await Promise.all(scopes.map(async (scope) => (await startsIn(store, scope, { ...span, limit: needed })).starts))
  const ordered = interleave(lists, ({ createdAt }) => createdAt.getTime(), span.from === 'newest')
  const wanted = perPage === false ? ordered : span.from === 'newest' ? fromEnd(ordered, page, perPage) : ordered.slice(page * perPage, (page + 1) * perPage)
  const chosen = new Set(wanted)
  const parts = await Promise.all(scopes.map(async (scope, index) => ({ scope, placed: await messagesAt(store, scope, lists[index]?.filter((start) => chosen.has(start)) ?? []) })))
  return { parts, merged: merge(parts), more: perPage !== false && ordered.length > (page + 1) * perPage }
}

function fromEnd<Item>(list: readonly Item[], page: number, perPage: number): Item[] {
  const end = Math.max(0, list.length - page * perPage)
  return list.slice(Math.max(0, end - perPage), end)
}

/** Lists that each keep their order, as one by time. From the newest, it is put together from its end: that is where all of them are complete. */
function interleave<Item>(lists: ReadonlyArray<readonly Item[]>, timeOfItem: (item: Item) => number, backwards: boolean): Item[] {
  const rest = lists.map((list) => ({ list, at: backwards ? list.length - 1 : 0 }))
  const all: Item[] = []
  for (;;) {
    let next: { at: number; list: readonly Item[]; time: number; from: (typeof rest)[number] } | undefined
    for (const from of rest) {
      const item = from.list[from.at]
      if (item === undefined) continue
      const time = timeOfItem(item)
      if (!next || (backwards ? time >= next.time : time < next.time)) next = { ...from, time, from }
    }
    if (!next) return backwards ? all.reverse() : all
    const item = next.list[next.at]
    if (item !== undefined) all.push(item)
    next.from.at += backwards ? -1 : 1
  }
}

/** Parts of one thread become one, in its order and without repeats; then threads by time. */
function merge(parts: readonly Part[]): Placed[] {
  const byThread = new Map<string, Map<string, Placed>>()
  for (const { scope, placed } of parts) {
    const there = byThread.get(scope.threadId) ?? new Map<string, Placed>()
    for (const one of placed) there.set(one.message.id, one)
    byThread.set(scope.threadId, there)
  }
  const lists = [...byThread.values()].map((there) => [...there.values()].toSorted((a, b) => a.seq - b.seq))
  const [only] = lists
  return lists.length === 1 && only ? only : interleave(lists, ({ message }) => message.createdAt.getTime(), false)
}

async function includedIn(store: ThreadStore, scopes: readonly Scope[], args: RecallArgs): Promise<Part[]> {
  const parts: Part[] = []
  for (const item of args.include ?? []) {
    const places = item.threadId === undefined ? scopes : [scopeOf(item.threadId, args.resourceId)]
    for (const scope of places) {
      if (item.threadId !== undefined && !(await store.getThread(scope))) continue
      const starts = await withNeighbours(store, scope, item)
      if (starts.length > 0) parts.push({ scope, placed: await messagesAt(store, scope, starts) })
    }
  }
  return parts
}

async function withNeighbours(store: ThreadStore, scope: Scope, { id, withPreviousMessages = 0, withNextMessages = 0 }: IncludedMessage): Promise<MessageStart[]> {
  const start = await placeOfMessage(store, scope, id)
  if (!start) return []
  const before = await startsIn(store, scope, { from: 'newest', beyond: start.seq, limit: withPreviousMessages })
  const after = await startsIn(store, scope, { from: 'oldest', beyond: start.seq, limit: withNextMessages })
  return [...before.starts, start, ...after.starts]
}

async function countAll(store: ThreadStore, scopes: readonly Scope[], args: RecallArgs): Promise<number> {
  const counts = await Promise.all(scopes.map((scope) => countMessages(store, scope, timesOf(args))))
  return counts.reduce((sum, count) => sum + count, 0)
}

// Cursors

function listOf({ threadId, orderBy, ...args }: RecallArgs): string {
  const { start, end } = timesOf(args as RecallArgs)
  return `messages ${orderBy?.direction === 'ASC' ? 'ASC' : 'DESC'} ${JSON.stringify([[threadId].flat(), start ?? null, end ?? null])}`
}

function nextCursor(args: RecallArgs, page: readonly Placed[]): { nextCursor?: string } {
  const edge = args.orderBy?.direction === 'ASC' ? page.at(-1) : page[0]
  if (!edge || [args.threadId].flat().length > 1) return {}
  return { nextCursor: cursorOf({ list: listOf(args), at: edge.seq, id: edge.message.id }) }
}

/** Where the message is now: what waited behind a run has moved when the run ended. One that was deleted left its place. */
async function beyondOf(store: ThreadStore, scope: Scope, args: RecallArgs): Promise<number | undefined> {
  if (args.cursor === undefined) return undefined
  const { at, id } = placeIn(args.cursor, listOf(args))
  return (await placeOfMessage(store, scope, id))?.seq ?? at
}
