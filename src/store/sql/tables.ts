import { newId } from '../../base/ids.ts'
import type { Added, Quota } from '../contract/usage.ts'
import type { MessageRow } from '../../message/row.ts'
import { copySuffix } from '../core/threads.ts'
import { decodeOrdRanges, mailRowsColumn } from '../core/mailbox.ts'
import {
  byteLength, messageRow, type CountedRow, type LaneRecord, type LaneSignalRecord, type MailRecord, type NewThreadRecord,
  type PruningRecord, type RowRecord, type RunRecord, type StartRow, type ThreadRecord,
} from '../core/records.ts'
import type { ThreadTables, WantedMessages } from '../core/tables.ts'
import { threadOwner } from '../core/working-memory.ts'
import type { StoreClock } from './driver.ts'
import { readWindowRows, ThreadLocks } from './foresight.ts'
import { comparedColumns, leftBy, Recent, type ExpectedThread, type LoadedThread } from './recent.ts'
import { SqlProcesses, SqlTitles, SqlWorkingMemory } from './side-tables.ts'
import { noLimit, sql } from './sql.ts'
import type { Statements } from './statements.ts'
import { SqlReleases } from './edits/edits.ts'
import { SqlScores } from './scores/scores.ts'
import { SqlSteps } from './steps/steps.ts'
import { forgetDependents, lockDependents, purgeThread, transferDependents } from './thread-dependents.ts'
import { checkUsage, movedWithThread } from './usage.ts'
import { SqlWorkflows } from './workflows/workflows.ts'

/** How many rows one statement copies. */
const copyBatch = 2_000

/** The tables of threads in an SQL database. */
export class SqlTables implements ThreadTables {
  readonly #db: Statements
  readonly #clock: StoreClock
  readonly processes: SqlProcesses
  readonly workingMemory: SqlWorkingMemory
  readonly titles: SqlTitles
  readonly steps: SqlSteps
  readonly workflows: SqlWorkflows
  readonly scores: SqlScores
  readonly edits: SqlReleases
  readonly newId: () => string
  readonly now = (): number => this.#clock.now()
  #loaded = new Map<string, LoadedThread>()
  /** The lanes that this transaction has written. */
  readonly #lanes = new Map<string, LaneRecord>()
  /** Records that are cached between transactions. */
  readonly recent: Recent
  /** The bytes that checked writes of this transaction add, by resource: most are stored at its end. */
  #addedBytes: Map<string, number> | undefined
  /** Whether rows of a deleted thread remain. */
  purging = false
  /** Where threads are locked one by one; a transaction of a file locks the whole file. */
  readonly #locks: ThreadLocks | undefined
  readonly lock?: NonNullable<ThreadTables['lock']>
  readonly lockOwned?: NonNullable<ThreadTables['lockOwned']>
  readonly lockAll?: NonNullable<ThreadTables['lockAll']>
  readonly foreseeWindow?: NonNullable<ThreadTables['foreseeWindow']>

  constructor(statements: Statements, clock: StoreClock, ids = newId) {
    this.#db = statements
    this.#clock = clock
    this.processes = new SqlProcesses(statements, clock)
    this.workingMemory = new SqlWorkingMemory(statements)
    this.titles = new SqlTitles(statements)
    this.steps = new SqlSteps(statements, clock)
    this.workflows = new SqlWorkflows(statements, clock)
    this.scores = new SqlScores(statements)
    this.edits = new SqlReleases(statements)
    this.newId = ids
    this.recent = new Recent(statements)
    if (!statements.lockThreads) return
    const locks = (this.#locks = new ThreadLocks(statements))
    this.lock = (threadIds, { below = false } = {}) => this.#lock(locks.add(threadIds, below))
    this.lockOwned = (owner) => statements.lockThreads?.({ ids: [], owner })
    this.lockAll = (records) => statements.lockDomain?.(records)
    this.foreseeWindow = (thread, window) => readWindowRows(statements, this.recent.rows(), thread, window)
  }

  #lock(added: readonly string[]): boolean {
    // One of them may have changed since it was read without the lock.
    for (const id of added) if (this.#loaded.get(id)?.changed === false) this.#loaded.delete(id)
    return added.length > 0
  }

  /** Writes the threads and signals that the transaction changed. Must be called before every commit. */
  writeLoaded(): void {
    for (const loaded of this.#loaded.values()) {
      this.#writeMail(loaded)
      if (!loaded.changed) continue
      this.#write(loaded)
      loaded.before = comparedColumns(loaded.thread)
      loaded.changed = false
      loaded.written = true
    }
  }

  /** Call after a commit: the database now has the threads as they are loaded. */
  committed(): void {
    for (const { thread, written, run } of this.#loaded.values()) if (written) this.recent.keepThread(thread, run)
    this.forget()
  }

  /** The threads that this transaction wrote, with their running runs. */
  readonly left = (): ExpectedThread[] => leftBy(this.#loaded.values())

  /** Forgets the loaded records. Must be called before and after every transaction, because other connections write too. */
  forget(): void {
    // V8 keeps the entries of a cleared map until a full collection: a new map lets a young one free them.
    if (this.#loaded.size > 0) this.#loaded = new Map()
    if (this.#lanes.size > 0) this.#lanes.clear()
    this.#locks?.forget()
    this.#addedBytes = undefined
    this.recent.newTransaction()
  }

  /** Call after a rollback. */
  undo(): void {
    this.forget()
    this.recent.forgetRows()
  }

  checkQuota(resourceId: string, quota: Quota, added: Added): void {
    this.#addedBytes ??= new Map()
    const bytes = (this.#addedBytes.get(resourceId) ?? 0) + (added.bytes ?? 0)
    checkUsage(this.#db, resourceId, quota, { ...added, bytes })
    this.#addedBytes.set(resourceId, bytes)
  }

  thread(id: string): ThreadRecord | undefined {
    const loaded = this.#loaded.get(id)
    if (loaded) return loaded.thread
    const recent = this.recent.takeThread(id)
    if (recent) return this.#load(recent.thread, false, recent.run).thread
    const thread = this.#db.one<ThreadRecord>(sql.thread, id)
    if (!thread) return undefined
    const run = this.#locks?.has(id) && thread.begun === 1 ? this.#db.one<RunRecord>(sql.activeRun, thread.key) : undefined
    return this.#load(thread, false, run).thread
  }

  children({ id }: ThreadRecord): ThreadRecord[] {
    return this.#db.all<ThreadRecord>(sql.children, id).map((thread) => this.#loadedThread(thread).thread)
  }

  addThread({ id, resourceId, title, metadata, parentId, createdAt }: NewThreadRecord): ThreadRecord {
    this.recent.threads()
    const epoch = this.#db.one<{ floor: number }>(sql.epochFloor)?.floor ?? 0
    const described = [id, resourceId, title, metadata, parentId, createdAt, epoch]
    const key = this.#db.insert(sql.addThread, this.#db.newKey?.('heed_threads') ?? null, ...described)
    this.recent.threadsWritten()
    return this.#load({
      key, id, resourceId, title, metadata, parentId, createdAt, updatedAt: createdAt, status: 'idle', epoch, owner: null, runId: null,
      agentId: null, begun: 0, nextSeq: 1, nextOrd: 1, ordinal: 0, turn: 0, tail: 0, tailOrdinal: 0, tailTurn: 0, dueAt: null, head: null,
      laned: 0,
    }, true).thread
  }

  putThread(thread: ThreadRecord): void {
    const loaded = this.#loaded.get(thread.id)
    if (loaded) loaded.changed = true
  }

  removeThread(thread: ThreadRecord): void {
    this.#loaded.delete(thread.id)
    this.#db.execute(sql.removeThread, thread.key)
    this.titles.remove(thread)
    forgetDependents(this.#db, { threadId: thread.id })
    this.workingMemory.removeAll(threadOwner(thread))
    if (purgeThread(this.#db, thread.key)) return
    this.#db.execute(sql.addPurge, thread.key)
    this.purging = true
  }

  bytes({ key }: ThreadRecord): number {
    return this.#db.one<{ bytes: number }>(sql.threadBytes, key)?.bytes ?? 0
  }

  movable(thread: ThreadRecord): { bytes: number; schedules: number } {
    lockDependents(this.#db, thread.id)
    const { bytes, schedules } = movedWithThread(this.#db, thread)
    return { bytes: this.bytes(thread) + bytes, schedules }
  }

  life({ id }: ThreadRecord): number {
    return this.#db.one<{ life: number }>(sql.life, id)?.life ?? 0
  }

  raiseEpochFloor(epoch: number): void {
    this.#db.execute(sql.raiseEpochFloor, epoch)
  }

  transferThread(thread: ThreadRecord, resourceId: string): ThreadRecord {
    this.writeLoaded()
    this.#db.execute(sql.transferThread, resourceId, thread.key)
    this.#db.execute(sql.transferRuns, resourceId, thread.key)
    this.#db.execute(sql.removeContext, thread.key)
    transferDependents(this.#db, thread.id, resourceId, this.now())
    return this.#load({ ...thread, resourceId }, false).thread
  }

  /** Deletes some of the rows that deleted threads left. False when none are left. */
  purgeSome(): boolean {
    const found = this.#db.one<{ thread: number }>(sql.anyPurge)
    if (!found) return false
    if (purgeThread(this.#db, found.thread)) this.#db.execute(sql.removePurge, found.thread)
    return true
  }

  mail(thread: ThreadRecord, id: string): MailRecord | undefined {
    const loaded = this.#loadedThread(thread)
    return loaded.mail.get(id) ?? (loaded.isNew ? undefined : this.#db.one<MailRecord>(sql.mail, thread.key, id))
  }

  pending(thread: ThreadRecord): MailRecord[] {
    const loaded = this.#loadedThread(thread)
    if (!loaded.pending) {
      this.#writeMail(loaded)
      loaded.pending = this.#db.all<MailRecord>(sql.pending, thread.key)
    }
    // `filter` returns arrays of another elements kind once it is compiled, and then V8 deoptimizes every function that got the first kind.
    const waiting: MailRecord[] = []
    for (const mail of loaded.pending) if (mail.state === 'pending') waiting.push(mail)
    return waiting
  }

  boundMail(thread: ThreadRecord): MailRecord[] {
    const { isNew, mail, pending } = this.#loadedThread(thread)
    const waiting = pending ?? [...(isNew ? [] : this.#db.all<MailRecord>(sql.boundMail, thread.key)), ...mail.values()]
    return waiting.filter(({ state, boundTo }) => state === 'pending' && boundTo !== null)
  }

  addMail(thread: ThreadRecord, mail: MailRecord): void {
    const loaded = this.#loadedThread(thread)
    loaded.mail.set(mail.id, mail)
    loaded.pending?.push(mail)
  }

  putMail(thread: ThreadRecord, mail: MailRecord): void {
    if (this.#loadedThread(thread).mail.has(mail.id)) return
    const changed = [mail.route, mail.state, mail.runId, mail.step, mail.rows, mail.reason]
    if (mail.state === 'pending') return this.#db.execute(sql.changeMail, ...changed, thread.key, mail.ord)
    const closed = [mail.drainedAt, mail.drainedBy, mail.epoch, mail.settledAt]
    this.#db.execute(sql.closeMail, ...changed, ...closed, thread.key, mail.ord)
  }

  reorderMail(thread: ThreadRecord, mail: readonly MailRecord[]): void {
    const loaded = this.#loadedThread(thread)
    this.#writeMail(loaded)
    loaded.pending = undefined
    for (const { id, ord } of mail) this.#db.execute(sql.moveMail, -ord, thread.key, id)
    this.#db.execute(sql.settleOrder, thread.key)
  }

  finishTaken(thread: ThreadRecord, ords: string | null, state: 'consumed' | 'rejected', reason: string | null): void {
    this.#writeMail(this.#loadedThread(thread))
    const now = this.now()
    for (const [from, to] of decodeOrdRanges(ords)) this.#db.execute(sql.finishTaken, state, reason, now, thread.key, from, to)
  }

  run(thread: ThreadRecord, runId: string): RunRecord | undefined {
    const run = this.#loaded.get(thread.id)?.run
    return run?.runId === runId ? run : this.#db.one<RunRecord>(sql.run, runId, thread.key)
  }

  addRun(thread: ThreadRecord, run: RunRecord): boolean {
    this.recent.threads()
    const added = this.#db.run(
      sql.addRun, thread.key, thread.resourceId, run.runId, run.agentId, run.status, run.epoch, run.step, run.attempts, run.options,
      run.started, run.suspended, run.startedAt, run.endedAt, run.suspendedAt, run.error, run.usage, run.firstSeq, run.sealSeq,
      run.ordinal, run.taken,
    )
    this.recent.threadsWritten()
    if (added === 1) this.#loadedThread(thread).run = run
    return added === 1
  }

  putRun(thread: ThreadRecord, run: RunRecord): void {
    this.recent.threads()
    this.#db.execute(
      sql.putRun, run.status, run.epoch, run.step, run.attempts, run.started, run.suspended, run.endedAt, run.suspendedAt, run.error,
      run.usage, run.sealSeq, run.staged, run.lost, run.taken, run.decisions, run.runId, thread.key,
    )
    this.recent.threadsWritten()
    this.#loadedThread(thread).run = run.status === 'running' ? run : undefined
  }

  threadsAfter(key: number, limit: number): ThreadRecord[] {
    this.writeLoaded()
    return this.#db.all<ThreadRecord>(sql.threadsAfter, key, limit).map((thread) => this.#loadedThread(thread).thread)
  }

  edgeStarts(thread: ThreadRecord, end: 'oldest' | 'newest', limit: number): StartRow[] {
    return this.#db.all<StartRow>(end === 'oldest' ? sql.firstStarts : sql.lastStarts, thread.key, limit)
  }

  removeRecords(thread: ThreadRecord, before: number, limit: number): number {
    const removed = this.#db.run(sql.removeSettled, thread.key, before, limit) + this.#db.run(sql.removeRuns, thread.key, before, limit)
    return removed + this.steps.removeBefore(thread, before, limit) + this.scores.removeBefore(thread, before, limit)
  }

  pruning(): PruningRecord | undefined {
    return this.#db.one<PruningRecord>(sql.pruning)
  }

  putPruning({ after, dueAt }: PruningRecord): void {
    this.#db.execute(sql.putPruning, after, dueAt)
  }

  handOver(owner: string): void {
    this.writeLoaded()
    this.#loaded.clear()
    this.#db.execute(sql.handOverRuns, owner)
    this.#db.execute(sql.handOver, this.now(), owner)
    this.#db.execute(sql.handOverTitles, this.now(), owner)
  }

  cancelBound(owner: string, reason: string): void {
    this.writeLoaded()
    this.#loaded.clear()
    const threads = this.#db.all<{ thread: number }>(sql.boundThreads, owner).map(({ thread }) => thread)
    if (threads.length === 0) return
    this.#db.execute(sql.cancelBound, reason, this.now(), owner)
    for (const thread of new Set(threads)) this.#db.execute(sql.forgetDue, thread)
  }

  #load(thread: ThreadRecord, isNew: boolean, run?: RunRecord): LoadedThread {
    const loaded: LoadedThread = {
      thread, before: comparedColumns(thread), changed: false, written: false, isNew, pending: isNew ? [] : undefined, mail: new Map(), run,
      newBytes: 0,
    }
    this.#loaded.set(thread.id, loaded)
    return loaded
  }

  #loadedThread(thread: ThreadRecord): LoadedThread {
    return this.#loaded.get(thread.id) ?? this.#load(thread, false)
  }

  #writeMail(loaded: LoadedThread): void {
    if (loaded.mail.size === 0) return
    for (const mail of loaded.mail.values()) {
      this.#db.execute(
        sql.addMail, loaded.thread.key, mail.ord, mail.id, mail.agentId, mail.route, mail.kind, mail.state,
        mail.state === 'pending' ? 1 : null, mail.runId, mail.startRunId, mail.step, mailRowsColumn(mail), mail.options, mail.boundTo,
        mail.reason, mail.acceptedAt, mail.drainedAt, mail.drainedBy, mail.epoch, mail.settledAt,
      )
    }
    loaded.mail.clear()
    loaded.isNew = false
  }

  #write(loaded: LoadedThread): void {
    const { thread, before } = loaded
    this.recent.threads()
    const counters = [
      thread.epoch, thread.runId, thread.agentId, thread.begun, thread.nextSeq, thread.nextOrd, thread.ordinal, thread.turn, thread.tail,
      thread.tailOrdinal, thread.tailTurn, loaded.newBytes, thread.head,
    ]
    loaded.newBytes = 0
    const sameOwnership = thread.status === before.status && thread.owner === before.owner && thread.dueAt === before.dueAt
    if (sameOwnership && thread.updatedAt === before.updatedAt) {
      this.#db.execute(sql.countThread, ...counters, thread.key)
    } else {
      this.#db.execute(sql.putThread, ...counters, thread.updatedAt, thread.status, thread.owner, thread.dueAt, thread.key)
      const isListed = thread.updatedAt !== before.updatedAt && thread.metadata !== '{}'
      if (isListed) this.#db.execute(sql.touchMetadata, thread.updatedAt, thread.key)
    }
    const isDescribed = thread.title !== before.title || thread.metadata !== before.metadata
    if (isDescribed) this.#db.execute(sql.describeThread, thread.title, thread.metadata, thread.key)
    this.recent.threadsWritten()
  }

  row(thread: ThreadRecord, id: string): RowRecord | undefined {
    return this.#db.one<RowRecord>(sql.row, thread.key, id)
  }

  messageRows(thread: ThreadRecord, messageId: string): RowRecord[] {
    return this.#db.all<RowRecord>(sql.messageRows, thread.key, messageId).toSorted((a, b) => a.seq - b.seq)
  }

  hasMessage(thread: ThreadRecord, messageId: string): boolean {
    return this.#db.one<{ found: number }>(sql.hasMessage, thread.key, messageId)?.found === 1
  }

  addRow(thread: ThreadRecord, row: RowRecord): boolean {
    const recent = this.recent.rows()
    const added = this.#db.run(
      sql.addRow, thread.key, row.seq, row.id, row.messageId, row.role, row.type, row.runId, row.step, row.content, row.createdAt,
      row.ordinal, row.turn, row.counted,
    )
    this.recent.rowsWritten()
    if (added === 1) {
      recent.appended(thread.key, row)
      this.#loadedThread(thread).newBytes += byteLength(row.content)
    }
    return added === 1
  }

  reviseRow(thread: ThreadRecord, row: RowRecord): void {
    this.#db.execute(sql.reviseRow, row.messageId, row.role, row.type, row.runId, row.step, row.content, row.createdAt, thread.key, row.id)
  }

  mergeTail(thread: ThreadRecord): void {
    this.#db.execute(sql.mergeTail, thread.nextSeq, thread.ordinal, thread.turn, thread.key)
  }

  rowsFrom(thread: ThreadRecord, seq: number): RowRecord[] {
    const recent = this.recent.rows()
    const known = recent.rowsFrom(thread.key, seq)
    if (known) return known
    const rows = this.#db.all<RowRecord>(sql.rowsFrom, thread.key, seq)
    recent.keep(thread.key, seq, rows)
    return rows
  }

  decoded(thread: ThreadRecord, row: RowRecord): MessageRow {
    return (row.decoded ??= messageRow(thread, row))
  }

  removeRow(thread: ThreadRecord, id: string): void {
    this.#db.execute(sql.removeRow, thread.key, id)
  }

  copyAllRows(from: ThreadRecord, to: ThreadRecord, context: boolean): void {
    const text = context ? sql.copyAll : sql.copyVisible
    // SQLite buffers in memory the rows that a statement reads from the table that it writes to.
    for (let after = 0; this.#db.run(text, from.key, to.key, after, copyBatch, copySuffix(to)) === copyBatch;) {
      after = this.#db.one<{ seq: number }>(sql.lastSeq, to.key)?.seq ?? after
    }
    this.#db.execute(sql.countCopied, to.key)
  }

  copySomeRows(from: ThreadRecord, to: ThreadRecord, wanted: WantedMessages): void {
    const { from: since = null, to: until = null, messageIds, limit = noLimit } = wanted
    this.#db.execute(sql.copySome, from.key, to.key, since, until, messageIds ? JSON.stringify(messageIds) : null, limit, copySuffix(to))
    this.#db.execute(sql.countCopied, to.key)
  }

  removeRowsFrom(thread: ThreadRecord, seq: number): void {
    this.#db.execute(sql.removeRowsFrom, thread.key, seq)
  }

  lastRow(thread: ThreadRecord): RowRecord | undefined {
    return this.#db.one<RowRecord>(sql.lastRow, thread.key)
  }

  countedFrom(thread: ThreadRecord, ordinal: number): CountedRow | undefined {
    return this.recent.rows().countedFrom(thread.key, ordinal) ?? this.#db.one<CountedRow>(sql.countedFrom, thread.key, ordinal)
  }

  countedBack({ key }: ThreadRecord, ordinal: number, nth: number): CountedRow | undefined {
    return this.recent.rows().countedBack(key, ordinal, nth) ?? this.#db.one<CountedRow>(sql.countedBack, key, ordinal, nth - 1)
  }

  removeMessage(thread: ThreadRecord, messageId: string): boolean {
    return this.#db.run(sql.removeMessage, thread.key, messageId) + this.#db.run(sql.removeParts, thread.key, messageId) > 0
  }

  removeQuotes(thread: ThreadRecord, messageIds: readonly string[]): void {
    if (messageIds.length === 0) return
    const ids = JSON.stringify(messageIds)
    for (const text of [sql.removeQuotes, sql.removeQuotesElsewhere]) this.#db.execute(text, thread.key, ids)
  }

  removeAllRows(thread: ThreadRecord): number {
    const counted = this.#db.one<{ count: number }>(sql.countMessages, thread.key)
    this.#db.execute(sql.removeAllRows, thread.key)
    return counted?.count ?? 0
  }

  // Lanes. Most threads have none: `laned` of the record then saves the query.
  lane(thread: ThreadRecord, id: string): LaneRecord | undefined {
    const put = this.#lanes.get(`${thread.key} ${id}`)
    return put ? { ...put } : this.#db.one<LaneRecord>(sql.lane, thread.key, id)
  }

  putLane(thread: ThreadRecord, lane: LaneRecord): void {
    const { id, version, cacheKey, mode, lastSignalId, lastSnapshotId, issued } = lane
    thread.laned = 1
    this.#lanes.set(`${thread.key} ${id}`, { ...lane })
    this.#db.execute(sql.putLane, thread.key, id, version, cacheKey, mode, lastSignalId, lastSnapshotId, issued)
  }

  lanes(thread: ThreadRecord, after = '', limit = noLimit): LaneRecord[] {
    return thread.laned === 0 ? [] : this.#db.all<LaneRecord>(sql.lanes, thread.key, after, limit)
  }

  addLaneSignal(thread: ThreadRecord, { lane, version, signalId, cacheKey, mode }: LaneSignalRecord): void {
    this.#db.execute(sql.addLaneSignal, thread.key, lane, version, signalId, cacheKey, mode)
  }

  laneSignal(thread: ThreadRecord, signalId: string): LaneSignalRecord | undefined {
    return thread.laned === 0 ? undefined : this.#db.one<LaneSignalRecord>(sql.laneSignal, thread.key, signalId)
  }

  removeLaneSignal(thread: ThreadRecord, { lane, version }: LaneSignalRecord): void {
    this.#db.execute(sql.removeLaneSignal, thread.key, lane, version)
  }

  laneSignals(thread: ThreadRecord, lane: string, before: number, limit: number): LaneSignalRecord[] {
    return this.#db.all<LaneSignalRecord>(sql.laneSignals, thread.key, lane, Math.min(before, Number.MAX_SAFE_INTEGER), limit)
  }
}
