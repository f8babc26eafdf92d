import type { HeartbeatRecord, ThreadRecord, TitleRecord, WorkingMemoryRecord } from '../core/records.ts'
import type { ProcessTable, TitleTable, WorkingMemoryTable } from '../core/tables.ts'
import type { StoreClock } from './driver.ts'
import { sql } from './sql.ts'
import type { Statements } from './statements.ts'

// The tables beside the threads. Each call is a statement: a transaction caches none of their records.

/** A process without a heartbeat for a week is deleted; a process that is unknown counts as dead, too. */
const forgetProcessAfterMs = 7 * 86_400_000

export class SqlProcesses implements ProcessTable {
  readonly #db: Statements
  readonly #clock: StoreClock

  constructor(statements: Statements, clock: StoreClock) {
    this.#db = statements
    this.#clock = clock
  }

  get isResting(): boolean {
    return this.#clock.isResting === true
  }

  heartbeat(owner: string): HeartbeatRecord | undefined {
    const { byServer } = this.#clock
    if (!byServer) return this.#db.one<HeartbeatRecord>(sql.process, owner)
    const found = this.#db.one<Required<Pick<HeartbeatRecord, 'until' | 'length' | 'now'>>>(sql.processByServer, owner)
    return found && { ...found, silentFor: byServer.silentFor(owner, found) }
  }

  putHeartbeat(owner: string, { until, length, info }: HeartbeatRecord): void {
    const { byServer } = this.#clock
    const described = [info?.pid ?? null, info?.host ?? null, info?.version ?? null, info?.startedAt ?? null]
    this.#db.execute(byServer ? sql.putProcessByServer : sql.putProcess, owner, byServer ? length : until, length, ...described)
    this.#db.execute(byServer ? sql.forgetProcessesByServer : sql.forgetProcesses, (byServer ? 0 : until) - forgetProcessAfterMs)
  }

  close(owner: string): void {
    if (this.#clock.byServer) this.#db.execute(sql.closeProcessByServer, owner)
    else this.#db.execute(sql.closeProcess, this.#clock.now(), owner)
  }
}

export class SqlWorkingMemory implements WorkingMemoryTable {
  readonly #db: Statements

  constructor(statements: Statements) {
    this.#db = statements
  }

  newest(owner: string): WorkingMemoryRecord | undefined {
    return this.#db.one<WorkingMemoryRecord>(sql.workingMemory, owner)
  }

  at(owner: string, version: number): WorkingMemoryRecord | undefined {
    return this.#db.one<WorkingMemoryRecord>(sql.workingMemoryAt, owner, version)
  }

  list(owner: string, before: number, limit: number): WorkingMemoryRecord[] {
    return this.#db.all<WorkingMemoryRecord>(sql.workingMemories, owner, before, limit)
  }

  hasChange(owner: string, changeId: string): boolean {
    return this.#db.one<{ found: number }>(sql.workingMemoryChange, owner, changeId) !== undefined
  }

  add(owner: string, { version, value, at, changeId, taintedBy }: WorkingMemoryRecord, kept: number): void {
    this.#db.execute(sql.addWorkingMemory, owner, version, value, at, changeId, taintedBy)
    this.#db.execute(sql.forgetWorkingMemory, owner, version - kept)
  }

  removeAll(owner: string): void {
    this.#db.execute(sql.forgetWorkingMemory, owner, Number.MAX_SAFE_INTEGER)
  }
}

export class SqlTitles implements TitleTable {
  readonly #db: Statements

  constructor(statements: Statements) {
    this.#db = statements
  }

  get(thread: ThreadRecord): TitleRecord | undefined {
    return this.#db.one<TitleRecord>(sql.title, thread.key)
  }

  put(thread: ThreadRecord, { agentId, owner, dueAt, attempts }: TitleRecord): void {
    this.#db.execute(sql.putTitle, thread.key, thread.id, agentId, owner, dueAt, attempts)
  }

  remove(thread: ThreadRecord): void {
    this.#db.execute(sql.removeTitle, thread.key)
  }

  due(agentId: string, now: number, limit: number): Array<TitleRecord & { threadId: string }> {
    return this.#db.all<TitleRecord & { threadId: string }>(sql.dueTitles, agentId, now, limit)
  }
}
