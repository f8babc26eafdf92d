import { HeedError } from '../../base/errors.ts'
import type { MessageRow } from '../../message/row.ts'
import { nextRun, route as routeOf, type Route } from '../../machine.ts'
import type { Accepted, Branch, Fence, Send } from '../contract/threads.ts'
import { appendBeside, prepare, type Prepared } from './append.ts'
import { beginRun } from './begin.ts'
import { jsonOrNull, laneRow, rowIds, rowsOfMail, untracked } from './decode.ts'
import { meetGivenIds, unknownRows } from './caller-ids.ts'
import { findThread, holds } from './guard.ts'
import { advanceLane, laneHas, withVersion } from './lanes.ts'
import { lease, promise } from './lease.ts'
import { mailedRows } from './mailed.ts'
import type { MailRecord, ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'
import { runnable, shift } from './waiting.ts'
import { checkWorkingMemory, setWorkingMemory } from './working-memory.ts'

type SendAnswer = Accepted | { error: Error }

/** Each send is decided and stored by itself, in the order given. */
export function acceptSends(tables: ThreadTables, sends: readonly Send[]): SendAnswer[] {
  return sends.map((send) => {
    let decision: Decision
    try {
      decision = decide(tables, send)
    } catch (error) {
      return { error: error instanceof Error ? error : new Error(String(error)) }
    }
    return decision.answer ?? store(tables, send, decision)
  })
}

/**
 * The last step of the transaction that accepted these sends, after all others that share it: begins the runs of the threads that they
 * woke, each with everything that was sent to it in this transaction. A thread whose lease another write of the same transaction ended is
 * left as it is.
 */
export function beginWoken(tables: ThreadTables, sends: readonly Send[], answers: readonly SendAnswer[]): SendAnswer[] {
  return answers.map((answer, index) => {
    const windows = sends[index]?.claim?.begin
    if (!windows || 'error' in answer || !answer.fence || !holds(tables, answer.fence)) return answer
    return { ...answer, begun: beginRun(tables, answer.fence, windows) }
  })
}

type Decision =
  | { answer: Accepted }
  | { answer?: undefined; found: ThreadRecord | undefined; route: Route; rows: MessageRow[]; form: Form; options: string | null }

/** The rows as they are written: into history at once, or into the mailbox. */
interface Form {
  prepared: Prepared[]
  placed: boolean
}

/** Everything that can refuse a send, before the first write. */
function decide(tables: ThreadTables, send: Send): Decision {
  const found = findThread(tables, send)
  const first = found && tables.mail(found, send.id)
  if (first) return { answer: duplicate(tables, found, first, send) }
  const earlier = found && meetGivenIds(tables, found, send)
  if (earlier) return { answer: repeated(tables, found, earlier, send) }

  if (send.askedBy) checkAsker(tables, send.askedBy)
  const status = found?.status ?? 'idle'
  if (status === 'suspended' && send.refuseSuspended) throw suspended(send.threadId)
  const route = routeOf(
    { status, agentId: found?.agentId ?? undefined },
    { mode: send.mode, agentId: send.agentId, ifActive: send.ifActive.behavior, ifIdle: send.ifIdle.behavior },
  )
  const branch: Branch<unknown> = status === 'idle' ? send.ifIdle : send.ifActive
  const brought = found ? unknownRows(tables, found, send) : send.rows
  const rows = brought.map((row) => ofThread(withAttributes(row, branch.attributes), send))
  if (route === 'discard') return { answer: { ...untouched(found), route, rows } }

  if (!found) checkWorkingMemory(tables, { resourceId: send.resourceId }, send.thread?.workingMemory)
  const lane = found && send.lane && tables.lane(found, send.lane.id)
  if (lane && send.lane && laneHas(lane, send.lane)) {
    return { answer: { ...untouched(found), route: 'skipped', rows, lane: laneRow(found, lane) } }
  }
  const stored = send.lane ? rows.map((row) => withVersion(row, (lane?.issued ?? 0) + 1)) : rows
  return { found, route, rows: stored, form: { prepared: prepare(stored), placed: route === 'persist' }, options: jsonOrNull(send.options) }
}

/** A run that was refused took what it had asked along: it must not be asked after that. */
function checkAsker(tables: ThreadTables, { threadId, runId }: NonNullable<Send['askedBy']>): void {
  const asker = tables.thread(threadId)
  if (asker && asker.runId !== runId) throw new HeedError('no_active_run', `Run ${runId} of thread ${threadId} is over: nothing is asked for it any more.`, { details: { runId, threadId } })
}

function ofThread(row: MessageRow, { threadId, resourceId }: Send): MessageRow {
  return row.threadId === threadId && row.resourceId === resourceId ? row : { ...row, threadId, resourceId }
}

function store(tables: ThreadTables, send: Send, { found, route, rows, form, options }: Exclude<Decision, { answer: Accepted }>): Accepted {
  const thread = found ?? newThread(tables, send)
  const mail: MailRecord = {
    ord: thread.nextOrd,
    id: send.id,
    agentId: send.agentId,
    route,
    // A queued message keeps its own run, also when it found the thread idle.
    kind: send.mode === 'queue' || route === 'queue' ? 'turn' : 'enter',
    state: 'pending',
    runId: null,
    startRunId: send.runId,
    step: null,
    rows: '[]',
    options,
    boundTo: send.boundTo ?? null,
    reason: null,
    acceptedAt: send.now,
  }
  thread.nextOrd += 1
  thread.updatedAt = send.now
  const fence = route === 'wake' ? wake(tables, thread, mail, send, found === undefined) : undefined
  if (route === 'queue') mail.runId = mail.startRunId
  if (route === 'deliver' || route === 'interrupt') mail.runId = thread.runId
  const stored = form.placed ? persist(tables, thread, mail, form.prepared) : rows
  if (fence && send.claim?.begin) mail.atHand = { rows: form.prepared, newRun: send.newRunId === true }
  else if (!form.placed) mail.rows = mailedRows(form.prepared)

  tables.addMail(thread, mail)
  const lane = send.lane && advanceLane(tables, thread, send.lane, send.id)
  tables.putThread(thread)
  const answer: Accepted = { route, duplicate: false, state: mail.state, rows: stored, epoch: thread.epoch }
  if (mail.runId !== null) answer.runId = mail.runId
  if (fence) answer.fence = fence
  if (thread.owner !== null) answer.owner = thread.owner
  if (lane) answer.lane = lane
  return answer
}

function newThread(tables: ThreadTables, send: Send): ThreadRecord {
  const thread = tables.addThread({
    id: send.threadId,
    resourceId: send.resourceId,
    title: send.thread?.title ?? '',
    metadata: JSON.stringify(untracked(send.thread?.metadata ?? {})),
    parentId: send.thread?.parentId ?? null,
    createdAt: send.now,
  })
  setWorkingMemory(tables, thread, send.thread?.workingMemory)
  return thread
}

/** Takes the lease if the sender wants it. What waited already, of the same agent, is answered in the same run. */
function wake(tables: ThreadTables, thread: ThreadRecord, mail: MailRecord, send: Send, isNew: boolean): Fence | undefined {
  if (!send.claim) {
    thread.epoch += 1
    thread.dueAt ??= send.now
    mail.runId = mail.startRunId
    return undefined
  }
  const { owner } = send.claim
  const before = isNew ? [] : runnable(tables.pending(thread), owner, [send.agentId])
  const starting = nextRun([...before, mail])
  const runId = starting[0]?.startRunId ?? mail.startRunId
  mail.runId = starting.includes(mail) ? runId : mail.startRunId
  const fence = lease(thread, 'wake', owner)
  promise(thread, runId, send.agentId)
  return fence
}

/** Straight into history. Where nobody runs the thread that is an event of its own, with its own epoch: any process may tell of it. */
function persist(tables: ThreadTables, thread: ThreadRecord, mail: MailRecord, rows: readonly Prepared[]): MessageRow[] {
  if (thread.owner === null) thread.epoch += 1
  const stored = appendBeside(tables, thread, rows)
  shift(mail, 'consume')
  mail.rows = rowIds(stored)
  return stored
}

function duplicate(tables: ThreadTables, thread: ThreadRecord, first: MailRecord, send: Send): Accepted {
  return {
    route: first.route,
    ...(first.runId !== null && { runId: first.runId }),
    state: first.state,
    rows: rowsOfMail(tables, thread, first),
    ...again(tables, thread, send),
  }
}

/** Its record was pruned; its row tells as much. */
function repeated(tables: ThreadTables, thread: ThreadRecord, row: MessageRow, send: Send): Accepted {
  const { runId } = row
  return { route: runId === undefined ? 'persist' : 'wake', ...(runId !== undefined && { runId }), state: 'consumed', rows: [row], ...again(tables, thread, send) }
}

function again(tables: ThreadTables, thread: ThreadRecord, send: Send): Pick<Accepted, 'duplicate' | 'epoch' | 'owner' | 'lane'> {
  const lane = send.lane && tables.lane(thread, send.lane.id)
  return {
    duplicate: true,
    epoch: thread.epoch,
    ...(thread.owner !== null && { owner: thread.owner }),
    ...(lane && { lane: laneRow(thread, lane) }),
  }
}

function untouched(thread: ThreadRecord | undefined): Pick<Accepted, 'duplicate' | 'state' | 'epoch' | 'owner'> {
  return { duplicate: false, state: 'cancelled', epoch: thread?.epoch ?? 0, ...(thread && thread.owner !== null && { owner: thread.owner }) }
}

/** The attributes of the branch that was taken, over those of the signal. A key that is there already keeps its position. */
function withAttributes(row: MessageRow, attributes: Branch<unknown>['attributes']): MessageRow {
  const signal = row.content.metadata?.signal
  if (!attributes || row.role !== 'signal' || typeof signal !== 'object' || signal === null) return row
  const own = 'attributes' in signal && typeof signal.attributes === 'object' ? signal.attributes : {}
  const merged = { ...signal, attributes: { ...own, ...attributes } }
  return { ...row, content: { ...row.content, metadata: { ...row.content.metadata, signal: merged } } }
}

function suspended(threadId: string): HeedError {
  return new HeedError('thread_suspended', `Thread ${threadId} waits for a decision about a tool call. Approve or decline it first, or send a message, which waits.`, {
    details: { threadId },
  })
}
