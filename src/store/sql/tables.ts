import type { Clock } from '../../base/clock.ts'
import { newId } from '../../base/ids.ts'
import { decodeOrdRanges, mailRowsColumn } from '../core/mailbox.ts'
import type { MailRecord, NewThreadRecord, RunRecord, StartRow, ThreadRecord } from '../core/records.ts'
import type { ThreadTables } from '../core/tables.ts'
import { threadOwner } from '../core/working-memory.ts'
import { forgetBelongings, giveBelongings } from './thread-dependents.ts'
import { copySql } from './copy-sql.ts'
import { RecentThreads } from './recent-threads.ts'
import { SqlRows } from './rows.ts'
import { sql } from './sql.ts'
import type { Statements } from './statements.ts'

/** Rows of a deleted thread that go with one transaction; the rest follows in others. */
const purgeRows = 300

/** A process that said nothing for a day is not even remembered as gone; to all others that is the same. */
const longGone = 86_400_000

/** A thread within a transaction: read once, written once at its end, however many jobs touch it. */
interface Held {
  readonly thread: ThreadRecord
  changed: boolean
  /** All of it was written, and is in the database when the transaction counts. */
  written: boolean
  /** What is in the database of the columns that cost more to write. */
  before: Dear
  /** Nothing of its mailbox is in the database. */
  blank: boolean
  /** What waits, once that was asked for. */
  pending: MailRecord[] | undefined
  /** Signals of this transaction, by id. They are written at its end: until then some are taken. */
  readonly mail: Map<string, MailRecord>
  /** The run that is at work, if it is known. */
  run: RunRecord | undefined
}

type Dear = Pick<ThreadRecord, 'title' | 'metadata' | 'updatedAt' | 'status' | 'owner' | 'dueAt'>

function dear({ title, metadata, updatedAt, status, owner, dueAt }: ThreadRecord): Dear {
  return { title, metadata, updatedAt, status, owner, dueAt }
}

/** The tables as SQL. */
export class SqlTables extends SqlRows implements ThreadTables {
  readonly #statements: Statements
  readonly #clock: Clock
  readonly newId: () => string
  #held = new Map<string, Held>()
  readonly #recent = new RecentThreads()
  /** What the recent threads were kept by. */
  #threadChanges = 0
  #version = -1
  /** True when a deleted thread has rows left. */
  purging = false

  constructor(statements: Statements, clock: Clock, ids = newId) {
    super(statements)
    this.#statements = statements
    this.#clock = clock
    this.newId = ids
  }

  /** Writes the threads and signals that the transaction changed. Comes before every commit. */
  writeHeld(): void {
    for (const held of this.#held.values()) {
      this.#writeMail(held)
      if (!held.changed) continue
      this.#write(held.thread, held.before)
      held.before = dear(held.thread)
      held.changed = false
      held.written = true
    }
  }

  /** The transaction counts: its threads are in the database as they are here. */
  committed(): void {
    for (const { thread, written, run } of this.#held.values()) if (written) this.#recent.keep(thread, run)
    this.forget()
  }

  /** Forgets what was read. Comes before and after every transaction: others write too. */
  forget(): void {
    // A map that lives on and is cleared holds what was in it until all memory is swept.
    if (this.#held.size > 0) this.#held = new Map()
    this.forgetLanes()
    this.compareRows()
  }

  /** The transaction is undone. */
  undo(): void {
    this.forget()
    this.forgetRows()
  }

  now(): number {
    return this.#clock.now()
  }

  thread(id: string): ThreadRecord | undefined {
    const held = this.#held.get(id)
    if (held) return held.thread
    const recent = this.#recent.has(id) ? this.#recentThreads().take(id) : undefined
    if (recent) return this.#hold(recent.thread, false, recent.run).thread
    const thread = this.#statements.one<ThreadRecord>(sql.thread, id)
    return thread && this.#hold(thread, false).thread
  }

  children({ id }: ThreadRecord): ThreadRecord[] {
    return this.#statements.all<ThreadRecord>(sql.children, id).map((child) => this.#held.get(child.id)?.thread ?? this.#hold(child, false).thread)
  }

  addThread({ id, resourceId, title, metadata, parentId, createdAt }: NewThreadRecord): ThreadRecord {
    this.#recentThreads()
    const key = this.#statements.insert(sql.addThread, id, resourceId, title, metadata, parentId, createdAt, createdAt)
    this.#threadChanges = this.#statements.threadChanges
    return this.#hold({
      key, id, resourceId, title, metadata, parentId, createdAt, updatedAt: createdAt, status: 'idle', epoch: 0, owner: null,
      runId: null, agentId: null, begun: 0, nextSeq: 1, nextOrd: 1, ordinal: 0, turn: 0, tail: 0, tailOrdinal: 0, tailTurn: 0, dueAt: null, laned: 0,
    }, true).thread
  }

  putThread(thread: ThreadRecord): void {
    const held = this.#held.get(thread.id)
    if (held) held.changed = true
  }

  removeThread(thread: ThreadRecord): void {
    this.#held.delete(thread.id)
    this.#statements.run(sql.removeThread, thread.key)
    this.removeTitle(thread)
    forgetBelongings(this.#statements, { threadId: thread.id })
    this.#statements.run(sql.forgetWorkingMemory, threadOwner(thread), Number.MAX_SAFE_INTEGER)
    if (this.#purge(thread.key)) return
    this.#statements.run(sql.addPurge, thread.key)
    this.purging = true
  }

  transferThread(thread: ThreadRecord, resourceId: string): ThreadRecord {
    this.writeHeld()
    this.#statements.run(copySql.transferThread, resourceId, thread.key)
    this.#statements.run(copySql.transferRuns, resourceId, thread.key)
    this.#statements.run(copySql.removeContext, thread.key)
    giveBelongings(this.#statements, thread.id, resourceId)
    return this.#hold({ ...thread, resourceId }, false).thread
  }

  /** Removes some of what deleted threads left behind. False when there is nothing more. */
  purgeSome(): boolean {
    const found = this.#statements.one<{ thread: number }>(sql.anyPurge)
    if (!found) return false
    if (this.#purge(found.thread)) this.#statements.run(sql.removePurge, found.thread)
    return true
  }

  mail(thread: ThreadRecord, id: string): MailRecord | undefined {
    const held = this.#heldOf(thread)
    return held.mail.get(id) ?? (held.blank ? undefined : this.#statements.one<MailRecord>(sql.mail, thread.key, id))
  }

  pending(thread: ThreadRecord): MailRecord[] {
    const held = this.#heldOf(thread)
    if (!held.pending) {
      this.#writeMail(held)
      held.pending = this.#statements.all<MailRecord>(sql.pending, thread.key)
    }
    // A list that `filter` makes changes its kind when this is compiled, and with it all that has seen the other kind is compiled again.
    const waiting: MailRecord[] = []
    for (const mail of held.pending) if (mail.state === 'pending') waiting.push(mail)
    return waiting
  }

  boundMail(thread: ThreadRecord): MailRecord[] {
    const { blank, mail, pending } = this.#heldOf(thread)
    const waiting = pending ?? [...(blank ? [] : this.#statements.all<MailRecord>(sql.boundMail, thread.key)), ...mail.values()]
    return waiting.filter(({ state, boundTo }) => state === 'pending' && boundTo !== null)
  }

  addMail(thread: ThreadRecord, mail: MailRecord): void {
    const held = this.#heldOf(thread)
    held.mail.set(mail.id, mail)
    held.pending?.push(mail)
  }

  putMail(thread: ThreadRecord, mail: MailRecord): void {
    if (this.#heldOf(thread).mail.has(mail.id)) return
    const text = isOpen(mail) ? sql.changeMail : sql.closeMail
    this.#statements.run(text, mail.state, mail.runId, mail.step, mail.rows, mail.reason, thread.key, mail.ord)
  }

  reorderMail(thread: ThreadRecord, mail: readonly MailRecord[]): void {
    const held = this.#heldOf(thread)
    this.#writeMail(held)
    held.pending = undefined
    for (const { id, ord } of mail) this.#statements.run(sql.moveMail, -ord, thread.key, id)
    this.#statements.run(sql.settleOrder, thread.key)
  }

  finishTaken(thread: ThreadRecord, ords: string | null, state: 'consumed' | 'rejected', reason: string | null): void {
    this.#writeMail(this.#heldOf(thread))
    for (const [from, to] of decodeOrdRanges(ords)) this.#statements.run(sql.finishTaken, state, reason, thread.key, from, to)
  }

  run(thread: ThreadRecord, runId: string): RunRecord | undefined {
    const run = this.#held.get(thread.id)?.run
    return run?.runId === runId ? run : this.#statements.one<RunRecord>(sql.run, runId, thread.key)
  }

  addRun(thread: ThreadRecord, run: RunRecord): boolean {
    this.#recentThreads()
    const added = this.#statements.run(
      sql.addRun, thread.key, thread.resourceId, run.runId, run.agentId, run.status, run.epoch, run.step, run.attempts, run.options, run.started,
      run.suspended, run.startedAt, run.endedAt, run.suspendedAt, run.error, run.usage, run.firstSeq, run.sealSeq, run.ordinal, run.taken,
    )
    this.#threadChanges = this.#statements.threadChanges
    if (added === 1) this.#heldOf(thread).run = run
    return added === 1
  }

  putRun(thread: ThreadRecord, run: RunRecord): void {
    this.#recentThreads()
    this.#statements.run(
      sql.putRun, run.status, run.epoch, run.step, run.attempts, run.started, run.suspended, run.endedAt, run.suspendedAt, run.error, run.usage,
      run.sealSeq, run.staged, run.lost, run.taken, run.runId, thread.key,
    )
    this.#threadChanges = this.#statements.threadChanges
    this.#heldOf(thread).run = run.status === 'running' ? run : undefined
  }

  threadsAfter(key: number, limit: number): ThreadRecord[] {
    this.writeHeld()
    const found = this.#statements.all<ThreadRecord>(copySql.threadsAfter, key, limit)
    return found.map((thread) => this.#held.get(thread.id)?.thread ?? this.#hold(thread, false).thread)
  }

  edgeStarts(thread: ThreadRecord, end: 'oldest' | 'newest', limit: number): StartRow[] {
    return this.#statements.all<StartRow>(end === 'oldest' ? copySql.firstStarts : copySql.lastStarts, thread.key, limit)
  }

  removeRecords(thread: ThreadRecord, before: number, limit: number): number {
    const signals = this.#statements.run(copySql.removeSettled, thread.key, before, limit)
    return signals + this.#statements.run(copySql.removeRuns, thread.key, before, limit)
  }

  aliveUntil(owner: string): number | undefined {
    return this.#statements.one<{ until: number }>(sql.process, owner)?.until
  }

  putProcess(owner: string, until: number): void {
    this.#statements.run(sql.putProcess, owner, until)
    this.#statements.run(sql.forgetProcesses, until - longGone)
  }

  removeProcess(owner: string): void {
    this.#statements.run(sql.removeProcess, owner)
  }

  handOver(owner: string): void {
    this.writeHeld()
    this.#held.clear()
    this.#statements.run(sql.handOverRuns, owner)
    this.#statements.run(sql.handOver, this.now(), owner)
    this.#statements.run(sql.handOverTitles, this.now(), owner)
  }

  cancelBound(owner: string, reason: string): void {
    this.writeHeld()
    this.#held.clear()
    this.#statements.run(sql.cancelBound, reason, owner)
    this.#statements.run(sql.forgetDue)
  }

  #hold(thread: ThreadRecord, isNew: boolean, run?: RunRecord): Held {
    const held: Held = { thread, before: dear(thread), changed: false, written: false, blank: isNew, pending: isNew ? [] : undefined, mail: new Map(), run }
    this.#held.set(thread.id, held)
    return held
  }

  #heldOf(thread: ThreadRecord): Held {
    return this.#held.get(thread.id) ?? this.#hold(thread, false)
  }

  #writeMail(held: Held): void {
    if (held.mail.size === 0) return
    for (const mail of held.mail.values()) {
      this.#statements.run(
        sql.addMail, held.thread.key, mail.ord, mail.id, mail.agentId, mail.route, mail.kind, mail.state, isOpen(mail), mail.runId,
        mail.startRunId, mail.step, mailRowsColumn(mail), mail.options, mail.boundTo, mail.reason, mail.acceptedAt,
      )
    }
    held.mail.clear()
    held.blank = false
  }

  /** The recent threads, as far as they are still true in this transaction. */
  #recentThreads(): RecentThreads {
    const version = this.dataVersion()
    if (version !== this.#version || this.#threadChanges !== this.#statements.threadChanges) this.#recent.clear()
    this.#version = version
    this.#threadChanges = this.#statements.threadChanges
    return this.#recent
  }

  #write(thread: ThreadRecord, before: Dear): void {
    this.#recentThreads()
    const counters = [
      thread.epoch, thread.runId, thread.agentId, thread.begun, thread.nextSeq, thread.nextOrd, thread.ordinal, thread.turn, thread.tail,
      thread.tailOrdinal, thread.tailTurn,
    ]
    if (thread.updatedAt === before.updatedAt && thread.status === before.status && thread.owner === before.owner && thread.dueAt === before.dueAt) {
      this.#statements.run(sql.countThread, ...counters, thread.key)
    } else {
      this.#statements.run(sql.putThread, ...counters, thread.updatedAt, thread.status, thread.owner, thread.dueAt, thread.key)
      if (thread.updatedAt !== before.updatedAt && thread.metadata !== '{}') this.#statements.run(sql.touchMetadata, thread.updatedAt, thread.key)
    }
    if (thread.title !== before.title || thread.metadata !== before.metadata) {
      this.#statements.run(sql.describeThread, thread.title, thread.metadata, thread.key)
    }
    this.#threadChanges = this.#statements.threadChanges
  }

  /** True when nothing of the thread is left. */
  #purge(key: number): boolean {
    const gone = [
      this.#statements.run(sql.purgeMessages, key, purgeRows),
      this.#statements.run(sql.purgeMailbox, key, purgeRows),
      this.#statements.run(sql.purgeRuns, key, purgeRows),
      this.#statements.run(sql.purgeLaneSignals, key, purgeRows),
    ]
    this.#statements.run(sql.purgeLanes, key)
    return gone.every((count) => count < purgeRows)
  }
}

/** What waits is found by an index of its own; what was taken, by the run that took it. */
function isOpen(mail: MailRecord): 1 | null {
  return mail.state === 'pending' ? 1 : null
}
