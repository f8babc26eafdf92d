import type { MessageList } from '../../message/list/list.ts'
import type { Message } from '../../message/message.ts'
import { isUserAuthored } from '../../signals/row.ts'

/**
 * The ids of the messages of a prompt that are history: neither input nor output of the run. Where the list doesn't know the input, it is
 * the last message of a user and everything after it.
 */
export function historyIds(messages: readonly Message[], list: MessageList, runId: string): Set<string> {
  const current = new Set([...list.get.input.db(), ...list.get.response.db()].map(({ id }) => id))
  for (const row of list.rows()) if (row.runId === runId) current.add(row.messageId)
  const knowsInput = messages.some((message) => message.role !== 'assistant' && current.has(message.id))
  const inputStart = knowsInput ? messages.length : messages.findLastIndex(isUserAuthored)
  const history = messages.filter(({ id }, index) => !current.has(id) && (inputStart < 0 || index < inputStart))
  return new Set(history.map(({ id }) => id))
}
