import type { JSONObject, JSONValue } from '../../base/json.ts'
import type { Route, SignalState, ThreadStatus, Waiting } from '../../machine.ts'
import type { MessageRow, RowRole } from '../../message/row.ts'
import type { LaneRow, MailboxRow, ProcessInfo, RunRow, RunStatus, SuspendedCall, ThreadRow } from '../contract/threads.ts'

/**
 * The records that a store keeps, and the rows of the contract that are read from them. A record is flat: its fields are columns, JSON is
 * text, times are milliseconds.
 */
export interface ThreadRecord {
  /** The store's own number for the thread. All other records refer to it, so that ids of two threads never collide. */
  readonly key: number
  readonly id: string
  readonly resourceId: string
  title: string
  metadata: string
  readonly parentId: string | null
  readonly createdAt: number
  updatedAt: number
  status: ThreadStatus
  epoch: number
  owner: string | null
  /** The active run; before it begins, the id that is reserved for the next run. */
  runId: string | null
  agentId: string | null
  /** 1 when `runId` has a record. */
  begun: number
  nextSeq: number
  nextOrd: number
  /** The number of counted messages, and the ordinal of the user's last one: see window.ts. */
  ordinal: number
  turn: number
  /** The same for the tail band, counted from its own start. */
  tail: number
  tailOrdinal: number
  tailTurn: number
  /** Since when the thread needs a runner and has none. A hint: it may be set without need, but is never missing. */
  dueAt: number | null
  /** The hash of the head of its last prompt. */
  head: string | null
  /** 0 when the thread has no lanes, in a store that knows this without a query. */
  laned?: number
}

export interface RowRecord {
  readonly seq: number
  readonly id: string
  readonly messageId: string
  readonly role: RowRole
  readonly type: string | null
  readonly runId: string | null
  readonly step: number | null
  readonly content: string
  readonly createdAt: number
  readonly ordinal: number
  readonly turn: number
  /** 1: a counted message begins here. 2: the same, in the tail band. */
  readonly counted: number
  /** The row that this record decodes to, where it is known. */
  decoded?: MessageRow | undefined
}

export interface MailRecord extends Waiting {
  ord: number
  readonly id: string
  readonly agentId: string
  /** `wake` for a signal that was accepted for a run which ended without it, once it has started another. */
  route: Route
  readonly kind: Waiting['kind']
  state: SignalState
  runId: string | null
  /** The id of the run that the signal starts, if it starts one. */
  readonly startRunId: string
  step: number | null
  /** While the signal is pending: its rows, unless `prepared` has them. Once they are in history: their ids. */
  rows: string
  readonly options: string | null
  readonly boundTo: string | null
  reason: string | null
  readonly acceptedAt: number
  drainedAt: number | null
  drainedBy: string | null
  epoch: number | null
  settledAt: number | null
  /** Set only in the transaction that accepts the signal, and only if its run may begin in the same transaction. */
  prepared?: PreparedMail | undefined
}

/** The encoded rows of a signal that was accepted in this transaction: a run that takes it there need not decode `rows`. */
export interface PreparedMail {
  readonly rows: readonly PreparedRow[]
  /** The id of its run was generated for it, so no run has it yet. */
  readonly newRun: boolean
}

export interface RunRecord {
  readonly runId: string
  readonly agentId: string
  status: RunStatus
  epoch: number
  step: number
  attempts: number
  readonly options: string
  started: string
  suspended: string
  readonly startedAt: number
  endedAt: number | null
  suspendedAt: number | null
  error: string | null
  usage: string | null
  /** Where its rows begin, and where those rows begin that a guardrail may still remove. */
  readonly firstSeq: number
  sealSeq: number
  /** Changes of working memory that take effect when the run ends or is sealed; JSON, or null. */
  staged: string | null
  lost: string | null
  /** The thread's ordinal when the run began: its window stays where it was then. */
  readonly ordinal: number
  /** The `ord`s of the signals that it took and that are not in a final state: see `encodeOrdRanges`. */
  taken: string | null
  /** The decisions about its calls, as JSON. */
  decisions: string | null
}

/** A step and its model call. */
export interface StepRecord {
  /** Of the first row after its prompt. */
  readonly seq: number
  readonly step: number
  readonly epoch: number
  readonly runId: string
  readonly owner: string
  readonly startedAt: number
  readonly finishedAt: number
  readonly provider: string | null
  readonly modelId: string | null
  readonly specification: string | null
  readonly finish: string | null
  readonly usage: string | null
  readonly head: string
  readonly windowFrom: number
  readonly windowCut: number
  readonly rowCount: number
  readonly messages: number
  readonly hash: string
  readonly altered: string | null
}

export interface TakeoverRecord {
  readonly epoch: number
  readonly runId: string
  readonly step: number
  readonly lost: string | null
  readonly owner: string
  readonly at: number
}

/** The last heartbeat of a process. */
export interface HeartbeatRecord {
  /** When it expires. */
  until: number
  /** The time between the heartbeat and `until`, in milliseconds. */
  length: number
  info?: ProcessInfo | undefined
  /** The time at which it was read, where the database has a clock of its own. */
  now?: number
  /** In this case also for how long its process is known to have written no later one, by the clock of this process. */
  silentFor?: number
}

export interface LaneRecord {
  readonly id: string
  version: number
  cacheKey: string
  mode: 'snapshot' | 'delta'
  lastSignalId: string
  lastSnapshotId: string | null
  /** The highest version ever issued. `version` is that of the last signal, or 0 when no signal is left. */
  issued: number
}

export interface LaneSignalRecord {
  readonly lane: string
  readonly version: number
  readonly signalId: string
  readonly cacheKey: string
  /** `gone`: a removed snapshot that still has deltas. They do not apply to the snapshot before it. */
  readonly mode: 'snapshot' | 'delta' | 'gone'
}

/** A thread that needs a title. */
export interface TitleRecord {
  readonly agentId: string
  /** The process that generates it until `dueAt`. */
  readonly owner: string | null
  readonly dueAt: number
  readonly attempts: number
}

/** One version. `value` is JSON: a string or an object. */
export interface WorkingMemoryRecord {
  readonly version: number
  readonly value: string
  readonly at: number
  readonly changeId: string | null
  /** Where values in it came from that outside senders chose, as JSON. */
  readonly taintedBy: string | null
}

export interface PruningRecord {
  /** The key of the last thread that was checked. */
  after: number
  dueAt: number
}

export type NewThreadRecord = Pick<ThreadRecord, 'id' | 'resourceId' | 'title' | 'metadata' | 'parentId' | 'createdAt'>
export type CountedRow = Pick<RowRecord, 'seq' | 'ordinal' | 'turn'>
export type StartRow = Pick<RowRecord, 'messageId' | 'createdAt' | 'role' | 'counted'>

/** Whether a message begins with this row. The rows after it add to it: later steps, tool results, context. */
export function startsMessage(row: Pick<RowRecord, 'counted' | 'role'>): boolean {
  return row.counted > 0 || row.role === 'signal' || row.role === 'system'
}

/** A row and its columns, before it has a `seq`. Encoding fails on contents that are not JSON, so it precedes the first write. */
export interface PreparedRow {
  row: MessageRow
  stored: Omit<RowRecord, 'seq' | 'ordinal' | 'turn' | 'counted'>
}

/** The bytes of the contents of rows. */
export function bytesOf(rows: readonly PreparedRow[]): number {
  return rows.reduce((sum, { stored }) => sum + byteLength(stored.content), 0)
}

export function byteLength(text: string | null): number {
  return text === null ? 0 : Buffer.byteLength(text)
}

export function prepareRows(rows: readonly MessageRow[], run?: { runId: string; step: number }): PreparedRow[] {
  return rows.map((row) => ({
    row,
    stored: {
      id: row.id,
      messageId: row.messageId,
      role: row.role,
      type: row.type ?? null,
      runId: run?.runId ?? row.runId ?? null,
      step: run?.step ?? row.step ?? null,
      content: JSON.stringify(row.content),
      createdAt: row.createdAt.getTime(),
    },
  }))
}

/** JSON text for a column that may be null. */
export function jsonOrNull(value: object | undefined): string | null {
  return value === undefined ? null : JSON.stringify(value)
}

/** The thread of a record that does not name it. */
export type ThreadRef = Pick<ThreadRecord, 'id' | 'resourceId'>

export function threadRow(thread: ThreadRecord, lanes: readonly LaneRecord[] = []): ThreadRow {
  const metadata = thread.metadata === '{}' ? {} : (JSON.parse(thread.metadata) as Record<string, JSONValue>)
  const row: ThreadRow = {
    id: thread.id,
    resourceId: thread.resourceId,
    title: thread.title,
    metadata: Object.assign(metadata, laneMetadata(lanes)),
    createdAt: new Date(thread.createdAt),
    updatedAt: new Date(thread.updatedAt),
    status: thread.status,
    epoch: thread.epoch,
  }
  if (thread.parentId !== null) row.parentId = thread.parentId
  if (thread.owner !== null) row.owner = thread.owner
  if (thread.runId !== null) row.runId = thread.runId
  if (thread.agentId !== null) row.agentId = thread.agentId
  return row
}

/** The key of a thread's metadata that describes its lanes. It is computed at each read, so a caller cannot write a stale value back. */
const laneMetadataKey = 'heed'

function laneMetadata(lanes: readonly LaneRecord[]): Record<string, JSONValue> | undefined {
  const current = lanes.filter(({ version }) => version > 0)
  if (current.length === 0) return undefined
  const stateSignals = Object.fromEntries(current.map(({ id, cacheKey, mode, version, lastSignalId, lastSnapshotId }) => [id, {
    currentCacheKey: cacheKey,
    currentMode: mode,
    version,
    lastSignalId,
    ...(lastSnapshotId !== null && { lastSnapshotSignalId: lastSnapshotId }),
  }]))
  return { [laneMetadataKey]: { stateSignals } }
}

/** Metadata as it is stored: without the description of lanes, which callers send back with metadata that they read. */
export function withoutLaneMetadata<Value>({ [laneMetadataKey]: _, ...metadata }: Record<string, Value>): Record<string, Value> {
  return metadata
}

export function messageRow(thread: ThreadRef, row: RowRecord): MessageRow {
  const message: MessageRow = {
    id: row.id,
    messageId: row.messageId,
    role: row.role,
    createdAt: new Date(row.createdAt),
    threadId: thread.id,
    resourceId: thread.resourceId,
    content: JSON.parse(row.content) as MessageRow['content'],
    seq: row.seq,
  }
  if (row.type !== null) message.type = row.type
  if (row.runId !== null) message.runId = row.runId
  if (row.step !== null) message.step = row.step
  return message
}

export function mailboxRow(thread: ThreadRef, mail: MailRecord, rows: MessageRow[]): MailboxRow {
  const row: MailboxRow = {
    threadId: thread.id,
    ord: mail.ord,
    id: mail.id,
    agentId: mail.agentId,
    route: mail.route,
    kind: mail.kind,
    state: mail.state,
    rows,
    acceptedAt: mail.acceptedAt,
  }
  if (mail.runId !== null) row.runId = mail.runId
  if (mail.step !== null) row.step = mail.step
  if (mail.options !== null) row.options = JSON.parse(mail.options) as JSONObject
  if (mail.boundTo !== null) row.boundTo = mail.boundTo
  if (mail.reason !== null) row.reason = mail.reason
  if (mail.drainedAt !== null) row.drainedAt = mail.drainedAt
  if (mail.drainedBy !== null) row.drainedBy = mail.drainedBy
  if (mail.epoch !== null) row.epoch = mail.epoch
  if (mail.settledAt !== null) row.settledAt = mail.settledAt
  return row
}

export function runRow(thread: ThreadRef, run: RunRecord): RunRow {
  const row: RunRow = {
    threadId: thread.id,
    resourceId: thread.resourceId,
    runId: run.runId,
    agentId: run.agentId,
    status: run.status,
    epoch: run.epoch,
    step: run.step,
    attempts: run.attempts,
    options: run.options === '{}' ? {} : (JSON.parse(run.options) as JSONObject),
    started: run.started === '[]' ? [] : (JSON.parse(run.started) as string[]),
    suspended: run.suspended === '[]' ? [] : (JSON.parse(run.suspended) as SuspendedCall[]),
    startedAt: run.startedAt,
    sealSeq: run.sealSeq,
  }
  if (row.options.edit !== undefined) {
    const { edit, ...options } = row.options
    Object.assign(row, { edit, options })
  }
  if (run.lost !== null) row.lost = JSON.parse(run.lost) as string[]
  if (run.endedAt !== null) row.endedAt = run.endedAt
  if (run.suspendedAt !== null) row.suspendedAt = run.suspendedAt
  if (run.error !== null) row.error = JSON.parse(run.error) as JSONObject
  if (run.usage !== null) row.usage = JSON.parse(run.usage) as JSONObject
  return row
}

export function laneRow(thread: ThreadRef, lane: LaneRecord): LaneRow {
  return {
    threadId: thread.id,
    id: lane.id,
    version: lane.version,
    cacheKey: lane.cacheKey,
    mode: lane.mode,
    lastSignalId: lane.lastSignalId,
    ...(lane.lastSnapshotId !== null && { lastSnapshotId: lane.lastSnapshotId }),
  }
}

/** A row in a mailbox record: the row itself while it is pending, then its id in history. */
type MailedRow = (Pick<MessageRow, 'id' | 'messageId' | 'role' | 'type' | 'content'> & { createdAt: number }) | string

/** The rows of a mailbox record, from the record or from history. Rows that were removed from history are left out. */
export function rowsOfMail(
  tables: { row(thread: ThreadRecord, id: string): RowRecord | undefined }, thread: ThreadRecord, mail: MailRecord,
): MessageRow[] {
  if (mail.prepared) return mail.prepared.rows.map(({ row }) => row)
  return (JSON.parse(mail.rows) as MailedRow[]).flatMap((mailed) => {
    if (typeof mailed !== 'string') {
      return { ...mailed, createdAt: new Date(mailed.createdAt), threadId: thread.id, resourceId: thread.resourceId }
    }
    const row = tables.row(thread, mailed)
    return row ? messageRow(thread, row) : []
  })
}

/** The column `rows` of a signal whose rows are in history. */
export function encodeRowIds(rows: readonly MessageRow[]): string {
  return JSON.stringify(rows.map((row) => row.id))
}

/** The column `rows` of a pending signal. The contents are JSON text already. */
export function encodeMailboxRows(rows: readonly PreparedRow[]): string {
  return `[${rows.map(encodeMailboxRow).join()}]`
}

function encodeMailboxRow({ stored: { id, messageId, role, type, content, createdAt } }: PreparedRow): string {
  const head = JSON.stringify({ id, messageId, role, ...(type !== null && { type }) })
  return `${head.slice(0, -1)},"content":${content},"createdAt":${createdAt}}`
}
