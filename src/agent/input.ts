import type { LanguageModelV4Message } from '@ai-sdk/provider'
import { HeedError } from '../base/errors.ts'
import { toRows, type AgentInput } from '../message/read/input.ts'
import type { MessageRow } from '../message/row.ts'
import { checkStorable } from '../message/read/invalid-message.ts'
import { modelMessagesOf } from '../prompt/from-rows.ts'
import { closeOpenCalls } from '../prompt/open-calls.ts'
import type { Askable } from './askable.ts'
import { guardInput } from './guard.ts'

/** What an agent is asked, as the rows of its prompt. */
export function inputRows(agent: Askable, messages: AgentInput): MessageRow[] {
  return namedRows(agent, messages).rows
}

/** The same, with those of their ids that the caller gave. */
export function namedRows(agent: Askable, messages: AgentInput): { rows: MessageRow[]; given: string[] } {
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
 * Refuses input that leaves a model nothing to answer. On a thread, a tool's result may answer a call of its history, and what can't be
 * stored is refused.
 */
export function checkInput(rows: readonly MessageRow[], onThread: boolean): void {
  if (onThread) for (const [index, { content }] of rows.entries()) checkStorable(content, index)
  const shown = onThread ? rows : closeOpenCalls(rows)
  const last = rows.at(-1)
  if (shown.some(saysSomething) && !(last?.role === 'user' && !saysSomething(last))) return
  const why = rows.some(({ role }) => role === 'tool')
    ? "A tool's result needs the call it answers before it: pass the messages from the call on, or memory: { thread, resource } with the thread that has it."
    : 'The message is empty. Pass a text or a file.'
  throw new HeedError('invalid_message', why)
}

function saysSomething(row: Parameters<typeof modelMessagesOf>[0]): boolean {
  return modelMessagesOf(row).some(({ content }: LanguageModelV4Message) =>
    typeof content === 'string' ? content.trim() !== '' : content.some((part) => part.type !== 'text' || part.text.trim() !== '' || part.providerOptions !== undefined))
}
