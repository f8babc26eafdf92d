import { HeedError } from '../../base/errors.ts'
import { orderedJSON } from '../../base/json.ts'
import { chooseRoute, startingSignals, type Route } from '../../machine.ts'
import { isWorkflowThreadId } from '../contract/thread-row.ts'
import { hasOutcome } from '../../message/content.ts'
import type { MessageRow } from '../../message/row.ts'
import { isSentSignal, isUserAuthored, rowToSignal } from '../../signals/conversions.ts'
import type { Accepted, Branch, Fence, Quota, Send } from '../contract/threads.ts'
import { beginRun } from './begin.ts'
import { advanceLane, isCurrentState, withVersion } from './lanes.ts'
import { checkNewThreadId, findThread, grantLease, holdsLease, reserveRun } from './lease.ts'
import { pendingMail, runnable, transitionSignal } from './mailbox.ts'
import { appendOutsideRun, idTaken } from './messages.ts'
import {
  byteLength, bytesOf, encodeMailboxRows, encodeRowIds, jsonOrNull, laneRow, messageRow, prepareRows, rowsOfMail, withoutLaneMetadata,
  type MailRecord, type PreparedRow, type ThreadRecord,
} from './records.ts'
import type { ThreadTables } from './tables.ts'
import { describeThread } from './threads.ts'
import { checkWorkingMemory, setWorkingMemory } from './working-memory.ts'

type SendResult = Accepted | { error: Error }

/** Routes and stores each send by itself, in order. The error of one does not reject the others. */
export function acceptSends(tables: ThreadTables, sends: readonly Send[]): SendResult[] {
  // A run that is rejected removes the threads that it asked: a send to one of them is before or after that.
  tables.lock?.(sends.flatMap(({ threadId, askedBy }) => (askedBy ? [threadId, askedBy.threadId] : threadId)))
  return sends.map((send) => {
    let plan: Plan
    try {
      plan = planSend(tables, send)
    } catch (error) {
      return { error: error instanceof Error ? error : new Error(String(error)) }
    }
    return plan.accepted ?? storeSend(tables, send, plan)
  })
}

/**
 * Begins the runs of the threads that these sends woke, each with all signals that were sent to it in this transaction. The store calls it
 * last, after all other writes of the transaction. Skips a thread whose lease another of those writes released.
 */
export function beginWoken(tables: ThreadTables, sends: readonly Send[], results: readonly SendResult[]): SendResult[] {
  return results.map((result, index) => {
    const windows = sends[index]?.claim?.begin
    if (!windows || 'error' in result || !result.fence || !holdsLease(tables, result.fence)) return result
    return { ...result, begun: beginRun(tables, result.fence, windows) }
  })
}

/** The result of a send that stores nothing, or what is to be stored. */
type Plan = { accepted: Accepted } | StoredPlan

interface StoredPlan {
  accepted?: undefined
  found: ThreadRecord | undefined
  route: Route
  rows: MessageRow[]
  prepared: PreparedRow[]
  options: string | null
}

/** Does everything that can reject a send, before the first write. */
function planSend(tables: ThreadTables, send: Send): Plan {
  const found = findThread(tables, send)
  if (send.threadCreatedAt !== undefined && found?.createdAt !== send.threadCreatedAt) throw threadDeleted(send.threadId)
  const first = found && tables.mail(found, send.id)
  if (first) return { accepted: duplicateOfMail(tables, found, first, send) }
  const stored = found && resolveCallerIds(tables, found, send)
  if (stored) return { accepted: duplicateOfRow(tables, found, stored, send) }

  if (!found) checkNewThreadId(send.threadId, send.thread?.parentId)
  else checkSender(found, send)
  if (send.askedBy) checkCallingRun(tables, send.askedBy)
  const status = found?.status ?? 'idle'
  if (status === 'suspended' && send.refuseSuspended) throw threadSuspended(send.threadId)
  const route = chooseRoute(
    { status, agentId: found?.agentId ?? undefined },
    { mode: send.mode, agentId: send.agentId, ifActive: send.ifActive.behavior, ifIdle: send.ifIdle.behavior },
  )
  if (found && send.givenRunId && (route === 'wake' || route === 'queue')) checkRunIdIsFree(tables, found, send, route)
  const branch: Branch<unknown> = status === 'idle' ? send.ifIdle : send.ifActive
  const sent = found ? rowsNotStored(tables, found, send) : send.rows
  const rows = sent.map((row) => withScope(withAttributes(row, branch.attributes), send))
  if (route === 'discard') return { accepted: { ...notStored(found), route, rows } }

  const memory = send.thread?.workingMemory
  const memoryBytes = memory ? checkWorkingMemory(tables, found ?? { resourceId: send.resourceId }, memory) : 0
  const lane = found && send.lane && tables.lane(found, send.lane.id)
  if (lane && send.lane && isCurrentState(lane, send.lane)) {
    return { accepted: { ...notStored(found), route: 'skipped', rows, lane: laneRow(found, lane) } }
  }
  const versioned = send.lane ? rows.map((row) => withVersion(row, (lane?.issued ?? 0) + 1)) : rows
  const plan: StoredPlan = { found, route, rows: versioned, prepared: prepareRows(versioned), options: jsonOrNull(send.options) }
  if (send.quota) checkSendQuota(tables, send, send.quota, { ...plan, memoryBytes })
  return plan
}

/** A run of a workflow receives what its workflow sends. */
function checkSender({ parentId }: ThreadRecord, { threadId, agentId }: Send): void {
  if (!isWorkflowThreadId(threadId) || parentId === agentId) return
  const message = `Thread '${threadId}' is a run of a workflow: agents send nothing to it. Use sendEvent() of the run.`
  throw new HeedError('invalid_argument', message, { details: { field: 'threadId', threadId } })
}

/** Agents send to child threads, and not the caller whose quota it is. */
function checkSendQuota(
  tables: ThreadTables, send: Send, quota: Quota, { found, prepared, options, memoryBytes }: StoredPlan & { memoryBytes: number },
): void {
  const parentId = found?.parentId ?? send.thread?.parentId ?? null
  // Runs of workflows are started by their callers.
  if (send.askedBy || (parentId !== null && !isWorkflowThreadId(parentId))) return
  const bytes = bytesOf(prepared) + byteLength(options) + byteLength(jsonOrNull(send.thread?.metadata)) + memoryBytes
  tables.checkQuota(send.resourceId, quota, { threads: found ? 0 : 1, bytes })
}

/** A caller id of a run that the thread has, or that a pending turn will start. Signals that wake a thread together share their run. */
function checkRunIdIsFree(tables: ThreadTables, thread: ThreadRecord, { runId, mode }: Send, route: Route): void {
  const isTurn = mode === 'queue' || route === 'queue'
  const waits = () => tables.pending(thread).some((mail) => mail.startRunId === runId && (isTurn || mail.kind === 'turn'))
  if (!tables.run(thread, runId) && !waits()) return
  throw new HeedError('invalid_argument', `Thread ${thread.id} has a run '${runId}' already. Leave runId out, or choose a unique one.`, {
    details: { field: 'runId' },
  })
}

/** Rejects the call of a run that is not active any more, for example because a guardrail rejected it together with its calls. */
function checkCallingRun(tables: ThreadTables, { threadId, runId }: NonNullable<Send['askedBy']>): void {
  const caller = tables.thread(threadId)
  if (!caller || caller.runId === runId) return
  throw new HeedError('no_active_run', `Run ${runId} of thread ${threadId} has ended. It can't call other agents any more.`, {
    details: { runId, threadId },
  })
}

function withScope(row: MessageRow, { threadId, resourceId }: Send): MessageRow {
  return row.threadId === threadId && row.resourceId === resourceId ? row : { ...row, threadId, resourceId }
}

function storeSend(tables: ThreadTables, send: Send, { found, route, rows, prepared, options }: StoredPlan): Accepted {
  const thread = found ?? addThread(tables, send)
  if (found && send.thread) describeThread(tables, found, send.thread)
  if (send.thread?.workingMemory) setWorkingMemory(tables, thread, send.thread.workingMemory)
  const mail = pendingMail({
    ord: thread.nextOrd,
    id: send.id,
    agentId: send.agentId,
    route,
    // A queued signal gets a run of its own even if the thread is idle.
    kind: send.mode === 'queue' || route === 'queue' ? 'turn' : 'enter',
    startRunId: send.runId,
    options,
    boundTo: send.boundTo ?? null,
    acceptedAt: send.now,
  })
  thread.nextOrd += 1
  thread.updatedAt = send.now
  const fence = route === 'wake' ? wake(tables, thread, mail, send, found === undefined) : undefined
  if (route === 'queue') mail.runId = mail.startRunId
  if (route === 'deliver' || route === 'interrupt') mail.runId = thread.runId
  const stored = route === 'persist' ? persist(tables, thread, mail, prepared) : rows
  if (fence && send.claim?.begin) mail.prepared = { rows: prepared, newRun: send.newRunId === true }
  else if (route !== 'persist') mail.rows = encodeMailboxRows(prepared)

  tables.addMail(thread, mail)
  const lane = send.lane && advanceLane(tables, thread, send.lane, send.id)
  tables.putThread(thread)
  const accepted: Accepted = { route, duplicate: false, state: mail.state, rows: stored, epoch: thread.epoch }
  if (mail.runId !== null) accepted.runId = mail.runId
  if (fence) accepted.fence = fence
  if (thread.owner !== null) accepted.owner = thread.owner
  if (lane) accepted.lane = lane
  return accepted
}

function addThread(tables: ThreadTables, send: Send): ThreadRecord {
  return tables.addThread({
    id: send.threadId,
    resourceId: send.resourceId,
    title: send.thread?.title ?? '',
    metadata: JSON.stringify(withoutLaneMetadata(send.thread?.metadata ?? {})),
    parentId: send.thread?.parentId ?? null,
    createdAt: send.now,
  })
}

/** Grants the lease if the sender claims it. Signals of the same agent that were pending already enter the same run. */
function wake(tables: ThreadTables, thread: ThreadRecord, mail: MailRecord, send: Send, isNew: boolean): Fence | undefined {
  if (!send.claim || tables.processes.isResting) {
    thread.epoch += 1
    thread.dueAt ??= send.now
    mail.runId = mail.startRunId
    return undefined
  }
  const { owner } = send.claim
  const before = isNew ? [] : runnable(tables.pending(thread), owner, [send.agentId])
  const starting = startingSignals([...before, mail])
  const runId = starting[0]?.startRunId ?? mail.startRunId
  mail.runId = starting.includes(mail) ? runId : mail.startRunId
  const fence = grantLease(thread, 'wake', owner)
  reserveRun(thread, runId, send.agentId)
  return fence
}

/** Appends to history at once. On a thread without an owner this is an event with its own epoch, so that any process may publish it. */
function persist(tables: ThreadTables, thread: ThreadRecord, mail: MailRecord, rows: readonly PreparedRow[]): MessageRow[] {
  if (thread.owner === null) thread.epoch += 1
  const stored = appendOutsideRun(tables, thread, rows)
  transitionSignal(mail, 'consume')
  mail.settledAt = tables.now()
  mail.rows = encodeRowIds(stored)
  return stored
}

function duplicateOfMail(tables: ThreadTables, thread: ThreadRecord, first: MailRecord, send: Send): Accepted {
  return {
    route: first.route,
    ...(first.runId !== null && { runId: first.runId }),
    state: first.state,
    rows: rowsOfMail(tables, thread, first),
    ...duplicate(tables, thread, send),
  }
}

/** The result for a signal whose mailbox record was pruned: its row in history has the same information. */
function duplicateOfRow(tables: ThreadTables, thread: ThreadRecord, row: MessageRow, send: Send): Accepted {
  const { runId } = row
  return {
    route: runId === undefined ? 'persist' : 'wake',
    ...(runId !== undefined && { runId }),
    state: 'consumed',
    rows: [row],
    ...duplicate(tables, thread, send),
  }
}

function duplicate(tables: ThreadTables, thread: ThreadRecord, send: Send): Pick<Accepted, 'duplicate' | 'epoch' | 'owner' | 'lane'> {
  const lane = send.lane && tables.lane(thread, send.lane.id)
  return {
    duplicate: true,
    epoch: thread.epoch,
    ...(thread.owner !== null && { owner: thread.owner }),
    ...(lane && { lane: laneRow(thread, lane) }),
  }
}

function notStored(thread: ThreadRecord | undefined): Pick<Accepted, 'duplicate' | 'state' | 'epoch' | 'owner'> {
  const owner = thread?.owner ?? null
  return { duplicate: false, state: 'cancelled', epoch: thread?.epoch ?? 0, ...(owner !== null && { owner }) }
}

/** Merges the attributes of the chosen branch over those of the signal. A key that the signal has keeps its position. */
function withAttributes(row: MessageRow, attributes: Branch<unknown>['attributes']): MessageRow {
  const signal = row.content.metadata?.signal
  if (!attributes || row.role !== 'signal' || typeof signal !== 'object' || signal === null) return row
  const own = 'attributes' in signal && typeof signal.attributes === 'object' ? signal.attributes : {}
  const merged = { ...signal, attributes: { ...own, ...attributes } }
  return { ...row, content: { ...row.content, metadata: { ...row.content.metadata, signal: merged } } }
}

function threadDeleted(threadId: string): HeedError {
  const message = `Thread ${threadId} was deleted. What belongs to it is not sent to a new one.`
  return new HeedError('thread_deleted', message, { details: { threadId } })
}

function threadSuspended(threadId: string): HeedError {
  const advice = 'Approve or decline it first, or send a message, which stays pending until then.'
  return new HeedError('thread_suspended', `The run of thread ${threadId} is suspended until a tool call is decided. ${advice}`, {
    details: { threadId },
  })
}

/**
 * Compares the caller ids of a send with what the thread has under them. Throws `id_taken` where that is something else: history would
 * drop the new row, or show it as a part of the other.
 *
 * Returns the stored row of the signal if it was sent before and its mailbox record was pruned.
 */
function resolveCallerIds(tables: ThreadTables, thread: ThreadRecord, send: Send): MessageRow | undefined {
  if (!send.given) return undefined
  const callerIds = new Set(send.given)
  if (callerIds.has(send.id)) return resolveSignalId(tables, thread, send.id)
  // Rows up to the last reply are history that the caller repeats; the thread's own version of them counts.
  const firstInput = send.rows.findLastIndex(isReply) + 1
  for (const [index, row] of send.rows.entries()) {
    if (!callerIds.has(row.id)) continue
    const existing = storedRow(tables, thread, row.id) ?? pendingRow(tables, thread, row.id) ?? boundRow(tables, thread, row.id)
    if (existing && !isSameRow(existing, row, index >= firstInput)) {
      throw idTaken(thread, row.id, 'Change that message with updateMessages(), or give this one an id of its own.')
    }
  }
  return undefined
}

function resolveSignalId(tables: ThreadTables, thread: ThreadRecord, id: string): MessageRow | undefined {
  const stored = storedRow(tables, thread, id)
  if (stored?.messageId === id && isSentSignal(stored)) return stored
  if (!stored && !boundRow(tables, thread, id)) return undefined
  throw idTaken(thread, id, 'Use a new id for each signal.')
}

/** The row in history with this id, or the first row of the message with this id. */
function storedRow(tables: ThreadTables, thread: ThreadRecord, id: string): MessageRow | undefined {
  const stored = tables.row(thread, id) ?? (tables.hasMessage(thread, id) ? tables.messageRows(thread, id)[0] : undefined)
  return stored && messageRow(thread, stored)
}

/** The same among the rows of queued calls. A thread that is idle and not due has none. */
function boundRow(tables: ThreadTables, thread: ThreadRecord, id: string): MessageRow | undefined {
  if (thread.status === 'idle' && thread.dueAt === null) return undefined
  for (const mail of tables.boundMail(thread)) {
    const row = rowsOfMail(tables, thread, mail).find((one) => one.id === id || one.messageId === id)
    if (row) return row
  }
  return undefined
}

function pendingRow(tables: ThreadTables, thread: ThreadRecord, id: string): MessageRow | undefined {
  const mail = tables.mail(thread, id)
  return mail?.state === 'pending' ? rowsOfMail(tables, thread, mail)[0] : undefined
}

/** The rows of a send without the replies that it repeats: the thread has them already, in rows with its own ids. */
function rowsNotStored(tables: ThreadTables, thread: ThreadRecord, { rows, given }: Send): MessageRow[] {
  if (!given) return rows
  const callerIds = new Set(given)
  return rows.filter((row) => !isReply(row) || !callerIds.has(row.id) || !hasReply(tables, thread, row))
}

/** A stored message may still lack the result of a tool that the caller ran. */
function hasReply(tables: ThreadTables, thread: ThreadRecord, { messageId, role, content }: MessageRow): boolean {
  if (!tables.hasMessage(thread, messageId)) return false
  if (role === 'assistant') return true
  const known = new Set(tables.messageRows(thread, messageId).flatMap((row) => callsWithOutcome(messageRow(thread, row).content)))
  return callsWithOutcome(content).every((toolCallId) => known.has(toolCallId))
}

function callsWithOutcome({ parts }: MessageRow['content']): string[] {
  return parts.flatMap((part) => (
    part.type === 'tool-invocation' && hasOutcome(part.toolInvocation) ? part.toolInvocation.toolCallId : []
  ))
}

/** Compares replies by id alone, because a client may hold only parts of them. Compares contents of user messages that are input. */
function isSameRow(existing: MessageRow, row: MessageRow, isInput: boolean): boolean {
  if (isUserAuthored(row)) return isUserAuthored(existing) && (!isInput || contentsOf(existing) === contentsOf(row))
  return isReply(row) ? isReply(existing) : existing.role === row.role
}

function isReply({ role }: MessageRow): boolean {
  return role === 'assistant' || role === 'tool'
}

function contentsOf(row: MessageRow): string {
  return orderedJSON(rowToSignal(row).contents)
}
