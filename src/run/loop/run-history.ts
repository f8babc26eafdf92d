import type { LanguageModelV4Message } from '@ai-sdk/provider'
import type { JSONValue } from '../../base/json.ts'
import type { MessageRow } from '../../message/row.ts'
import { joinTaint, taintOf, withTaint } from '../../message/taint.ts'
import { copyMessages } from '../../prompt/copy.ts'
import { PromptDigest } from '../../prompt/digest.ts'
import { modelMessagesOf } from '../../prompt/from-rows.ts'
import { closeOpenCalls } from '../../prompt/open-calls.ts'
import type { SystemMessage } from '../../prompt/system.ts'
import { isSentSignal } from '../../signals/conversions.ts'
import type { RowChange } from '../step/step-result.ts'
import { asChecked } from './other-agents.ts'
import type { InputChange, PromptRecord, RunSetup } from './run-contract.ts'

/** The history of the thread as one run knows it: its rows, the prompt that they make, and the message that the run is writing. */
export class RunHistory {
  readonly rows: MessageRow[]
  readonly message: OpenMessage
  readonly #runId: string
  readonly #agentId: string
  readonly #inputCount: number
  readonly #prompt: GrowingPrompt
  #taintedBy: readonly string[] = []

  constructor(
    { id, agent, rows, inputCount, reservedTags, newId }: Pick<RunSetup, 'id' | 'agent' | 'rows' | 'inputCount' | 'reservedTags' | 'newId'>,
  ) {
    const shown = asChecked(rows, agent.id)
    this.rows = shown === rows ? rows : shown.slice()
    this.message = new OpenMessage(newId)
    this.#runId = id
    this.#agentId = agent.id
    this.#inputCount = inputCount
    this.#prompt = new GrowingPrompt(this.rows, reservedTags)
    this.#readTaint(this.rows)
  }

  /** Leaves out of the prompt what input processors have rejected of turns of other agents. */
  showChecked(): void {
    const shown = asChecked(this.rows, this.#agentId)
    if (shown.length !== this.rows.length || shown.some((row, index) => row !== this.rows[index])) this.#replace(shown)
  }

  /** Where values in the prompt came from that outside senders chose. It only grows: what the model has read, it may repeat. */
  get taintedBy(): readonly string[] {
    return this.#taintedBy
  }

  /** The contents of a row of this run, with the taint of the run. */
  withTaint<Content extends Pick<MessageRow['content'], 'metadata'>>(content: Content): Content {
    return this.#taintedBy.length === 0 ? content : withTaint(content, this.#taintedBy)
  }

  addTaint(taintedBy: readonly string[]): void {
    this.#taintedBy = joinTaint(this.#taintedBy, taintedBy)
  }

  #readTaint(rows: readonly MessageRow[]): void {
    for (const { content } of rows) if (content.metadata !== undefined) this.addTaint(taintOf(content))
  }

  /** The input that started the run. */
  get input(): MessageRow[] {
    return this.rows.slice(this.rows.length - this.#inputCount)
  }

  /** True for input of this run: the model answers it, and it ends the segment before it. */
  isInput(row: MessageRow): boolean {
    if (row.runId !== this.#runId || row.id !== row.messageId) return false
    return row.role === 'user' || isSentSignal(row)
  }

  /** The committed output of the run since input last entered. */
  segment(): MessageRow[] {
    const output: MessageRow[] = []
    for (let index = this.rows.length - 1; index >= 0; index--) {
      const row = this.rows[index] as MessageRow
      if (this.isInput(row)) break
      if (row.runId === this.#runId && isOutput(row)) output.push(row)
    }
    return output.reverse()
  }

  /** Adds stored rows. The prompt grows by them; its earlier messages never change. */
  append(rows: readonly MessageRow[]): void {
    const results = rows.some((row) => row.role === 'tool')
    const rebuild = results && (this.message.sealed || this.#stepHasResults())
    for (const row of rows) this.rows.push(row)
    this.#readTaint(rows)
    // Results that are stored after input stand before it in the prompt, and those of a decided call may stand before earlier ones.
    if (rebuild) this.#prompt.rebuild(this.rows)
    else this.#prompt.append(rows)
    this.message.follow(rows)
  }

  /** Whether the last step was suspended after some of its calls had results. */
  #stepHasResults(): boolean {
    return this.rows.findLast(isOutput)?.role === 'tool'
  }

  /** Applies what output processors changed in stored rows. */
  revise({ revised, removed }: RowChange): void {
    if (revised.length + removed.length === 0) return
    const changed = new Map(revised.map((row) => [row.id, row]))
    const gone = new Set(removed)
    this.#replace(this.rows.filter(({ id }) => !gone.has(id)).map((row) => changed.get(row.id) ?? row))
  }

  /** Replaces input rows with what input processors made of them. Added rows stand at the end, as in history. */
  changeInput(before: readonly MessageRow[], after: readonly MessageRow[]): InputChange {
    const left = new Map(after.map((row) => [row.id, row]))
    const known = new Set(before.map((row) => row.id))
    const input = new Set(before)
    const added = after.filter((row) => !known.has(row.id))
    this.#replace([...this.rows.flatMap((row) => (input.has(row) ? (left.get(row.id) ?? []) : row)), ...added])
    return {
      revised: before.flatMap((row) => left.get(row.id) ?? []).filter((row) => !before.includes(row)),
      removed: before.filter((row) => !left.has(row.id)).map((row) => row.messageId),
      added,
    }
  }

  #replace(rows: readonly MessageRow[]): void {
    this.rows.splice(0, this.rows.length, ...rows)
    this.#readTaint(rows)
    this.#prompt.rebuild(this.rows)
  }

  /** The next prompt. A copy: a provider may keep the array. */
  prompt(system: readonly SystemMessage[]): LanguageModelV4Message[] {
    return [...system, ...this.#prompt.next()] as LanguageModelV4Message[]
  }

  /** Converts what takes long to convert, before the prompt is read. */
  convertLong(): Promise<void> | undefined {
    return this.#prompt.convertLong()
  }

  /** Makes the next prompt from other rows. The one after it is made from history again. */
  promptOnce(rows: readonly MessageRow[]): void {
    this.#prompt.once(rows, encodeAltered(this.rows, rows))
  }

  /** What the last prompt was made of, with the rows that were appended since. */
  promptRecord(): PromptRecord {
    return this.#prompt.record(this.rows.length)
  }

  /** The messages that the model received; see `GrowingPrompt.sent`. */
  sentMessages(answering = false): () => LanguageModelV4Message[] {
    const sent = this.#prompt.sent(answering)
    let copies: LanguageModelV4Message[] | undefined
    return () => (copies ??= copyMessages(sent()))
  }
}

/** True for rows of what the model and its tools produced. */
export function isOutput({ role }: MessageRow): boolean {
  return role === 'assistant' || role === 'tool'
}

/** The messages of a run's prompt. They grow by the rows that are appended; earlier messages never change. */
class GrowingPrompt {
  readonly #tags: readonly string[]
  #messages: LanguageModelV4Message[] = []
  /** The rows of the prompt until it is first read. */
  #first: readonly MessageRow[] | undefined
  #once: OncePrompt | undefined
  /** The prompt that was read last, if it was made once. */
  #lastOnce: OncePrompt | undefined
  #digest = new PromptDigest()
  /** Rows that are converted when the next prompt is read: the last output of a run usually isn't. */
  #pending: MessageRow[] = []

  /** `tags`: see `modelMessagesOf`. */
  constructor(rows: readonly MessageRow[], tags: readonly string[]) {
    this.#tags = tags
    this.#first = rows.slice()
  }

  /** Converts long rows one at a time, so that other work gets its turn between two. */
  convertLong(): Promise<void> | undefined {
    const long = this.#first?.filter((row) => textLength(row) >= longRow) ?? []
    return long.length > 1 ? this.#convertEach(long) : undefined
  }

  async #convertEach(rows: readonly MessageRow[]): Promise<void> {
    for (const row of rows) {
      modelMessagesOf(row, this.#tags)
      await new Promise((resolve) => void setImmediate(resolve))
    }
  }

  append(rows: readonly MessageRow[]): void {
    for (const row of rows) this.#pending.push(row)
  }

  /** Starts again from these rows: a row changed, or was inserted before the end. */
  rebuild(rows: readonly MessageRow[]): void {
    for (const once of [this.#once, this.#lastOnce]) if (once) this.#convert(this.#pending, once.messages)
    this.#pending = []
    this.#messages = []
    this.#digest = new PromptDigest()
    this.#first = rows.slice()
  }

  /** The next prompt is made of these rows and of those appended before it is read. It has no effect on the one after it. */
  once(rows: readonly MessageRow[], altered: JSONValue): void {
    this.#flush()
    this.#once = { messages: this.#convert(inPromptOrder(rows), []), altered }
  }

  record(rows: number): PromptRecord {
    this.#flush()
    if (!this.#lastOnce) return { rows, messages: this.#messages.length, hash: this.#digest.extend(this.#messages).hash }
    const { messages, altered } = this.#lastOnce
    return { rows, messages: messages.length, hash: new PromptDigest().extend(messages).hash, altered }
  }

  /**
   * The messages that the model received before its last answer, or, while it is `answering`, for the current one. Copied when the
   * function is called: the messages only grow, and most callers never read them.
   */
  sent(answering: boolean): () => LanguageModelV4Message[] {
    this.#flush()
    const messages = this.#messages
    const answered = answering ? -1 : messages.findLastIndex(({ role }) => role === 'assistant')
    const end = answered < 0 ? messages.length : answered
    return () => messages.slice(0, end)
  }

  next(): readonly LanguageModelV4Message[] {
    this.#flush()
    this.#lastOnce = this.#once
    this.#once = undefined
    return this.#lastOnce?.messages ?? this.#messages
  }

  #flush(): void {
    if (this.#first) this.#convert(inPromptOrder(this.#first), this.#messages)
    this.#first = undefined
    if (this.#pending.length === 0) return
    this.#convert(this.#pending, this.#messages)
    for (const once of [this.#once, this.#lastOnce]) if (once) this.#convert(this.#pending, once.messages)
    this.#pending = []
  }

  #convert(rows: readonly MessageRow[], into: LanguageModelV4Message[]): LanguageModelV4Message[] {
    for (const row of rows) for (const message of modelMessagesOf(row, this.#tags)) into.push(message)
    return into
  }
}

interface OncePrompt {
  messages: LanguageModelV4Message[]
  altered: JSONValue
}

/**
 * The rows of a prompt that a processor changed, as they are stored with its step. A number is the place of a row in the history of the
 * run, and a pair the first and the last of several; other rows are written out. `of`: the number of rows that the history had then; those
 * that follow it are at the end of the prompt.
 */
interface AlteredRows {
  of: number
  rows: Array<number | [from: number, to: number] | AlteredRow>
}

type AlteredRow = Pick<MessageRow, 'id' | 'messageId' | 'role' | 'content'> & { type?: string }

/** What is larger is not stored: its prompt can't be made again. */
const maxAltered = 200_000

function encodeAltered(history: readonly MessageRow[], rows: readonly MessageRow[]): JSONValue {
  const places = new Map(history.map((row, index) => [row, index]))
  const encoded: AlteredRows['rows'] = []
  for (const row of rows) {
    const place = places.get(row)
    const last = encoded.at(-1)
    if (place === undefined) {
      const { id, messageId, role, type, content } = row
      encoded.push({ id, messageId, role, content, ...(type !== undefined && { type }) })
    } else if (Array.isArray(last) && last[1] === place - 1) last[1] = place
    else if (typeof last === 'number' && last === place - 1) encoded[encoded.length - 1] = [last, place]
    else encoded.push(place)
  }
  const altered = JSON.stringify({ of: history.length, rows: encoded })
  return altered.length > maxAltered ? null : (JSON.parse(altered) as JSONValue)
}

function decodeAltered(history: readonly MessageRow[], { of, rows }: AlteredRows): { rows: MessageRow[]; appended: MessageRow[] } {
  const decoded = rows.flatMap((row) => {
    if (typeof row === 'number') return history[row] ?? []
    return Array.isArray(row) ? history.slice(row[0], row[1] + 1) : { ...row, createdAt: new Date(0) }
  })
  return { rows: decoded, appended: history.slice(of) }
}

/** The messages of the prompt of a step, made again from stored rows. Null if a processor changed too much of it. */
export function rebuildMessages(
  stored: readonly MessageRow[], { rows, altered }: Pick<PromptRecord, 'rows' | 'altered'>, agentId: string, tags: readonly string[],
): { messages: LanguageModelV4Message[]; hash: string; rows: MessageRow[] } | null {
  if (altered === null) return null
  const history = asChecked(stored, agentId).slice(0, rows)
  const parts = altered === undefined
    ? { rows: inPromptOrder(history), appended: [] }
    : decodeAltered(history, altered as unknown as AlteredRows)
  const made = [...(altered === undefined ? parts.rows : inPromptOrder(parts.rows)), ...parts.appended]
  const messages = made.flatMap((row) => modelMessagesOf(row, tags))
  return { messages, hash: new PromptDigest().extend(messages).hash, rows: made }
}

/** Converting a row of this length takes milliseconds. */
const longRow = 50_000

function textLength({ content: { parts } }: MessageRow): number {
  let length = 0
  for (const part of parts) {
    if (part.type === 'text') length += part.text.length
    const result = part.type === 'tool-invocation' ? part.toolInvocation.result : undefined
    if (typeof result === 'string') length += result.length
  }
  return length
}

/** The rows in the order that providers require: every call has a result, right after it. */
function inPromptOrder(rows: readonly MessageRow[]): readonly MessageRow[] {
  return closeOpenCalls(resultsAfterCalls(rows))
}

/**
 * A run that was suspended may have sent itself a signal before its last results were stored. The results move before the signal;
 * no model has read one without the other.
 */
function resultsAfterCalls(rows: readonly MessageRow[]): readonly MessageRow[] {
  let ordered: MessageRow[] | undefined
  let insertAt = -1
  for (let index = 0; index < rows.length; index++) {
    const row = rows[index] as MessageRow
    if (row.role === 'tool' && insertAt >= 0) {
      if (insertAt < index) ordered ??= rows.slice(0, index)
      ordered?.splice(insertAt, 0, row)
      insertAt++
      continue
    }
    ordered?.push(row)
    if (row.role === 'assistant') insertAt = ordered ? ordered.length : index + 1
    else if (row.role !== 'signal' && row.role !== 'context') insertAt = -1
  }
  return ordered ?? rows
}

/** The message that a run is writing. It ends when input is stored after it; the next output has a new id. */
export class OpenMessage {
  id: string
  /** Input is stored after it. */
  sealed = false
  #begun = false
  readonly #newId: () => string

  constructor(newId: () => string) {
    this.#newId = newId
    this.id = newId()
  }

  /** Takes note of stored rows. */
  follow(rows: readonly MessageRow[]): void {
    for (const row of rows) {
      if (row.role === 'assistant') this.#begun = true
      else if (this.#begun && (row.role === 'signal' || row.role === 'user')) this.sealed = true
    }
  }

  /** The id of the message that the next output belongs to. */
  next(): string {
    if (this.sealed) {
      this.id = this.#newId()
      this.#begun = false
      this.sealed = false
    }
    return this.id
  }

  /** Continues the message of the last of these rows that has the call, or that is of this message. */
  resume(rows: readonly MessageRow[], from: { toolCallId?: string; messageId?: string }): void {
    const { toolCallId, messageId } = from
    const index = rows.findLastIndex((row) =>
      row.role === 'assistant' && (toolCallId === undefined ? row.messageId === messageId : hasCall(row, toolCallId)))
    const row = rows[index]
    if (!row) return
    this.id = row.messageId
    this.follow(rows.slice(index))
  }
}

function hasCall({ content }: MessageRow, toolCallId: string): boolean {
  return content.parts.some((part) => part.type === 'tool-invocation' && part.toolInvocation.toolCallId === toolCallId)
}
