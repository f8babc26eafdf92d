import type { LanguageModelV4Message } from '@ai-sdk/provider'
import { HeedError } from '../base/errors.ts'
import { toRows, type AgentInput } from '../message/read/input.ts'
import { checkStorable } from '../message/read/raw.ts'
import type { MessageRow } from '../message/row.ts'
import { taintOf, withTaint } from '../message/taint.ts'
import { modelMessagesOf } from '../prompt/from-rows.ts'
import { closeOpenCalls } from '../prompt/open-calls.ts'
import { RESERVED_TAGS, needsGuard } from '../signals/tags.ts'
import { messageInputToSignal } from '../signals/normalize.ts'
import { modelSignalOf, signalToRow } from '../signals/conversions.ts'
import type { Askable } from './askable.ts'

/** The messages of a call as rows of the prompt. */
export function inputRows(agent: Askable, messages: AgentInput): MessageRow[] {
  return inputWithCallerIds(agent, messages).rows
}

/** The same, with the caller ids among their ids (`given`). */
export function inputWithCallerIds(agent: Askable, messages: AgentInput): { rows: MessageRow[]; given: string[] } {
  const { clock, newId } = agent.threads()
  const made = new Set<string>()
  const fresh = () => {
    const id = newId()
    made.add(id)
    return id
  }
  const rows = toRows(messages, { newId: fresh, now: () => new Date(clock.now()) })
  const given = rows.flatMap(({ id }) => (made.has(id) ? [] : id))
  return { rows: guardInput(rows, { now: clock.now(), reservedTags: agent.signalTags }), given }
}

/**
 * Rejects input without content for a model. On a thread, a tool result may answer a call of its history, and contents that cannot be
 * stored are rejected.
 */
export function checkInput(rows: readonly MessageRow[], onThread: boolean): void {
  if (onThread) for (const [index, { content }] of rows.entries()) checkStorable(content, index)
  const shown = onThread ? rows : closeOpenCalls(rows)
  const last = rows.at(-1)
  if (shown.some(hasContent) && !(last?.role === 'user' && !hasContent(last))) return
  const why = rows.some(({ role }) => role === 'tool')
    ? 'A tool result must follow the call it answers: pass the messages from that call on, ' +
      'or memory: { thread, resource } of the thread that contains it.'
    : 'The message is empty. Pass a text or a file.'
  throw new HeedError('invalid_message', why)
}

function hasContent(row: Parameters<typeof modelMessagesOf>[0]): boolean {
  return modelMessagesOf(row).some(({ content }: LanguageModelV4Message) =>
    typeof content === 'string'
      ? content.trim() !== ''
      : content.some((part) => part.type !== 'text' || part.text.trim() !== '' || part.providerOptions !== undefined),
  )
}

/** Turns input whose text imitates a signal's tag into a user signal, which the prompt shows as an escaped element. */
export function guardInput(rows: MessageRow[], context: { now: number; reservedTags: readonly string[] }): MessageRow[] {
  const reserved = [...RESERVED_TAGS, ...context.reservedTags]
  return rows.map((row) => {
    if (row.role !== 'user') return row
    const texts = row.content.parts.filter((part) => part.type === 'text')
    if (!needsGuard(texts.map(({ text }) => ({ type: 'text', text })), reserved)) return row
    const { contents, providerOptions } = modelSignalOf(row)
    const given = { contents: typeof contents === 'string' ? contents : [...contents], ...(providerOptions && { providerOptions }) }
    const signal = messageInputToSignal(given, { ...context, id: row.id, reservedTags: [...context.reservedTags] })
    const guarded = signalToRow(signal, { messageId: row.messageId })
    return { ...guarded, content: withTaint(guarded.content, taintOf(row.content)) }
  })
}
