import type { HeartbeatRecord, PruningRecord, ThreadRecord, TitleRecord, WorkingMemoryRecord } from '../core/records.ts'
import type { StoreClock } from './driver.ts'
import { sql } from './sql.ts'
import type { Statements } from './statements.ts'

/** A process without a heartbeat for a day is deleted; a process that is unknown counts as dead, too. */
const forgetProcessAfterMs = 86_400_000

/** The tables beside the threads: processes, working memory, requested titles. Nothing of them is kept within a transaction. */
export abstract class SqlSideTables {
  readonly #db: Statements
  readonly #clock: StoreClock

  constructor(statements: Statements, clock: StoreClock) {
    this.#db = statements
    this.#clock = clock
  }

  now(): number {
    return this.#clock.now()
  }

  heartbeat(owner: string): HeartbeatRecord | undefined {
    return this.#db.one<HeartbeatRecord>(this.#clock.byServer ? sql.processByServer : sql.process, owner)
  }

  putHeartbeat(owner: string, { until, length }: HeartbeatRecord): void {
    const { byServer } = this.#clock
    this.#db.run(byServer ? sql.putProcessByServer : sql.putProcess, owner, byServer ? length : until, length)
    this.#db.run(byServer ? sql.forgetProcessesByServer : sql.forgetProcesses, (byServer ? 0 : until) - forgetProcessAfterMs)
  }

  removeProcess(owner: string): void {
    this.#db.run(sql.removeProcess, owner)
  }

  // Working memory, requested titles, and the progress of pruning
  workingMemory(owner: string): WorkingMemoryRecord | undefined {
    return this.#db.one<WorkingMemoryRecord>(sql.workingMemory, owner)
  }

  workingMemoryAt(owner: string, version: number): WorkingMemoryRecord | undefined {
    return this.#db.one<WorkingMemoryRecord>(sql.workingMemoryAt, owner, version)
  }

  workingMemories(owner: string, before: number, limit: number): WorkingMemoryRecord[] {
    return this.#db.all<WorkingMemoryRecord>(sql.workingMemories, owner, before, limit)
  }

  hasWorkingMemoryChange(owner: string, changeId: string): boolean {
    return this.#db.one<{ found: number }>(sql.workingMemoryChange, owner, changeId) !== undefined
  }

  addWorkingMemory(owner: string, { version, value, at, changeId, taintedBy }: WorkingMemoryRecord, kept: number): void {
    this.#db.run(sql.addWorkingMemory, owner, version, value, at, changeId, taintedBy)
    this.#db.run(sql.forgetWorkingMemory, owner, version - kept)
  }

  pruning(): PruningRecord | undefined {
    return this.#db.one<PruningRecord>(sql.pruning)
  }

  putPruning({ after, dueAt }: PruningRecord): void {
    this.#db.run(sql.putPruning, after, dueAt)
  }

  title(thread: ThreadRecord): TitleRecord | undefined {
    return this.#db.one<TitleRecord>(sql.title, thread.key)
  }

  putTitle(thread: ThreadRecord, { agentId, owner, dueAt, attempts }: TitleRecord): void {
    this.#db.run(sql.putTitle, thread.key, thread.id, agentId, owner, dueAt, attempts)
  }

  removeTitle(thread: Pick<ThreadRecord, 'key'>): void {
    this.#db.run(sql.removeTitle, thread.key)
  }

  dueTitles(agentId: string, now: number, limit: number): Array<TitleRecord & { threadId: string }> {
    return this.#db.all<TitleRecord & { threadId: string }>(sql.dueTitles, agentId, now, limit)
  }
}
