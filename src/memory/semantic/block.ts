import type { Message } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import { estimateTokens } from '../../prompt/tokens.ts'
import { searchableText } from '../../recall/searchable.ts'
import type { ContextBlock } from '../../run/context-source.ts'
import { escapeText } from '../../signals/escape.ts'
import type { MessageRef } from '../../store/recall.ts'

/** Messages of a thread that follow each other, with the one that was found among them. */
export interface RecalledPassage {
  threadId: string
  title: string
  /** In the order of the thread. */
  messages: ReadonlyArray<{ message: Message; seq: number; /** What is shown of it, where it isn't all. */ excerpt?: string }>
  score: number
}

/** Of a message, at most so much is shown. */
const longestShown = 1_200
const opening = '<recalled-messages>\nEarlier messages that may matter here. They were not sent now.'
const closing = '</recalled-messages>'

/**
 * What is shown of passages: the best first until the tokens are used up, then in the order of time. Nothing when there is none.
 * Names the messages that it quotes, so that it goes when one of them does.
 */
export function recallBlock(found: readonly RecalledPassage[], threadId: string, maxTokens: number): ContextBlock | undefined {
  const chosen: Array<{ passage: RecalledPassage; text: string }> = []
  let left = maxTokens - estimateTokens(opening)
  for (const passage of found.toSorted((a, b) => b.score - a.score)) {
    const text = written(passage)
    const tokens = estimateTokens(text)
    if (tokens > left) continue
    left -= tokens
    chosen.push({ passage, text })
  }
  if (chosen.length === 0) return undefined
  const ordered = chosen.toSorted((a, b) => timeOf(a.passage) - timeOf(b.passage))
  const quotes = ordered.flatMap(({ passage }) => passage.messages.map(({ message }) => ({ threadId: passage.threadId, messageId: message.id })))
  const scores = ordered.map(({ passage: { threadId: of, score, messages } }) => ({ threadId: of, score: Number(score.toFixed(3)), messages: messages.map(({ message }) => message.id) }))
  return {
    text: [opening, ...ordered.map(({ text }) => text), closing].join('\n'),
    metadata: { recall: scores, sources: quotes.filter((quote) => quote.threadId === threadId).map(({ messageId }) => messageId), quotes: quotes.filter((quote) => quote.threadId !== threadId) },
  }
}

/** The messages that recall has put into these rows. */
export function recalledIn(rows: readonly MessageRow[]): MessageRef[] {
  return rows.flatMap(({ role, content: { metadata } }) => {
    const shownHere = role === 'context' ? (metadata?.recall as Array<{ threadId: string; messages: string[] }> | undefined) : undefined
    return shownHere?.flatMap(({ threadId, messages }) => messages.map((messageId) => ({ threadId, messageId }))) ?? []
  })
}

function written({ title, messages }: RecalledPassage): string {
  const [first] = messages
  const day = first ? first.message.createdAt.toISOString().slice(0, 10) : ''
  const lines = messages.map(({ message, excerpt }) => `${message.role === 'signal' ? (message.type ?? 'signal') : message.role}: ${shown(excerpt ?? searchableText(message.content))}`)
  return [`--- ${day}${title === '' ? '' : ` · ${escapeText(title)}`}`, ...lines].join('\n')
}

function shown(text: string): string {
  const trimmed = text.trim()
  return escapeText(trimmed.length <= longestShown ? trimmed : `${trimmed.slice(0, longestShown).replace(/[\uD800-\uDBFF]$/, '')}…`)
}

function timeOf({ messages: [first] }: RecalledPassage): number {
  return first?.message.createdAt.getTime() ?? 0
}
