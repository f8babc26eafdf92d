import type { Clock } from '../../base/clock.ts'
import { newId } from '../../base/ids.ts'
import type { MessageContent } from '../../message/message.ts'
import type { StartRow } from '../core/prune.ts'
import { TAIL_SEQ, type LaneRecord, type LaneSignalRecord, type MailRecord, type RowRecord, type RunRecord, type ThreadRecord, type TitleRecord, type WorkingMemoryRecord } from '../core/records.ts'
import { startsMessage } from '../core/starts.ts'
import type { CountedRow, NewThreadRecord, PruningRecord, ThreadTables, WantedMessages } from '../core/tables.ts'
import { threadOwner } from '../core/working-memory.ts'
import { copyMark } from '../core/copy-mark.ts'
import { copiedRows, marked } from './copies.ts'
import { Shelf } from './shelf.ts'

/** The tables as maps. Records are copied on their way in and out, so that nobody holds what is stored. */
export class MemoryTables implements ThreadTables {
  /** Ids of the threads right below one. */
  readonly #below = new Map<string, Set<string>>()
  readonly shelves = new Map<string, Shelf>()
  /** By owner; the oldest version first. */
  readonly #workingMemory = new Map<string, WorkingMemoryRecord[]>()
  readonly #titles = new Map<string, TitleRecord>()
  readonly #processes = new Map<string, number>()
  readonly #clock: Clock
  #pruning: PruningRecord | undefined
  #lastKey = 0
  #lastRun = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  now(): number {
    return this.#clock.now()
  }

  newId(): string {
    return newId()
  }

  thread(id: string): ThreadRecord | undefined {
    const shelf = this.shelves.get(id)
    return shelf && { ...shelf.thread }
  }

  children({ id }: ThreadRecord): ThreadRecord[] {
    return [...(this.#below.get(id) ?? [])].flatMap((child) => this.thread(child) ?? [])
  }

  addThread(thread: NewThreadRecord): ThreadRecord {
    const record: ThreadRecord = {
      ...thread,
      key: ++this.#lastKey,
      updatedAt: thread.createdAt,
      status: 'idle',
      epoch: 0,
      owner: null,
      runId: null,
      agentId: null,
      begun: 0,
      nextSeq: 1,
      nextOrd: 1,
      ordinal: 0,
      turn: 0,
      tail: 0,
      tailOrdinal: 0,
      tailTurn: 0,
      dueAt: null,
    }
    this.shelves.set(thread.id, new Shelf(record))
    if (thread.parentId !== null) this.#below.set(thread.parentId, (this.#below.get(thread.parentId) ?? new Set()).add(thread.id))
    return { ...record }
  }

  putThread(thread: ThreadRecord): void {
    this.#shelf(thread).thread = { ...thread }
  }

  transferThread(thread: ThreadRecord, resourceId: string): ThreadRecord {
    const transferred = { ...thread, resourceId }
    this.#removeQuotesElsewhere(thread, () => true)
    // What was shown to one resource is not another's to see.
    this.#shelf(thread).remove((row) => row.role === 'context')
    this.putThread(transferred)
    return transferred
  }

  removeThread(thread: ThreadRecord): void {
    this.shelves.delete(thread.id)
    if (thread.parentId !== null) this.#removeBelow(thread.parentId, thread.id)
    this.#removeQuotesElsewhere(thread, () => true)
    this.#workingMemory.delete(threadOwner(thread))
    this.#titles.delete(thread.id)
  }

  #removeBelow(parentId: string, id: string): void {
    const below = this.#below.get(parentId)
    below?.delete(id)
    if (below?.size === 0) this.#below.delete(parentId)
  }

  mail(thread: ThreadRecord, id: string): MailRecord | undefined {
    const mail = this.#shelf(thread).mail.get(id)
    return mail && { ...mail }
  }

  pending(thread: ThreadRecord): MailRecord[] {
    return this.#shelf(thread).open.filter((mail) => mail.state === 'pending').map((mail) => ({ ...mail }))
  }

  boundMail(thread: ThreadRecord): MailRecord[] {
    return this.pending(thread).filter(({ boundTo }) => boundTo !== null)
  }

  addMail(thread: ThreadRecord, mail: MailRecord): void {
    const shelf = this.#shelf(thread)
    shelf.open.push({ ...mail })
    shelf.settle({ ...mail })
  }

  putMail(thread: ThreadRecord, mail: MailRecord): void {
    this.#shelf(thread).settle({ ...mail })
  }

  reorderMail(thread: ThreadRecord, mail: readonly MailRecord[]): void {
    const shelf = this.#shelf(thread)
    for (const record of mail) shelf.settle({ ...record })
    shelf.open.sort((a, b) => a.ord - b.ord)
  }

  settleTaken(thread: ThreadRecord, _: string | null, state: 'consumed' | 'rejected', reason: string | null): void {
    const shelf = this.#shelf(thread)
    for (const mail of shelf.open) if (mail.state === 'taken') shelf.settle({ ...mail, state, reason })
  }

  run(thread: ThreadRecord, runId: string): RunRecord | undefined {
    const found = this.#shelf(thread).runs.get(runId)
    return found && { ...found.run }
  }

  addRun(thread: ThreadRecord, run: RunRecord): boolean {
    const { runs } = this.#shelf(thread)
    if (runs.has(run.runId)) return false
    runs.set(run.runId, { begun: ++this.#lastRun, run: { ...run } })
    return true
  }

  putRun(thread: ThreadRecord, run: RunRecord): void {
    const found = this.#shelf(thread).runs.get(run.runId)
    if (found) found.run = { ...run }
  }

  row(thread: ThreadRecord, id: string): RowRecord | undefined {
    return this.#shelf(thread).row(id)
  }

  messageRows(thread: ThreadRecord, messageId: string): RowRecord[] {
    return this.#shelf(thread).rows.filter((row) => row.messageId === messageId && row.role !== 'context')
  }

  hasMessage(thread: ThreadRecord, messageId: string): boolean {
    return this.#shelf(thread).hasMessage(messageId)
  }

  addRow(thread: ThreadRecord, row: RowRecord): boolean {
    const shelf = this.#shelf(thread)
    if (shelf.row(row.id)) return false
    shelf.add(row)
    return true
  }

  reviseRow(thread: ThreadRecord, row: RowRecord): void {
    this.#shelf(thread).revise(row)
  }

  settleTail(thread: ThreadRecord): void {
    this.#shelf(thread).renumber((row) => ({
      ...row,
      seq: row.seq - TAIL_SEQ + thread.nextSeq,
      ordinal: row.ordinal + thread.ordinal,
      turn: row.turn === 0 ? thread.turn : row.turn + thread.ordinal,
      counted: row.counted === 2 ? 1 : row.counted,
    }))
  }

  rowsFrom(thread: ThreadRecord, seq: number): RowRecord[] {
    return this.#shelf(thread).placed(seq)
  }

  removeRow(thread: ThreadRecord, id: string): void {
    this.#remove(thread, (row) => row.id === id)
  }

  copyAllRows(from: ThreadRecord, to: ThreadRecord, context: boolean): void {
    for (const row of this.#shelf(from).rows) if (context || row.role !== 'context') this.#shelf(to).add(marked(row, copyMark(to)))
  }

  copySomeRows(from: ThreadRecord, to: ThreadRecord, wanted: WantedMessages): void {
    for (const row of copiedRows(this.#shelf(from).rows, wanted)) this.#shelf(to).add(marked(row, copyMark(to)))
  }

  removeRowsFrom(thread: ThreadRecord, seq: number): void {
    this.#remove(thread, (row) => row.seq >= seq && row.seq < TAIL_SEQ)
  }

  lastRow(thread: ThreadRecord): RowRecord | undefined {
    return this.#shelf(thread).placed().at(-1)
  }

  countedFrom(thread: ThreadRecord, ordinal: number): CountedRow | undefined {
    return this.#shelf(thread).countedBefore((row) => row.ordinal < ordinal)
  }

  countedBack(thread: ThreadRecord, ordinal: number, nth: number): CountedRow | undefined {
    let seen = 0
    const found = this.#shelf(thread).countedBefore((row) => row.ordinal <= ordinal && ++seen > nth)
    return seen >= nth ? found : undefined
  }

  removeMessage(thread: ThreadRecord, messageId: string): boolean {
    return this.#remove(thread, (row) => row.messageId === messageId && row.role !== 'context') > 0
  }

  removeQuotes(thread: ThreadRecord, messageIds: readonly string[]): void {
    const ids = new Set<unknown>(messageIds)
    this.#shelf(thread).remove((row) => row.role === 'context' && sourcesOf(row).some((source) => ids.has(source)))
    this.#removeQuotesElsewhere(thread, (messageId) => ids.has(messageId))
  }

  /** Removes rows, with what quotes them in other threads; answers how many. */
  #remove(thread: ThreadRecord, goes: (row: RowRecord) => boolean): number {
    const gone = this.#shelf(thread).remove(goes)
    const ids = new Set(gone.flatMap(({ role, messageId }) => (role === 'context' ? [] : [messageId])))
    if (ids.size > 0) this.#removeQuotesElsewhere(thread, (messageId) => ids.has(messageId))
    return gone.length
  }

  /** Rows of other threads that quote messages of this one. */
  #removeQuotesElsewhere(thread: ThreadRecord, gone: (messageId: string) => boolean): void {
    for (const shelf of this.shelves.values()) {
      shelf.remove((row) => row.role === 'context' && quotesOf(row).some(({ threadId, messageId }) => threadId === thread.id && gone(messageId)))
    }
  }

  removeAllRows(thread: ThreadRecord): number {
    const gone = this.#shelf(thread).remove(() => true)
    this.#removeQuotesElsewhere(thread, () => true)
    return new Set(gone.filter((row) => row.role !== 'context').map((row) => row.messageId)).size
  }

  threadsAfter(key: number, limit: number): ThreadRecord[] {
    const all = [...this.shelves.values()].map(({ thread }) => thread).filter((thread) => thread.key > key)
    return all.toSorted((a, b) => a.key - b.key).slice(0, limit).map((thread) => ({ ...thread }))
  }

  edgeStarts(thread: ThreadRecord, end: 'oldest' | 'newest', limit: number): StartRow[] {
    const starts = this.#shelf(thread).rows.filter(startsMessage)
    return (end === 'oldest' ? starts : starts.toReversed()).slice(0, limit)
  }

  pruning(): PruningRecord | undefined {
    return this.#pruning
  }

  putPruning(pruning: PruningRecord): void {
    this.#pruning = pruning
  }

  removeRecords(thread: ThreadRecord, before: number, limit: number): number {
    const { mail, runs, open } = this.#shelf(thread)
    const waiting = new Set(open.map(({ id }) => id))
    const signals = [...mail.values()].filter(({ id, acceptedAt }) => !waiting.has(id) && acceptedAt < before).slice(0, limit)
    for (const { id } of signals) mail.delete(id)
    const over = [...runs.values()].filter(({ run }) => run.status !== 'running' && run.status !== 'suspended' && run.startedAt < before).slice(0, limit)
    for (const { run } of over) runs.delete(run.runId)
    return signals.length + over.length
  }

  lane(thread: ThreadRecord, id: string): LaneRecord | undefined {
    const lane = this.#shelf(thread).lanes.get(id)
    return lane && { ...lane }
  }

  putLane(thread: ThreadRecord, lane: LaneRecord): void {
    this.#shelf(thread).lanes.set(lane.id, { ...lane })
  }

  lanes(thread: ThreadRecord, after = '', limit = -1): LaneRecord[] {
    const above = [...this.#shelf(thread).lanes.values()].filter(({ id }) => id > after).toSorted((a, b) => (a.id < b.id ? -1 : 1))
    return above.slice(0, limit < 0 ? undefined : limit).map((lane) => ({ ...lane }))
  }

  addLaneSignal(thread: ThreadRecord, signal: LaneSignalRecord): void {
    this.#shelf(thread).laneSignals.set(signal.signalId, signal)
  }

  laneSignal(thread: ThreadRecord, signalId: string): LaneSignalRecord | undefined {
    return this.#shelf(thread).laneSignals.get(signalId)
  }

  removeLaneSignal(thread: ThreadRecord, { signalId }: LaneSignalRecord): void {
    this.#shelf(thread).laneSignals.delete(signalId)
  }

  laneSignals(thread: ThreadRecord, lane: string, before: number, limit: number): LaneSignalRecord[] {
    const below = [...this.#shelf(thread).laneSignals.values()].filter((signal) => signal.lane === lane && signal.version < before)
    return below.toSorted((a, b) => b.version - a.version).slice(0, limit)
  }

  workingMemory(owner: string): WorkingMemoryRecord | undefined {
    return this.#workingMemory.get(owner)?.at(-1)
  }

  workingMemoryAt(owner: string, version: number): WorkingMemoryRecord | undefined {
    return this.#workingMemory.get(owner)?.find((record) => record.version === version)
  }

  workingMemories(owner: string, before: number, limit: number): WorkingMemoryRecord[] {
    const records = this.#workingMemory.get(owner) ?? []
    return records.filter(({ version }) => version < before).toReversed().slice(0, limit)
  }

  hasWorkingMemoryChange(owner: string, changeId: string): boolean {
    return this.#workingMemory.get(owner)?.some((record) => record.changeId === changeId) ?? false
  }

  addWorkingMemory(owner: string, record: WorkingMemoryRecord, kept: number): void {
    this.#workingMemory.set(owner, [...(this.#workingMemory.get(owner) ?? []), record].slice(-kept))
  }

  title(thread: ThreadRecord): TitleRecord | undefined {
    return this.#titles.get(thread.id)
  }

  putTitle(thread: ThreadRecord, title: TitleRecord): void {
    this.#titles.set(thread.id, title)
  }

  removeTitle(thread: ThreadRecord): void {
    this.#titles.delete(thread.id)
  }

  dueTitles(agentId: string, now: number, limit: number): Array<TitleRecord & { threadId: string }> {
    const titles = [...this.#titles].map(([threadId, title]) => ({ ...title, threadId }))
    return titles.filter((title) => title.agentId === agentId && title.dueAt <= now).toSorted((a, b) => a.dueAt - b.dueAt).slice(0, limit)
  }

  aliveUntil(owner: string): number | undefined {
    return this.#processes.get(owner)
  }

  putProcess(owner: string, until: number): void {
    this.#processes.set(owner, until)
  }

  removeProcess(owner: string): void {
    this.#processes.delete(owner)
  }

  handOver(owner: string): void {
    for (const [id, title] of this.#titles) if (title.owner === owner) this.#titles.set(id, { ...title, owner: null, dueAt: this.now() })
    for (const { thread } of this.shelves.values()) {
      if (thread.owner !== owner) continue
      const run = thread.begun === 1 && thread.runId !== null ? this.run(thread, thread.runId) : undefined
      // Being handed over is not being begun in vain.
      if (run) this.putRun(thread, { ...run, attempts: Math.max(1, run.attempts - 1) })
      thread.owner = null
      thread.dueAt = this.now()
    }
  }

  cancelBound(owner: string, reason: string): void {
    for (const shelf of this.shelves.values()) {
      const bound = shelf.open.filter((mail) => mail.state === 'pending' && mail.boundTo === owner)
      for (const mail of bound) shelf.settle({ ...mail, state: 'cancelled', reason })
      if (shelf.thread.status === 'idle' && shelf.open.length === 0) shelf.thread.dueAt = null
    }
  }

  #shelf(thread: ThreadRecord): Shelf {
    const shelf = this.shelves.get(thread.id)
    if (!shelf) throw new Error(`Thread ${thread.id} was removed while it was written.`)
    return shelf
  }
}

function sourcesOf(row: RowRecord): unknown[] {
  const { metadata } = JSON.parse(row.content) as MessageContent
  return Array.isArray(metadata?.sources) ? metadata.sources : []
}

function quotesOf(row: RowRecord): Array<{ threadId: string; messageId: string }> {
  if (!row.content.includes('"quotes"')) return []
  const { metadata } = JSON.parse(row.content) as MessageContent
  return Array.isArray(metadata?.quotes) ? metadata.quotes : []
}
