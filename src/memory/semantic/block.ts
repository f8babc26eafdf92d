import type { Message } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import { estimateTokens } from '../../prompt/tokens.ts'
import { excerpt, quotePassage } from '../../recall/text/excerpt.ts'
import type { Reasons } from '../../recall/rank/rank.ts'
import { searchableText } from '../../recall/text/searchable.ts'
import { extractTerms } from '../../recall/text/terms.ts'
import type { ContextBlock } from '../../run/loop/run-setup.ts'
import { escapeText } from '../../signals/xml.ts'
import type { MessageRef } from '../../store/contract/recall.ts'

/** Messages of a thread that follow each other, with those that were found among them. */
export interface RecalledPassage {
  threadId: string
  title: string
  /** In the order of the thread. */
  messages: readonly RecalledMessage[]
}

export interface RecalledMessage {
  message: Message
  seq: number
  /** Of one that was found: its score, what spoke for it, and the passage that was found. */
  hit?: { score: number; reasons: Reasons; text: string }
}

export interface BlockOptions {
  /** The thread that the block is shown in. */
  threadId: string
  question: string
  maxTokens: number
}

/** Of a message, at most so much is shown, and of one that was found at least so much. */
const longestShown = 1_200
const leastShown = 40
const longestTitle = 100
const opening = '<recalled-messages>\nEarlier messages that may matter here. They were not sent now.'
const closing = '</recalled-messages>'
/** Between messages of a passage that did not follow each other. */
const gap = '…'

/**
 * What is shown of passages, in the order of time. As far as the tokens go: first what was found, the best first, the last of it shortened; then
 * what stands around it. Nothing when there is none. Names the messages that it quotes, so that it goes when one of them does.
 */
export function recallBlock(found: readonly RecalledPassage[], { threadId, question, maxTokens }: BlockOptions): ContextBlock | undefined {
  const lines = linesOf(found, new Set(extractTerms(question)), maxTokens - estimateTokens(`${opening}\n${closing}\n`))
  const ordered = found.flatMap((passage) => {
    const messages = passage.messages.filter((one) => lines.has(one))
    return messages.length === 0 ? [] : { passage, messages }
  }).toSorted((a, b) => timeOf(a.messages) - timeOf(b.messages))
  if (ordered.length === 0) return undefined
  const quotes = ordered.flatMap(({ passage, messages }) => messages.map(({ message }) => ({ threadId: passage.threadId, messageId: message.id })))
  const recall = ordered.map(({ passage, messages }): Recalled => {
    const excerpts = messages.filter((one) => isExcerpt(one, lines.get(one) ?? '')).map(({ message }) => message.id)
    const hits = messages.flatMap(({ message, hit }) => (hit ? { messageId: message.id, score: rounded(hit.score), reasons: spoken(hit.reasons) } : []))
    return { threadId: passage.threadId, score: rounded(bestOf(messages)), messages: messages.map(({ message }) => message.id), hits, ...(excerpts.length > 0 && { excerpts }) }
  })
  return {
    text: [opening, ...ordered.map(({ passage }) => written(passage, lines)), closing].join('\n'),
    quoted: ordered.flatMap(({ passage, messages }) => messages.map(({ message }) => ({ threadId: passage.threadId, messageId: message.id, text: searchableText(message.content) }))),
    metadata: { recall, sources: quotes.filter((quote) => quote.threadId === threadId).map(({ messageId }) => messageId), quotes: quotes.filter((quote) => quote.threadId !== threadId) },
  }
}

/** What a block says of a passage that it shows. */
type Recalled = {
  threadId: string
  score: number
  messages: string[]
  /** Those among them that were found, and why. */
  hits: Array<{ messageId: string; score: number; reasons: Record<string, number> }>
  /** Those of which it shows one passage of several. */
  excerpts?: string[]
}

export interface ShownMessages {
  all: MessageRef[]
  /** Without those of which one passage of several is shown. */
  whole: MessageRef[]
  /** True when what is shown has this part of a message. */
  has(part: string): boolean
}

/** The messages that recall has put into these rows. */
export function recalledIn(rows: readonly MessageRow[]): ShownMessages {
  const shown = rows.filter(({ role, content: { metadata } }) => role === 'context' && Array.isArray(metadata?.recall))
  const recalled = shown.flatMap(({ content: { metadata } }) => metadata?.recall as Recalled[])
  const refs = (wanted: (one: Recalled, id: string) => boolean) => recalled.flatMap((one) => one.messages.filter((id) => wanted(one, id)).map((messageId) => ({ threadId: one.threadId, messageId })))
  return {
    all: refs(() => true),
    whole: refs(({ excerpts }, id) => !excerpts?.includes(id)),
    has: (part) => shown.some(({ content }) => searchableText(content).includes(escapeText(part.trim()))),
  }
}

/** What is shown of each message, of those for which there is room. */
function linesOf(found: readonly RecalledPassage[], words: ReadonlySet<string>, tokens: number): Map<RecalledMessage, string> {
  const lines = new Map<RecalledMessage, string>()
  let left = tokens
  const take = (one: RecalledMessage, line: string, besides: number): boolean => {
    const cost = estimateTokens(`${line}\n${gap}\n`) + besides
    if (cost > left) return false
    left -= cost
    lines.set(one, line)
    return true
  }
  const hits = found.flatMap((passage) => passage.messages.flatMap((one) => (one.hit ? { passage, one, hit: one.hit } : [])))
  for (const { passage, one, hit } of hits.toSorted((a, b) => b.hit.score - a.hit.score)) {
    const header = passage.messages.some((other) => lines.has(other)) ? 0 : estimateTokens(`${headerOf(passage)}\n`)
    const text = shownOf(one.message, hit.text, words)
    // It was emptied since it was found.
    if (text === '') continue
    // A character is a quarter of a token or more.
    for (let longest = Math.min(text.length, (left - header) * 4); longest >= Math.min(leastShown, text.length); longest = Math.floor(longest * 0.8)) {
      if (take(one, lineOf(one.message, excerpt(text, words, longest)), header)) break
    }
  }
  for (const { passage } of hits.toSorted((a, b) => b.hit.score - a.hit.score)) {
    for (const one of nearestFirst(passage, lines)) take(one, lineOf(one.message, excerpt(searchableText(one.message.content), words, longestShown)), 0)
  }
  return lines
}

/** A message that is short is shown whole; of one that is long, the passage that was found, unless it no longer says that. */
function shownOf({ content }: Message, passage: string, words: ReadonlySet<string>): string {
  const text = searchableText(content).trim()
  return text.length <= longestShown ? text : excerpt(quotePassage(text, passage), words, longestShown)
}

/** What stands around those that are shown, from the next of them on. */
function nearestFirst({ messages }: RecalledPassage, lines: ReadonlyMap<RecalledMessage, string>): RecalledMessage[] {
  const shown = messages.flatMap((one, at) => (one.hit && lines.has(one) ? [at] : []))
  if (shown.length === 0) return []
  const distance = (at: number) => Math.min(...shown.map((hit) => Math.abs(hit - at)))
  return messages.map((one, at) => ({ one, far: distance(at) })).filter(({ one }) => !one.hit && !lines.has(one)).toSorted((a, b) => a.far - b.far).map(({ one }) => one)
}

function written(passage: RecalledPassage, lines: ReadonlyMap<RecalledMessage, string>): string {
  const shown = passage.messages.flatMap((one, at) => {
    const line = lines.get(one)
    return line === undefined ? [] : { line, at }
  })
  return [headerOf(passage), ...shown.flatMap(({ line, at }, index) => (index > 0 && shown[index - 1]?.at !== at - 1 ? [gap, line] : [line]))].join('\n')
}

/** Of a long message, what else it says is still to be found: unless not even the passage that was found had room. */
function isExcerpt({ message, hit }: RecalledMessage, line: string): boolean {
  return searchableText(message.content).trim().length > longestShown && (!hit || line.includes(escapeText(hit.text.trim())))
}

function headerOf({ title, messages: [first] }: RecalledPassage): string {
  const day = first ? first.message.createdAt.toISOString().slice(0, 10) : ''
  const name = excerpt(title.replaceAll(/\s+/g, ' '), new Set(), longestTitle)
  return `--- ${day}${name === '' ? '' : ` · ${escapeText(name)}`}`
}

function lineOf({ role, type }: Message, text: string): string {
  return `${role === 'signal' ? (type ?? 'signal') : role}: ${escapeText(text)}`
}

/** The reasons that there were. */
function spoken(reasons: Reasons): Record<string, number> {
  return Object.fromEntries(Object.entries(reasons).map(([name, value]) => [name, rounded(value)] as const).filter(([, value]) => value !== 0))
}

function rounded(number: number): number {
  return Number(number.toFixed(3))
}

function bestOf(messages: readonly RecalledMessage[]): number {
  return Math.max(0, ...messages.map(({ hit }) => hit?.score ?? 0))
}

function timeOf([first]: readonly RecalledMessage[]): number {
  return first?.message.createdAt.getTime() ?? 0
}
