import { HeedError } from '../../base/errors.ts'
import { joinRows } from '../../message/join.ts'
import type { Message, MessageContent } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import type { Scope } from '../contract/threads.ts'
import type { MessageGroup, MessagePatch, MessagePatches } from '../contract/messages.ts'
import { appendWhole, prepare, type Prepared } from './append.ts'
import { messageRow } from './decode.ts'
import { refuseWaiting } from './caller-ids.ts'
import { scopedThread } from './guard.ts'
import { forgetWords } from './quotes.ts'
import type { RowRecord, ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

/** A message that is written whole is one row, however many it was. */
interface Planned {
  thread: ThreadRecord
  prepared: Prepared
  /** The rows that have its place now. */
  there: RowRecord[]
}

export function saveMessages(tables: ThreadTables, groups: readonly MessageGroup[]): Message[] {
  const threads = new Threads(tables)
  return write(tables, groups.flatMap(({ scope, messages }) => {
    const thread = threads.of(scope)
    // Of two with one id the later counts.
    const last = new Map(messages.map((message) => [message.id, message]))
    const plans = [...last.values()].map((message) => planned(tables, thread, message, tables.messageRows(thread, message.id)))
    refuseWaiting(tables, thread, plans.flatMap(({ prepared, there }) => (there.length > 0 ? [] : prepared.stored.id)))
    return plans
  }))
}

export function updateMessages(tables: ThreadTables, groups: readonly MessagePatches[]): Message[] {
  const threads = new Threads(tables)
  return write(tables, groups.flatMap(({ scope, patches, except }) => {
    const thread = threads.of(scope)
    return [...byId(patches)].map(([id, several]) => {
      const there = tables.messageRows(thread, id)
      const [message] = joinRows(there.map((row) => messageRow(thread, row)))
      if (!message) refuseWaiting(tables, thread, [id])
      if (!message) throw new HeedError('message_not_found', `Thread ${thread.id} has no message ${id}. Nothing was changed.`, { details: { threadId: thread.id, messageId: id } })
      if (message.role === except) throw new HeedError('forbidden', `You may not change messages of the role '${except}'. Nothing was changed.`, { details: { threadId: thread.id, messageId: id } })
      return planned(tables, thread, several.reduce(patched, message), there)
    })
  }))
}

/** The records of the threads that a transaction writes, each read once. */
class Threads {
  readonly #tables: ThreadTables
  readonly #found = new Map<string, ThreadRecord>()

  constructor(tables: ThreadTables) {
    this.#tables = tables
  }

  of(scope: Scope): ThreadRecord {
    const thread = scopedThread(this.#tables, scope)
    const found = this.#found.get(thread.id) ?? thread
    this.#found.set(thread.id, found)
    return found
  }
}

/** Several changes of one message are made one after the other. */
function byId(patches: readonly MessagePatch[]): Map<string, MessagePatch[]> {
  const found = new Map<string, MessagePatch[]>()
  for (const patch of patches) found.set(patch.id, [...(found.get(patch.id) ?? []), patch])
  return found
}

function patched(message: Message, { role, createdAt, type, content }: MessagePatch): Message {
  return {
    ...message,
    ...(role !== undefined && { role }),
    ...(createdAt && { createdAt }),
    ...(type !== undefined && { type }),
    content: content ? { ...message.content, ...content, format: 2, ...withMetadata(message.content, content) } : message.content,
  }
}

function withMetadata(before: MessageContent, { metadata }: Partial<MessageContent>): Pick<MessageContent, 'metadata'> {
  const merged = new Map(Object.entries(before.metadata ?? {}))
  for (const [key, value] of Object.entries(metadata ?? {})) {
    if (value === null) merged.delete(key)
    else if (value !== undefined) merged.set(key, value)
  }
  return merged.size === 0 && !before.metadata ? {} : { metadata: Object.fromEntries(merged) }
}

/** Everything that can be refused is refused here, before the first write. */
function planned(tables: ThreadTables, thread: ThreadRecord, message: Message, there: RowRecord[]): Planned {
  const [first] = there
  if (first && first.role !== message.role) {
    throw new HeedError('invalid_message', `Message ${message.id} of thread ${thread.id} is of the role '${first.role}', which can't change to '${message.role}'.`, {
      details: { threadId: thread.id, messageId: message.id },
    })
  }
  if (thread.status !== 'idle' && there.some((row) => row.runId !== null && row.runId === thread.runId)) {
    throw new HeedError('thread_active', `Message ${message.id} of thread ${thread.id} belongs to a run that isn't over. Change it then.`, {
      retryable: true,
      details: { threadId: thread.id, messageId: message.id },
    })
  }
  if (!first && tables.row(thread, message.id)) {
    throw new HeedError('invalid_message', `The id ${message.id} is taken in thread ${thread.id} by something that is no message. Choose another.`, {
      details: { threadId: thread.id, messageId: message.id },
    })
  }
  const [prepared] = prepare([rowOf(message, first)])
  if (!prepared) throw new HeedError('invalid_message', `Message ${message.id} can't be stored.`)
  return { thread, prepared, there }
}

function rowOf({ id, role, createdAt, type, content }: Message, first: RowRecord | undefined): MessageRow {
  return {
    id: first?.id ?? id,
    messageId: id,
    role,
    createdAt,
    ...(type !== undefined && { type }),
    ...(first?.runId !== null && first?.runId !== undefined && { runId: first.runId }),
    ...(first?.step !== null && first?.step !== undefined && { step: first.step }),
    content,
  }
}

function write(tables: ThreadTables, plans: readonly Planned[]): Message[] {
  const rows = plans.flatMap(({ thread, prepared, there }) => {
    const [first, ...rest] = there
    if (!first) return appendWhole(tables, thread, prepared)
    const revised = { ...first, ...prepared.stored }
    forgetWords(tables, thread, first.messageId, there, [revised])
    tables.reviseRow(thread, revised)
    for (const row of rest) tables.removeRow(thread, row.id)
    return messageRow(thread, revised)
  })
  for (const thread of new Set(plans.map((plan) => plan.thread))) {
    thread.updatedAt = tables.now()
    tables.putThread(thread)
  }
  return joinEach(rows)
}

/** Each by itself: they need not stand beside each other. */
function joinEach(rows: readonly MessageRow[]): Message[] {
  return rows.flatMap((row) => joinRows([row]))
}
