import { systemClock, type Clock } from '../../base/clock.ts'
import { HeedError } from '../../base/errors.ts'
import { storeWork } from '../../base/promises.ts'
import type { Message } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import type {
  DeletedVersions, EditQuery, EditSubject, NewRelease, NewRollback, NewVersion, RunEdit, RunToEdit, StoredRelease, StoredVersion,
  TriedVersion, VersionQuery,
} from '../../editor/contract.ts'
import type { SignalState } from '../../machine.ts'
import type {
  Accepted, BegunRun, CallDecision, Claimed, Decided, Fence, FormerLease, LaneRow, LaneSignalRow, LaneState, MailboxRow, MeantThread,
  NewThread, ProcessInfo, ProcessRow, Quota, RowQuery, RunDetails, RunFilter, RunPage, RunRow, Scope, Send, StepCommit, StepCommitted,
  StoredPrompt, SuspendedEnd, ThreadQuery, ThreadRow, ThreadsEnded, ThreadStore, TitleClaim, Usage, WantedTitle, Window, Windows,
  WorkflowRunQuery,
} from '../contract/threads.ts'
import type {
  DuePolicy, MessageGroup, MessagePatches, MessagePlace, MessageStart, MessageStartQuery, Pruned, PrunePolicy, ThreadClone,
} from '../contract/messages.ts'
import type { StoreDomains } from '../contract/storage.ts'
import { acceptSends, beginWoken } from '../core/accept.ts'
import { beginRun, claimThread, readWindow, resign, retryParked } from '../core/begin.ts'
import { commitStep } from '../core/commit.ts'
import { listLanes, listLaneSignals, readLane } from '../core/lanes.ts'
import { findThread, scopedThread } from '../core/lease.ts'
import { cancelSignals, reorderSignals } from '../core/mailbox.ts'
import { deleteMessages, saveMessages, saveRows, updateMessages } from '../core/messages.ts'
import { mailboxRow, rowsOfMail, runRow } from '../core/records.ts'
import { decideCall, endSuspended } from '../core/suspend.ts'
import {
  claimTitles, cloneThread, createThread, deleteThread, patchThread, pruneDue, pruneSome, returnTitle, threadWithLanes, transferThread,
  type ThreadPatch,
} from '../core/threads.ts'
import { getWorkingMemory, listWorkingMemory, mergeWorkingMemory } from '../core/working-memory.ts'
import type { WorkingMemoryChange, WorkingMemoryOf, WorkingMemoryRow, WorkingMemoryWriter } from '../contract/working-memory.ts'
import type { Bus } from '../../bus/contract.ts'
import type { RecallIndex } from '../contract/recall.ts'
import { pruneStore, type PruneOptions, type PruneResult, type Retention } from '../retention.ts'
import type { ConnectionOwner, OpenedConnection, SqlConnection } from './driver.ts'
import { foreseeCommit, foreseeSend } from './foresight.ts'
import {
  deleteVersions, editOfRun, getVersion, listBlockUsers, listPromptBlocks, listReleases, listVersions, publishVersion, rollBackVersion,
  saveVersion,
} from './edits/edits.ts'
import { SqlInbox } from './notifications/notifications.ts'
import {
  countMessages, countRuns, findMessages, findRun, lifeOf, listMessageStarts, listOrphans, listRows, listRuns, listSignals, listThreads,
  type Orphan,
} from './queries.ts'
import { SqlSchedules } from './schedules.ts'
import { SqlScoreStore } from './scores/scores.ts'
import type { Statements } from './statements.ts'
import { KnownHeads } from './steps/known-heads.ts'
import { listProcesses, listRunDetails, pruneHeads, readPrompt } from './steps/steps.ts'
import { SqlSubscriptions } from './subscriptions.ts'
import type { SqlTables } from './tables.ts'
import { forgetDependents } from './thread-dependents.ts'
import { usageOf } from './usage.ts'
import { SqlWatches } from './watches/watches.ts'
import { getWorkflowRun, listWorkflowRuns } from './workflows/workflows.ts'

export interface SqlStoreOptions {
  id: string
  clock?: Clock | undefined
  retention?: Retention | undefined
}

/** Threads, notifications, schedules and subscriptions in an SQL database. A store of a database extends this with its driver. */
export abstract class SqlStore implements ThreadStore, ConnectionOwner {
  readonly id: string
  readonly retention: Retention | undefined
  readonly scores = new SqlScoreStore(this)
  /** @internal */
  protected readonly clock: Clock
  #opening: Promise<OpenedConnection> | undefined
  #connected: SqlConnection | undefined
  #domains: Partial<StoreDomains> | undefined
  readonly #heads = new KnownHeads()
  #closed = false

  constructor({ id, clock = systemClock, retention }: SqlStoreOptions) {
    this.id = id
    this.clock = clock
    this.retention = retention
  }

  abstract get place(): string | undefined
  abstract get namespace(): string
  abstract bus(): Bus

  /**
   * Opens the connection. It is called again after a failure, when the store is next used.
   * @internal
   */
  protected abstract connect(): Promise<OpenedConnection>

  /**
   * The recall index of the messages, where the database has one.
   * @internal
   */
  protected abstract recallIndex(): RecallIndex | undefined

  async open(): Promise<void> {
    await this.connection()
  }

  async onThreadsEnded(listener: ThreadsEnded): Promise<() => void> {
    const { threadsEnded } = await this.connection()
    threadsEnded.add(listener)
    return () => threadsEnded.delete(listener)
  }

  lifeOf(threadId: string): Promise<number> {
    return this.#read((_, statements) => lifeOf(statements, threadId))
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    const opened = await this.#opening?.catch(() => undefined)
    await opened?.release()
  }

  accept(sends: readonly Send[]): Promise<Array<Accepted | { error: Error }>> {
    return this.#use((connection) =>
      connection.write(
        (tables, statements) => {
          if (statements.foresee) for (const send of sends) foreseeSend(statements, send)
          const answers = acceptSends(tables, sends)
          // A rejected send has its error as its answer; an error of the database fails the whole transaction.
          for (const answer of answers) if ('error' in answer && connection.isFailure?.(answer.error)) throw answer.error
          return answers
        },
        { last: (tables, answers) => beginWoken(tables, sends, answers) },
      ),
    )
  }

  flush(): Promise<void> {
    return this.#use((connection) => connection.flush())
  }

  claim(threadId: string, owner: string, agentIds?: readonly string[], again?: FormerLease): Promise<Claimed | null> {
    return this.#write((tables) => claimThread(tables, threadId, owner, agentIds, again))
  }

  beginRun(fence: Fence, windows: Windows): Promise<BegunRun | null> {
    return this.#write((tables) => beginRun(tables, fence, windows))
  }

  async commitStep(fence: Fence, commit: StepCommit): Promise<StepCommitted> {
    const { call } = commit
    const now = call && this.now()
    const head = call && this.#heads.withoutKnown(call.head, now ?? 0)
    const step = call && head && head !== call.head ? { ...commit, call: { ...call, head } } : commit
    const committed = await this.#write((tables, statements) => {
      if (statements.foresee) foreseeCommit(statements, fence, step)
      return commitStep(tables, fence, step)
    })
    if (head?.text !== undefined && now !== undefined) this.#heads.add(head, now)
    return committed
  }

  decide(scope: Scope, decision: CallDecision, owner?: string): Promise<Decided> {
    return this.#write((tables) => decideCall(tables, scope, decision, owner))
  }

  endSuspended(scope: Scope, runId: string, options: { clearPending?: boolean }): Promise<SuspendedEnd> {
    return this.#write((tables) => endSuspended(tables, scope, runId, options))
  }

  retryParked(
    scope: Scope,
    runId: string,
    options: { owner?: string; removed?: readonly string[] },
  ): Promise<{ agentId: string; fence?: Fence }> {
    return this.#write((tables) => retryParked(tables, scope, runId, options))
  }

  /** Runs before all queued writes: a busy process must not count as dead. */
  async heartbeat(owner: string, until: number, info?: ProcessInfo): Promise<void> {
    const length = until - this.now()
    const connection = await this.connection()
    return connection.write((tables) => tables.processes.putHeartbeat(owner, { until, length, info }), { first: true })
  }

  resign(owner: string): Promise<void> {
    return this.#write((tables) => resign(tables, owner))
  }

  listOrphans(now: number, limit: number, agentIds?: readonly string[]): Promise<Orphan[]> {
    return this.#read((tables, statements) => listOrphans(statements, tables, now, limit, agentIds))
  }

  listSignals(
    scope: Scope, options: { states?: SignalState[]; limit?: number; after?: number; before?: number } = {},
  ): Promise<MailboxRow[]> {
    return this.#read((tables, statements) => listSignals(statements, tables, scope, options))
  }

  getSignal(scope: Scope, id: string): Promise<MailboxRow | null> {
    return this.#read((tables) => {
      const thread = scopedThread(tables, scope)
      const mail = tables.mail(thread, id)
      return mail ? mailboxRow(thread, mail, rowsOfMail(tables, thread, mail)) : null
    })
  }

  cancelSignals(scope: Scope, ids: readonly string[], meant?: MeantThread): Promise<string[]> {
    return this.#write((tables) => cancelSignals(tables, scope, ids, meant))
  }

  reorderSignals(scope: Scope, ids: readonly string[]): Promise<string[]> {
    return this.#write((tables) => reorderSignals(tables, scope, ids))
  }

  getRun(scope: Scope, runId: string): Promise<RunRow | null> {
    return this.#read((tables) => {
      const thread = scopedThread(tables, scope)
      const run = tables.run(thread, runId)
      return run ? runRow(thread, run) : null
    })
  }

  findRun(runId: string): Promise<RunRow | null> {
    return this.#read((_, statements) => findRun(statements, runId))
  }

  listRuns(filter: RunPage): Promise<RunRow[]> {
    return this.#read((_, statements) => listRuns(statements, filter))
  }

  countRuns(filter: RunFilter): Promise<number> {
    return this.#read((_, statements) => countRuns(statements, filter))
  }

  getThread(scope: Scope): Promise<ThreadRow | null> {
    return this.#read((tables) => {
      const thread = findThread(tables, scope)
      return thread ? threadWithLanes(tables, thread) : null
    })
  }

  getUsage(resourceId?: string): Promise<Usage> {
    return this.#read((_, statements) => usageOf(statements, resourceId))
  }

  createThread(thread: NewThread): Promise<{ thread: ThreadRow; created: boolean }> {
    return this.#write((tables) => createThread(tables, thread))
  }

  patchThread(scope: Scope, patch: ThreadPatch): Promise<ThreadRow> {
    return this.#write((tables) => patchThread(tables, scope, patch))
  }

  async deleteThread(scope: Scope): Promise<boolean> {
    const connection = await this.connection()
    const deleted = await connection.write((tables, statements) => {
      const ids = deleteThread(tables, scope)
      if (ids.length === 0) forgetDependents(statements, scope)
      return ids
    })
    reportEnded(connection, deleted)
    return deleted.length > 0
  }

  listThreads(query: ThreadQuery): Promise<{ threads: ThreadRow[]; more: boolean; total?: number }> {
    return this.#read((tables, statements) => listThreads(statements, tables, query))
  }

  readWindow(scope: Scope, window: Window, coming: number): Promise<MessageRow[]> {
    return this.#read((tables) => readWindow(tables, scope, window, coming))
  }

  listRows(scope: Scope, query: RowQuery): Promise<{ rows: MessageRow[]; more: boolean }> {
    return this.#read((tables, statements) => listRows(statements, tables, scope, query))
  }

  saveRows(scope: Scope, rows: readonly MessageRow[]): Promise<MessageRow[]> {
    return this.#write((tables) => saveRows(tables, scope, rows))
  }

  deleteMessages(scope: Scope, messageIds?: readonly string[]): Promise<number> {
    return this.#write((tables) => deleteMessages(tables, scope, messageIds))
  }

  claimTitles(claim: TitleClaim): Promise<WantedTitle[]> {
    return this.#write((tables) => claimTitles(tables, claim))
  }

  returnTitle(threadId: string, dueAt: number | null): Promise<void> {
    return this.#write((tables) => returnTitle(tables, threadId, dueAt))
  }

  getWorkingMemory(of: WorkingMemoryOf, run?: { threadId: string; runId: string }): Promise<WorkingMemoryRow | null> {
    return this.#read((tables) => getWorkingMemory(tables, of, run))
  }

  mergeWorkingMemory(of: WorkingMemoryOf, change: WorkingMemoryChange, by?: WorkingMemoryWriter): Promise<WorkingMemoryRow> {
    return this.#write((tables) => mergeWorkingMemory(tables, of, change, by))
  }

  listWorkingMemory(of: WorkingMemoryOf, query: { limit: number; before?: number }): Promise<WorkingMemoryRow[]> {
    return this.#read((tables) => listWorkingMemory(tables, of, query))
  }

  listMessageStarts(scope: Scope, query: MessageStartQuery): Promise<{ starts: MessageStart[]; more: boolean }> {
    return this.#read((tables, statements) => listMessageStarts(statements, tables, scope, query))
  }

  countMessages(scope: Scope, { before }: { before?: number } = {}): Promise<number> {
    return this.#read((tables, statements) => countMessages(statements, tables, scope, before))
  }

  findMessages(messageIds: readonly string[], resourceId?: string): Promise<MessagePlace[]> {
    return this.#read((_, statements) => findMessages(statements, messageIds, resourceId))
  }

  saveMessages(groups: readonly MessageGroup[]): Promise<Message[]> {
    return this.#write((tables) => saveMessages(tables, groups))
  }

  updateMessages(groups: readonly MessagePatches[]): Promise<Message[]> {
    return this.#write((tables) => updateMessages(tables, groups))
  }

  cloneThread(scope: Scope, clone: ThreadClone): Promise<ThreadRow> {
    return this.#write((tables) => cloneThread(tables, scope, clone))
  }

  transferThread(scope: Scope, resourceId: string, quota?: Quota): Promise<ThreadRow> {
    return this.#write((tables) => transferThread(tables, scope, resourceId, quota))
  }

  async pruneSome(policy: PrunePolicy): Promise<Pruned> {
    const pruned = await this.#write((tables) => pruneSome(tables, policy))
    reportEnded(await this.connection(), pruned.threadIds)
    return pruned
  }

  async pruneDue(policy: DuePolicy): Promise<Pruned | null> {
    const pruned = await this.#write((tables) => pruneDue(tables, policy))
    if (pruned) reportEnded(await this.connection(), pruned.threadIds)
    return pruned
  }

  listLanes(scope: Scope, query: { after?: string; limit: number }): Promise<LaneRow[]> {
    return this.#read((tables) => listLanes(tables, scope, query))
  }

  readLane(scope: Scope, id: string, options?: { placed?: boolean }): Promise<LaneState | null> {
    return this.#read((tables) => readLane(tables, scope, id, options))
  }

  listLaneSignals(
    scope: Scope,
    id: string,
    query: { before?: number; limit: number },
  ): Promise<{ signals: LaneSignalRow[]; more: boolean }> {
    return this.#read((tables) => listLaneSignals(tables, scope, id, query))
  }

  listRunDetails(scope: Scope, page: { limit: number; offset?: number }): Promise<RunDetails[]> {
    return this.#read((tables, statements) => listRunDetails(statements, tables, scope, page))
  }

  readPrompt(scope: Scope, runId: string, step: number): Promise<(StoredPrompt & { previous?: StoredPrompt }) | null> {
    return this.#read((tables, statements) => readPrompt(statements, tables, scope, runId, step))
  }

  pruneHeads(query: { before: number; after?: string; limit: number }): Promise<{ removed: number; next?: string }> {
    return this.#write((_, statements) => pruneHeads(statements, query))
  }

  getWorkflowRun(scope: Scope): ReturnType<ThreadStore['getWorkflowRun']> {
    return this.#read((tables, statements) => getWorkflowRun(statements, tables, scope))
  }

  listWorkflowRuns(query: WorkflowRunQuery): ReturnType<ThreadStore['listWorkflowRuns']> {
    return this.#read((_, statements) => listWorkflowRuns(statements, query))
  }

  listProcesses(): Promise<ProcessRow[]> {
    return this.#read((tables, statements) => listProcesses(statements, tables.now()))
  }

  saveVersion(draft: NewVersion): ReturnType<ThreadStore['saveVersion']> {
    return this.#write((_, statements) => saveVersion(statements, draft))
  }

  publishVersion(release: NewRelease): Promise<StoredRelease> {
    return this.#write((_, statements) => publishVersion(statements, release))
  }

  rollBackVersion(rollback: NewRollback): Promise<StoredRelease> {
    return this.#write((_, statements) => rollBackVersion(statements, rollback))
  }

  deleteVersions(asked: DeletedVersions): Promise<number[]> {
    return this.#write((_, statements) => deleteVersions(statements, asked))
  }

  getVersion(of: EditSubject, version: number): Promise<StoredVersion | null> {
    return this.#read((_, statements) => getVersion(statements, of, version))
  }

  listVersions(query: VersionQuery): ReturnType<ThreadStore['listVersions']> {
    return this.#read((_, statements) => listVersions(statements, query))
  }

  listReleases(query: EditQuery): ReturnType<ThreadStore['listReleases']> {
    return this.#read((_, statements) => listReleases(statements, query))
  }

  listPromptBlocks(query: { after?: string; limit: number }): ReturnType<ThreadStore['listPromptBlocks']> {
    return this.#read((_, statements) => listPromptBlocks(statements, query))
  }

  listBlockUsers(blockId: string): Promise<string[]> {
    return this.#read((_, statements) => listBlockUsers(statements, blockId))
  }

  editOfRun(run: RunToEdit, tried?: TriedVersion): Promise<RunEdit | undefined> {
    return this.#read((_, statements) => editOfRun(statements, run, tried))
  }

  // As a storage

  /** The store of a domain. All of them are in this database. */
  async getStore<Domain extends keyof StoreDomains>(domain: Domain): Promise<StoreDomains[Domain] | undefined> {
    this.#domains ??= this.#createDomains()
    return Object.hasOwn(this.#domains, domain) ? this.#domains[domain] : undefined
  }

  #createDomains(): Partial<StoreDomains> {
    const recall = this.recallIndex()
    return {
      memory: this,
      notifications: new SqlInbox(this),
      schedules: new SqlSchedules(this),
      subscriptions: new SqlSubscriptions(this),
      watches: new SqlWatches(this, { threads: this }),
      ...(recall && { recall }),
    }
  }

  /** Deletes records that are older than `retention` allows, in small transactions. */
  async prune(how: PruneOptions = {}): Promise<PruneResult> {
    const options = { ...how, retention: how.retention ?? this.retention, now: how.now ?? this.clock.now() }
    return pruneStore(this, await this.getStore('watches'), options)
  }

  /** The time by the clock of the store: for a file the machine's, which all its processes share. */
  now(): number {
    return this.clock.now()
  }

  /**
   * After a restore: the database may lack heads that this process has stored.
   * @internal
   */
  protected forgetHeads(): void {
    this.#heads.clear()
  }

  /** @internal */
  connection(): Promise<SqlConnection> {
    return this.#connected && !this.#closed ? Promise.resolve(this.#connected) : this.#connect()
  }

  #write<Result>(work: (tables: SqlTables, statements: Statements) => Result): Promise<Result> {
    return this.#use((connection) => connection.write(work))
  }

  #read<Result>(work: (tables: SqlTables, statements: Statements) => Result): Promise<Result> {
    return this.#use((connection) => connection.read(work))
  }

  #use<Result>(act: (connection: SqlConnection) => Promise<Result>): Promise<Result> {
    return this.#connected && !this.#closed ? act(this.#connected) : this.#connect().then(act)
  }

  async #connect(): Promise<SqlConnection> {
    if (this.#closed) throw new HeedError('closed', 'This store was closed. Open a new one.')
    if (!this.#opening) {
      storeWork.begin()
      this.#opening = this.connect().catch((error: unknown) => {
        // A file that was locked or missing may be available at the next attempt.
        this.#opening = undefined
        throw error
      }).finally(() => storeWork.end())
      this.#opening.then(
        ({ connection }) => (this.#connected = connection),
        () => {},
      )
    }
    return (await this.#opening).connection
  }
}

/** Reports that these threads were deleted; without ids, that the database was restored from a backup. */
export function reportEnded({ threadsEnded }: SqlConnection, threadIds?: readonly string[]): void {
  if (threadIds?.length !== 0) for (const report of threadsEnded) report(threadIds)
}
