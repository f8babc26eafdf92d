import type { Bus } from '../../bus/contract.ts'
import { LibSQLBus } from '../../bus/libsql/bus.ts'
import { LocalBus } from '../../bus/local.ts'
import { systemClock, type Clock } from '../../base/clock.ts'
import { newId } from '../../base/ids.ts'
import { HeedError } from '../../base/errors.ts'
import type { Message } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import type { SignalState } from '../../machine.ts'
import type {
  Accepted, BegunRun, CallDecision, Claimed, Decided, Fence, LaneRow, LaneSignalRow, LaneState, MailboxRow, NewThread, RowQuery,
  RunFilter, RunPage, RunRow, Scope, Send, StepCommit, StepCommitted, SuspendedEnd, ThreadQuery, ThreadRow, ThreadStore, TitleClaim,
  WantedTitle, Window, Windows,
} from '../contract/threads.ts'
import type { DuePolicy, MessageGroup, MessagePatches, MessagePlace, MessageStart, MessageStartQuery, PrunePolicy, Pruned, ThreadClone } from '../contract/messages.ts'
import { pruneStore, type PruneOptions, type PruneResult, type Retention } from '../retention.ts'
import type { StoreDomains } from '../contract/storage.ts'
import { acceptSends, beginWoken } from '../core/accept.ts'
import { beginRun, claimThread, readWindow, resign, retryParked } from '../core/begin.ts'
import {
  claimTitles, cloneThread, createThread, deleteThread, patchThread, pruneDue, pruneSome, returnTitle, threadWithLanes, transferThread,
} from '../core/threads.ts'
import type { ThreadPatch } from '../core/threads.ts'
import { commitStep } from '../core/commit.ts'
import { listLanes, listLaneSignals, readLane } from '../core/lanes.ts'
import { findThread, scopedThread } from '../core/lease.ts'
import { cancelSignals, reorderSignals } from '../core/mailbox.ts'
import { deleteMessages, saveMessages, saveRows, updateMessages } from '../core/messages.ts'
import { mailboxRow, rowsOfMail, runRow } from '../core/records.ts'
import { decideCall, endSuspended } from '../core/suspend.ts'
import { getWorkingMemory, listWorkingMemory, mergeWorkingMemory } from '../core/working-memory.ts'
import type { WorkingMemoryChange, WorkingMemoryOf, WorkingMemoryRow, WorkingMemoryWriter } from '../contract/working-memory.ts'
import { checkBackup, writeBackup } from './backup.ts'
import { forgetBelongings } from '../sql/thread-dependents.ts'
import type { BulkJob } from './bulk-job.ts'
import type { LibSQLClient } from './client.ts'
import { Connection } from './connection.ts'
import { findMessages, listMessageStarts } from '../sql/conversations.ts'
import { domainsIn } from './domains.ts'
import { answersOf, storeFailure } from '../sql/failure.ts'
import { parseLocation, namespaceAt, placeAt, resolveFile, type Location } from './location.ts'
import { countRuns, findRun, listOrphans, listRows, listRuns, listSignals, type Orphan } from '../sql/queries.ts'
import { openDatabase, type Opened } from './open.ts'
import type { DatabaseConnection } from './remote.ts'
import { LibSQLRecall } from '../../recall/index/index.ts'
import type { Statements } from '../sql/statements.ts'
import { checkStoreOptions, type LibSQLStoreOptions } from './store-options.ts'
import type { SqlTables } from '../sql/tables.ts'
import { listThreads } from '../sql/thread-list.ts'

/** Rows of a thread that are copied or removed in a few milliseconds. */
const largeThread = 2_000

/** Threads in a database file, or on a server. Stores that name the same file share its connection. */
export class LibSQLStore implements ThreadStore {
  readonly id: string
  /** As it was given. */
  readonly url: string
  readonly #location: Location
  readonly #clock: Clock
  readonly #busyTimeout: number
  readonly retention: Retention | undefined
  readonly #client: LibSQLClient | undefined
  readonly #authToken: string | undefined
  #opening: Promise<Opened> | undefined
  #domains: Partial<StoreDomains> | undefined
  #connected: DatabaseConnection | undefined
  #closed = false
  #place: string | undefined
  #bus: Bus | undefined
  readonly #named: string | undefined
  #namespace: string | undefined

  constructor(options: LibSQLStoreOptions) {
    checkStoreOptions(options)
    this.id = options.id ?? 'libsql'
    this.url = options.url
    this.#location = parseLocation(options.url)
    this.#client = options.client
    this.#authToken = options.authToken
    this.#clock = options.clock ?? systemClock
    this.#busyTimeout = options.busyTimeout ?? 10_000
    this.retention = options.retention
    this.#named = options.namespace
  }

  /** The database that it names, the same under every spelling; nothing where each store has its own. */
  get place(): string | undefined {
    this.#place ??= this.#client || this.#clock !== systemClock ? undefined : placeAt(this.#location)
    return this.#place
  }

  async open(): Promise<void> {
    await this.#connection()
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    const opened = await this.#opening?.catch(() => undefined)
    await opened?.release()
  }

  /** Names the database on a bus. A store in memory, which no other shares, has a name of its own. */
  get namespace(): string {
    this.#namespace ??= this.#named ?? namespaceAt(this.#location) ?? `memory:${newId()}`
    return this.#namespace
  }

  /** For a file, one that connects every process on it. */
  bus(): Bus {
    const location = this.#location
    this.#bus ??= location.kind === 'file' && !this.#client ? new LibSQLBus(() => resolveFile(location.path)) : new LocalBus()
    return this.#bus
  }

  accept(sends: readonly Send[]): Promise<Array<Accepted | { error: Error }>> {
    return this.#use((connection) => connection.write(
      (tables) => answersOf(acceptSends(tables, sends)),
      { last: (tables, answers) => beginWoken(tables, sends, answers) },
    ))
  }

  flush(): Promise<void> {
    return this.#use((connection) => connection.flush())
  }

  claim(threadId: string, owner: string, agentIds?: readonly string[], again?: Fence): Promise<Claimed | null> {
    return this.#write((tables) => claimThread(tables, threadId, owner, agentIds, again))
  }

  beginRun(fence: Fence, windows: Windows): Promise<BegunRun | null> {
    return this.#write((tables) => beginRun(tables, fence, windows))
  }

  commitStep(fence: Fence, commit: StepCommit): Promise<StepCommitted> {
    return this.#write((tables) => commitStep(tables, fence, commit))
  }

  decide(scope: Scope, decision: CallDecision, owner?: string): Promise<Decided> {
    return this.#write((tables) => decideCall(tables, scope, decision, owner))
  }

  endSuspended(scope: Scope, runId: string, options: { clearPending?: boolean }): Promise<SuspendedEnd> {
    return this.#write((tables) => endSuspended(tables, scope, runId, options))
  }

  retryParked(scope: Scope, runId: string, options: { owner?: string; removed?: readonly string[] }): Promise<{ agentId: string; fence?: Fence }> {
    return this.#write((tables) => retryParked(tables, scope, runId, options))
  }

  /** Before all that waits: a process that has much to do must not count as gone for it. */
  async heartbeat(owner: string, until: number): Promise<void> {
    const connection = await this.#connection()
    return connection.write((tables) => tables.putProcess(owner, until), { first: true })
  }

  resign(owner: string): Promise<void> {
    return this.#write((tables) => resign(tables, owner))
  }

  listOrphans(now: number, limit: number, agentIds?: readonly string[]): Promise<Orphan[]> {
    return this.#read((tables, statements) => listOrphans(statements, tables, now, limit, agentIds))
  }

  listSignals(scope: Scope, options: { states?: SignalState[]; limit?: number; after?: number } = {}): Promise<MailboxRow[]> {
    return this.#read((tables, statements) => listSignals(statements, tables, scope, options))
  }

  getSignal(scope: Scope, id: string): Promise<MailboxRow | null> {
    return this.#read((tables) => {
      const thread = scopedThread(tables, scope)
      const mail = tables.mail(thread, id)
      return mail ? mailboxRow(thread, mail, rowsOfMail(tables, thread, mail)) : null
    })
  }

  cancelSignals(scope: Scope, ids: readonly string[]): Promise<string[]> {
    return this.#write((tables) => cancelSignals(tables, scope, ids))
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

  createThread(thread: NewThread): Promise<{ thread: ThreadRow; created: boolean }> {
    return this.#write((tables) => createThread(tables, thread))
  }

  patchThread(scope: Scope, patch: ThreadPatch): Promise<ThreadRow> {
    return this.#write((tables) => patchThread(tables, scope, patch))
  }

  deleteThread(scope: Scope): Promise<boolean> {
    return this.#use((connection) => connection.write((tables, statements) => {
      const deleted = deleteThread(tables, scope).length > 0
      if (!deleted) forgetBelongings(statements, scope)
      return deleted
    }))
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

  async deleteMessages(scope: Scope, messageIds?: readonly string[]): Promise<number> {
    if (messageIds === undefined && (await this.#isLarge(scope))) return (await this.#bulk({ kind: 'deleteMessages', scope })) as number
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

  findMessages(messageIds: readonly string[], resourceId?: string): Promise<MessagePlace[]> {
    return this.#read((_, statements) => findMessages(statements, messageIds, resourceId))
  }

  saveMessages(groups: readonly MessageGroup[]): Promise<Message[]> {
    return this.#write((tables) => saveMessages(tables, groups))
  }

  updateMessages(groups: readonly MessagePatches[]): Promise<Message[]> {
    return this.#write((tables) => updateMessages(tables, groups))
  }

  async cloneThread(scope: Scope, clone: ThreadClone): Promise<ThreadRow> {
    if (await this.#isLarge(scope)) return (await this.#bulk({ kind: 'cloneThread', scope, clone })) as ThreadRow
    return this.#write((tables) => cloneThread(tables, scope, clone))
  }

  transferThread(scope: Scope, resourceId: string): Promise<ThreadRow> {
    return this.#write((tables) => transferThread(tables, scope, resourceId))
  }

  pruneSome(policy: PrunePolicy): Promise<Pruned> {
    return this.#write((tables) => pruneSome(tables, policy))
  }

  pruneDue(policy: DuePolicy): Promise<Pruned | null> {
    return this.#write((tables) => pruneDue(tables, policy))
  }

  listLanes(scope: Scope, query: { after?: string; limit: number }): Promise<LaneRow[]> {
    return this.#read((tables) => listLanes(tables, scope, query))
  }

  readLane(scope: Scope, id: string, options?: { placed?: boolean }): Promise<LaneState | null> {
    return this.#read((tables) => readLane(tables, scope, id, options))
  }

  listLaneSignals(scope: Scope, id: string, query: { before?: number; limit: number }): Promise<{ signals: LaneSignalRow[]; more: boolean }> {
    return this.#read((tables) => listLaneSignals(tables, scope, id, query))
  }

  // As a storage

  /** The store of a domain. This one keeps all of them in its file. */
  async getStore<Domain extends keyof StoreDomains>(domain: Domain): Promise<StoreDomains[Domain] | undefined> {
    // An index is a file beside the messages, or in memory with them: there is none for those of a server.
    const indexed = !this.#client && this.#location.kind !== 'remote'
    this.#domains ??= { memory: this, ...domainsIn(this), ...(indexed ? { recall: new LibSQLRecall(this, this.#clock) } : {}) }
    return Object.hasOwn(this.#domains, domain) ? this.#domains[domain] : undefined
  }

  /** Removes what is older than `retention` keeps, in small transactions. */
  prune(how: PruneOptions = {}): Promise<PruneResult> {
    return pruneStore(this, { ...how, retention: how.retention ?? this.retention, now: how.now ?? this.#clock.now() })
  }

  /** Writes one state of the database to a new file, while everything goes on. It can be opened like any other. */
  async backup(path: string): Promise<void> {
    const connection = await this.#local()
    await writeBackup(path, (to) => (connection.path === undefined ? connection.copyTo(to) : connection.bulk({ kind: 'backup', to }))).catch((error: unknown) => {
      throw storeFailure(error, path)
    })
  }

  /**
   * Puts everything back as it was in a backup, in one transaction. What runs now is cut off; what was active then is taken up by
   * whoever runs its agent.
   */
  async restore(path: string): Promise<void> {
    const connection = await this.#local()
    await checkBackup(path, connection.path).catch((error: unknown) => {
      throw storeFailure(error, path)
    })
    if (connection.path === undefined) throw new HeedError('unsupported_option', 'A database in memory is not restored. Open the backup: new LibSQLStore({ url: `file:${path}` }).')
    await connection.bulk({ kind: 'restore', from: path })
  }

  /** Whether a thread has so much that it is better done in a thread of its own. */
  async #isLarge(scope: Scope): Promise<boolean> {
    const connection = await this.#connection()
    // A server does it without this process waiting for it.
    if (!(connection instanceof Connection) || connection.path === undefined) return false
    return connection.read((tables) => (findThread(tables, scope)?.nextSeq ?? 0) > largeThread)
  }

  async #bulk(job: BulkJob): Promise<unknown> {
    return (await this.#local()).bulk(job)
  }

  /** The connection to a database that this process has in its hands. */
  async #local(): Promise<Connection> {
    const connection = await this.#connection()
    if (connection instanceof Connection) return connection
    throw new HeedError('unsupported_option', 'A database on a server is backed up and restored there, not from here.')
  }

  #write<Result>(work: (tables: SqlTables) => Result): Promise<Result> {
    return this.#use((connection) => connection.write(work))
  }

  #read<Result>(work: (tables: SqlTables, statements: Statements) => Result): Promise<Result> {
    return this.#use((connection) => connection.read(work))
  }

  #use<Result>(act: (connection: DatabaseConnection) => Promise<Result>): Promise<Result> {
    return this.#connected && !this.#closed ? act(this.#connected) : this.#connection().then(act)
  }

  /** @internal */
  now(): number {
    return this.#clock.now()
  }

  /** @internal */
  connection(): Promise<DatabaseConnection> {
    return this.#use((connection) => Promise.resolve(connection))
  }

  async #connection(): Promise<DatabaseConnection> {
    if (this.#closed) throw new HeedError('closed', 'This store was closed. Open a new one.')
    if (!this.#opening) {
      this.#opening = this.#open().catch((error: unknown) => {
        // A file that was busy or missing may be there at the next try.
        this.#opening = undefined
        throw error
      })
      this.#opening.then(({ connection }) => (this.#connected = connection), () => {})
    }
    return (await this.#opening).connection
  }

  #open(): Promise<Opened> {
    return openDatabase({ location: this.#location, url: this.url, client: this.#client, authToken: this.#authToken, clock: this.#clock, busyTimeout: this.#busyTimeout })
  }
}
