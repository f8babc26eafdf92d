import type { PruningRecord, ThreadRecord, TitleRecord, WorkingMemoryRecord } from '../core/records.ts'
import { SqlLanes } from './lanes.ts'
import { sql } from './sql.ts'
import type { Statements } from './statements.ts'

/** The tables of working memory, of titles that are wanted, and of how far pruning got. */
export class SqlMemory extends SqlLanes {
  readonly #statements: Statements

  constructor(statements: Statements) {
    super(statements)
    this.#statements = statements
  }

  workingMemory(owner: string): WorkingMemoryRecord | undefined {
    return this.#statements.one<WorkingMemoryRecord>(sql.workingMemory, owner)
  }

  workingMemoryAt(owner: string, version: number): WorkingMemoryRecord | undefined {
    return this.#statements.one<WorkingMemoryRecord>(sql.workingMemoryAt, owner, version)
  }

  workingMemories(owner: string, before: number, limit: number): WorkingMemoryRecord[] {
    return this.#statements.all<WorkingMemoryRecord>(sql.workingMemories, owner, before, limit)
  }

  hasWorkingMemoryChange(owner: string, changeId: string): boolean {
    return this.#statements.one<{ found: number }>(sql.workingMemoryChange, owner, changeId) !== undefined
  }

  addWorkingMemory(owner: string, { version, value, at, changeId }: WorkingMemoryRecord, kept: number): void {
    this.#statements.run(sql.addWorkingMemory, owner, version, value, at, changeId)
    this.#statements.run(sql.forgetWorkingMemory, owner, version - kept)
  }

  pruning(): PruningRecord | undefined {
    return this.#statements.one<PruningRecord>(sql.pruning)
  }

  putPruning({ after, dueAt }: PruningRecord): void {
    this.#statements.run(sql.putPruning, after, dueAt)
  }

  title(thread: ThreadRecord): TitleRecord | undefined {
    return this.#statements.one<TitleRecord>(sql.title, thread.key)
  }

  putTitle(thread: ThreadRecord, { agentId, owner, dueAt, attempts }: TitleRecord): void {
    this.#statements.run(sql.putTitle, thread.key, thread.id, agentId, owner, dueAt, attempts)
  }

  removeTitle(thread: Pick<ThreadRecord, 'key'>): void {
    this.#statements.run(sql.removeTitle, thread.key)
  }

  dueTitles(agentId: string, now: number, limit: number): Array<TitleRecord & { threadId: string }> {
    return this.#statements.all<TitleRecord & { threadId: string }>(sql.dueTitles, agentId, now, limit)
  }
}
