import { checkNames } from '../../base/arguments.ts'
import type { Bus } from '../../bus/contract.ts'
import { LocalBus } from '../../bus/local.ts'
import { systemClock, type Clock } from '../../base/clock.ts'
import { newId } from '../../base/ids.ts'
import { HeedError } from '../../base/errors.ts'
import type { Message } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import { nextRun, type SignalState } from '../../machine.ts'
import type {
  Accepted, BegunRun, CallDecision, Claimed, Decided, Fence, LaneRow, LaneSignalRow, LaneState, MailboxRow, NewThread, RowQuery, RunFilter, RunPage,
  RunRow, Scope, Send, StepCommit, StepCommitted, SuspendedEnd, ThreadQuery, ThreadRow, ThreadStore, Window, Windows,
} from '../contract/threads.ts'
import type { Belongings } from '../contract/thread-dependents.ts'
import type { DuePolicy, MessageGroup, MessagePatches, MessagePlace, MessageStart, MessageStartQuery, PrunePolicy, Pruned, ThreadClone } from '../contract/messages.ts'
import { checkRetention, pruneStore, type PruneOptions, type PruneResult, type Retention } from '../retention.ts'
import { acceptSends } from '../core/accept.ts'
import { beginRun, readWindow } from '../core/begin.ts'
import { claimThread, resign } from '../core/claim.ts'
import { cloneThread, transferThread } from '../core/clone.ts'
import { commitStep } from '../core/commit.ts'
import { describedThread, mailboxRow, rowsOfMail, runRow } from '../core/decode.ts'
import { findThread, scopedThread } from '../core/guard.ts'
import { listLanes, listLaneSignals, readLane } from '../core/lanes.ts'
import { cancelSignals, reorderSignals } from '../core/mailbox.ts'
import { deleteMessages, saveRows } from '../core/messages.ts'
import { pruneDue, pruneSome } from '../core/prune.ts'
import { retryParked } from '../core/retry.ts'
import { decideCall, endSuspended } from '../core/suspend.ts'
import { createThread, deleteThread, patchThread, type ThreadPatch } from '../core/threads.ts'
import type { DomainStorage, StoreDomains } from '../contract/storage.ts'
import { saveMessages, updateMessages } from '../core/whole-messages.ts'
import { claimTitles, returnTitle } from '../core/titles.ts'
import type { TitleClaim, WantedTitle } from '../contract/titles.ts'
import { getWorkingMemory, listWorkingMemory, mergeWorkingMemory } from '../core/working-memory.ts'
import type { WorkingMemoryChange, WorkingMemoryOf, WorkingMemoryRow, WorkingMemoryWriter } from '../contract/working-memory.ts'
import { findMessages, listMessageStarts } from './conversations.ts'
import { listRows, listRuns, listSignals, listThreads } from './queries.ts'
import { InMemoryRecall } from './recall.ts'
import type { Shelf } from './shelf.ts'
import { MemoryTables } from './tables.ts'

/** Keeps threads for the life of the process. For tests, and for programs that want no file. */
export class InMemoryStore implements ThreadStore {
  readonly id: string
  /** What is kept here goes with the process: nothing can be left of an earlier one. */
  readonly ephemeral = true
  readonly #tables: MemoryTables
  readonly #bus = new LocalBus()
  readonly namespace = `memory:${newId()}`
  readonly #clock: Clock
  /** A database in memory for what isn't threads. */
  #beside: Promise<DomainStorage & { close(): Promise<void> }> | undefined
  #recall: InMemoryRecall | undefined
  #closed = false

  /** For how long things are kept. */
  readonly retention: Retention | undefined

  constructor(options: { id?: string; clock?: Clock; retention?: Retention } = {}) {
    checkNames('InMemoryStore', options, ['id', 'clock', 'retention'])
    this.id = options.id ?? 'memory'
    this.#clock = options.clock ?? systemClock
    if (options.retention !== undefined) checkRetention(options.retention)
    this.retention = options.retention
    this.#tables = new MemoryTables(this.#clock)
  }

  async open(): Promise<void> {
    this.#use()
  }

  async close(): Promise<void> {
    this.#closed = true
    await (await this.#beside)?.close()
  }

  bus(): Bus {
    return this.#bus
  }

  async accept(sends: readonly Send[]): Promise<Array<Accepted | { error: Error }>> {
    // Sends of one moment are transactions of their own here: the run begins with the next one, and takes all of them.
    return acceptSends(this.#use(), sends.map((send) => (send.claim ? { ...send, claim: { owner: send.claim.owner } } : send)))
  }

  async flush(): Promise<void> {
    this.#use()
  }

  async claim(threadId: string, owner: string, agentIds?: readonly string[], again?: Fence): Promise<Claimed | null> {
    return claimThread(this.#use(), threadId, owner, agentIds, again)
  }

  async beginRun(fence: Fence, windows: Windows): Promise<BegunRun | null> {
    return beginRun(this.#use(), fence, windows)
  }

  async commitStep(fence: Fence, commit: StepCommit): Promise<StepCommitted> {
    const committed = commitStep(this.#use(), fence, commit)
    if (committed.gone) await this.#forget(committed.gone)
    return committed
  }

  async decide(scope: Scope, decision: CallDecision, owner?: string): Promise<Decided> {
    return decideCall(this.#use(), scope, decision, owner)
  }

  async endSuspended(scope: Scope, runId: string, options: { clearPending?: boolean }): Promise<SuspendedEnd> {
    return endSuspended(this.#use(), scope, runId, options)
  }

  async retryParked(scope: Scope, runId: string, options: { owner?: string; removed?: readonly string[] }): Promise<{ agentId: string; fence?: Fence }> {
    return retryParked(this.#use(), scope, runId, options)
  }

  async heartbeat(owner: string, until: number): Promise<void> {
    this.#use().putProcess(owner, until)
  }

  async resign(owner: string): Promise<void> {
    resign(this.#use(), owner)
  }

  async listOrphans(now: number, limit: number, agentIds?: readonly string[]): Promise<Array<{ threadId: string; agentId: string }>> {
    const tables = this.#use()
    const orphans = [...tables.shelves.values()].flatMap((shelf) => {
      const { thread } = shelf
      const gone = thread.owner !== null && (tables.aliveUntil(thread.owner) ?? -Infinity) < now
      const agentId = gone || thread.dueAt !== null ? (thread.agentId ?? nextRun(tables.pending(thread))[0]?.agentId) : undefined
      return agentId === undefined || (agentIds && !agentIds.includes(agentId)) ? [] : { threadId: thread.id, agentId }
    })
    return orphans.slice(0, limit)
  }

  async listSignals(scope: Scope, options: { states?: SignalState[]; limit?: number; after?: number } = {}): Promise<MailboxRow[]> {
    return listSignals(this.#shelf(scope), options)
  }

  async getSignal(scope: Scope, id: string): Promise<MailboxRow | null> {
    const tables = this.#use()
    const thread = scopedThread(tables, scope)
    const mail = tables.mail(thread, id)
    return mail ? mailboxRow(thread, mail, rowsOfMail(tables, thread, mail)) : null
  }

  async cancelSignals(scope: Scope, ids: readonly string[]): Promise<string[]> {
    return cancelSignals(this.#use(), scope, ids)
  }

  async reorderSignals(scope: Scope, ids: readonly string[]): Promise<string[]> {
    return reorderSignals(this.#use(), scope, ids)
  }

  async getRun(scope: Scope, runId: string): Promise<RunRow | null> {
    const tables = this.#use()
    const thread = scopedThread(tables, scope)
    const run = tables.run(thread, runId)
    return run ? runRow(thread, run) : null
  }

  async findRun(runId: string): Promise<RunRow | null> {
    const found = listRuns(this.#use().shelves.values(), {}).find((run) => run.runId === runId)
    return found ?? null
  }

  async listRuns(filter: RunPage): Promise<RunRow[]> {
    return listRuns(this.#use().shelves.values(), filter)
  }

  async countRuns(filter: RunFilter): Promise<number> {
    return listRuns(this.#use().shelves.values(), { ...filter }).length
  }

  async getThread(scope: Scope): Promise<ThreadRow | null> {
    const tables = this.#use()
    const thread = findThread(tables, scope)
    return thread ? describedThread(tables, thread) : null
  }

  async createThread(thread: NewThread): Promise<{ thread: ThreadRow; created: boolean }> {
    return createThread(this.#use(), thread)
  }

  async patchThread(scope: Scope, patch: ThreadPatch): Promise<ThreadRow> {
    return patchThread(this.#use(), scope, patch)
  }

  async deleteThread(scope: Scope): Promise<boolean> {
    const deleted = deleteThread(this.#use(), scope)
    await this.#forget([...deleted, scope.threadId], scope.resourceId)
    return deleted.length > 0
  }

  async listThreads(query: ThreadQuery): Promise<{ threads: ThreadRow[]; more: boolean; total?: number }> {
    return listThreads(this.#use().shelves.values(), query)
  }

  async readWindow(scope: Scope, window: Window, coming: number): Promise<MessageRow[]> {
    return readWindow(this.#use(), scope, window, coming)
  }

  async listRows(scope: Scope, query: RowQuery): Promise<{ rows: MessageRow[]; more: boolean }> {
    return listRows(this.#shelf(scope), query)
  }

  async saveRows(scope: Scope, rows: readonly MessageRow[]): Promise<MessageRow[]> {
    return saveRows(this.#use(), scope, rows)
  }

  async deleteMessages(scope: Scope, messageIds?: readonly string[]): Promise<number> {
    return deleteMessages(this.#use(), scope, messageIds)
  }

  async claimTitles(claim: TitleClaim): Promise<WantedTitle[]> {
    return claimTitles(this.#use(), claim)
  }

  async returnTitle(threadId: string, dueAt: number | null): Promise<void> {
    returnTitle(this.#use(), threadId, dueAt)
  }

  async getWorkingMemory(of: WorkingMemoryOf, run?: { threadId: string; runId: string }): Promise<WorkingMemoryRow | null> {
    return getWorkingMemory(this.#use(), of, run)
  }

  async mergeWorkingMemory(of: WorkingMemoryOf, change: WorkingMemoryChange, by?: WorkingMemoryWriter): Promise<WorkingMemoryRow> {
    return mergeWorkingMemory(this.#use(), of, change, by)
  }

  async listWorkingMemory(of: WorkingMemoryOf, query: { limit: number; before?: number }): Promise<WorkingMemoryRow[]> {
    return listWorkingMemory(this.#use(), of, query)
  }

  async listMessageStarts(scope: Scope, query: MessageStartQuery): Promise<{ starts: MessageStart[]; more: boolean }> {
    return listMessageStarts(this.#shelf(scope), query)
  }

  async findMessages(messageIds: readonly string[], resourceId?: string): Promise<MessagePlace[]> {
    return findMessages(this.#use().shelves.values(), messageIds, resourceId)
  }

  async saveMessages(groups: readonly MessageGroup[]): Promise<Message[]> {
    return saveMessages(this.#use(), groups)
  }

  async updateMessages(groups: readonly MessagePatches[]): Promise<Message[]> {
    return updateMessages(this.#use(), groups)
  }

  async cloneThread(scope: Scope, clone: ThreadClone): Promise<ThreadRow> {
    return cloneThread(this.#use(), scope, clone)
  }

  async transferThread(scope: Scope, resourceId: string): Promise<ThreadRow> {
    const thread = transferThread(this.#use(), scope, resourceId)
    for (const place of await this.#belongings()) await place.giveThread(thread.id, resourceId)
    return thread
  }

  async pruneSome(policy: PrunePolicy): Promise<Pruned> {
    const pruned = pruneSome(this.#use(), policy)
    await this.#forget(pruned.threadIds)
    return pruned
  }

  async pruneDue(policy: DuePolicy): Promise<Pruned | null> {
    const pruned = pruneDue(this.#use(), policy)
    await this.#forget(pruned?.threadIds ?? [])
    return pruned
  }

  async listLanes(scope: Scope, query: { after?: string; limit: number }): Promise<LaneRow[]> {
    return listLanes(this.#use(), scope, query)
  }

  async readLane(scope: Scope, id: string, options?: { placed?: boolean }): Promise<LaneState | null> {
    return readLane(this.#use(), scope, id, options)
  }

  async listLaneSignals(scope: Scope, id: string, query: { before?: number; limit: number }): Promise<{ signals: LaneSignalRow[]; more: boolean }> {
    return listLaneSignals(this.#use(), scope, id, query)
  }

  /** Removes what is older than `retention` keeps. */
  prune(how: PruneOptions = {}): Promise<PruneResult> {
    return pruneStore(this, { ...how, retention: how.retention ?? this.retention, now: how.now ?? this.#clock.now() })
  }

  /** The store of a domain. All but threads and their recall are in a database in memory, which is loaded when it is first asked for. */
  async getStore<Domain extends keyof StoreDomains>(domain: Domain): Promise<StoreDomains[Domain] | undefined> {
    this.#recall ??= new InMemoryRecall(this, this.#clock)
    const own: Partial<StoreDomains> = { memory: this, recall: this.#recall }
    if (Object.hasOwn(own, domain)) return own[domain]
    this.#beside ??= this.#openBeside()
    return (await this.#beside).getStore(domain)
  }

  async #openBeside(): Promise<DomainStorage & { close(): Promise<void> }> {
    const { LibSQLStore } = await import('../sqlite/store.ts')
    return new LibSQLStore({ url: ':memory:', clock: this.#clock })
  }

  async #forget(threadIds: readonly string[], resourceId?: string): Promise<void> {
    if (threadIds.length > 0) for (const place of await this.#belongings()) await place.forgetThreads(threadIds, resourceId)
  }

  /** What hangs on threads, if anything was ever kept of it. */
  async #belongings(): Promise<Belongings[]> {
    const beside = await this.#beside
    const places = [await beside?.getStore('notifications'), await beside?.getStore('schedules'), await beside?.getStore('subscriptions')]
    return places.filter((place) => place !== undefined)
  }

  #use(): MemoryTables {
    if (this.#closed) throw new HeedError('closed', 'This store was closed. Open a new one.')
    return this.#tables
  }

  #shelf(scope: Scope): Shelf {
    const thread = scopedThread(this.#use(), scope)
    const shelf = this.#tables.shelves.get(thread.id)
    if (!shelf) throw new HeedError('thread_not_found', `There is no thread ${scope.threadId}.`)
    return shelf
  }
}
