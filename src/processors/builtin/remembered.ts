import type { MessageList } from '../../message/list/list.ts'
import type { Message } from '../../message/message.ts'
import { isUserAuthored } from '../../signals/row.ts'

/**
 * The messages of a prompt that are history: neither what the run was asked nor what it has said. Where the list can't tell what it
 * was asked, that is the last thing a user said, and everything since.
 */
export function rememberedIds(messages: readonly Message[], list: MessageList, runId: string): Set<string> {
  const current = new Set([...list.get.input.db(), ...list.get.response.db()].map(({ id }) => id))
  for (const row of list.rows()) if (row.runId === runId) current.add(row.messageId)
  const asked = messages.some((message) => message.role !== 'assistant' && current.has(message.id))
  const lastAsked = asked ? messages.length : messages.findLastIndex(isUserAuthored)
  const remembered = messages.filter(({ id }, index) => !current.has(id) && (lastAsked < 0 || index < lastAsked))
  return new Set(remembered.map(({ id }) => id))
}
