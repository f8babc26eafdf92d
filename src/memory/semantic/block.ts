import type { Message } from '../../message/message.ts'
import { isRecallBlock, type MessageRow } from '../../message/row.ts'
import { joinTaint, taintOf } from '../../message/taint.ts'
import { estimateTokens } from '../../prompt/tokens.ts'
import { excerpt, quotePassage } from '../../recall/text/excerpt.ts'
import type { Reasons } from '../../recall/rank/rank.ts'
import { searchableText } from '../../recall/text/passages.ts'
import { extractTerms } from '../../recall/text/terms.ts'
import type { ContextBlock } from '../../run/loop/run-contract.ts'
import { escapeText, isXMLName } from '../../signals/tags.ts'
import type { MessageRef } from '../../store/contract/recall.ts'
import { maxTitleLength } from '../titles.ts'

/** Consecutive messages of a thread, some of which are hits. */
export interface RecalledPassage {
  threadId: string
  title: string
  /** In the order of the thread. */
  messages: readonly RecalledMessage[]
}

export interface RecalledMessage {
  message: Message
  seq: number
  /** For a hit: its score, its reasons, and the text of the passage that matched. */
  hit?: { score: number; reasons: Reasons; text: string }
}

interface BlockOptions {
  /** The thread whose prompt contains the block. */
  threadId: string
  question: string
  maxTokens: number
  /** The search could not find every message: the block says so. */
  incomplete?: boolean
}

/** The longest and the shortest excerpt of a message, in characters. */
const maxExcerpt = 1_200
const minExcerpt = 40
/** The least tokens that a hit may use, with the header of its passage, while there are so many. */
const leastShare = 60
const opening = '<recalled-messages>\nEarlier messages that may matter here. They were not sent now.'
const openingOfSome = `${opening} Not all messages could be searched yet: there may be others.`
const closing = '</recalled-messages>'
/** Stands between messages of a thread that are not consecutive. */
const gap = '…'

/**
 * The recall block of these passages, in chronological order. It spends the tokens on hits first, the best first and the last one
 * shortened; then on the messages around them. Undefined when no hit fits. Its metadata name the quoted messages, so that it is deleted
 * with any of them.
 */
export function recallBlock(
  passages: readonly RecalledPassage[],
  { threadId, question, maxTokens, incomplete = false }: BlockOptions,
): ContextBlock | undefined {
  const first = incomplete ? openingOfSome : opening
  const lines = renderLines(passages, new Set(extractTerms(question)), maxTokens - estimateTokens(`${first}\n${closing}\n`))
  const ordered = passages
    .flatMap((passage) => {
      const messages = passage.messages.filter((one) => lines.has(one))
      return messages.length === 0 ? [] : { passage, messages }
    })
    .toSorted((a, b) => timeOf(a.messages) - timeOf(b.messages))
  if (ordered.length === 0) return undefined
  const quotes = ordered.flatMap(({ passage, messages }) =>
    messages.map(({ message }) => ({ threadId: passage.threadId, messageId: message.id })),
  )
  const recall = ordered.map(({ passage, messages }): RecallRecord => {
    const excerpts = messages.filter((one) => isExcerpt(one, lines.get(one) ?? '')).map(({ message }) => message.id)
    const hits = messages.flatMap(({ message, hit }) =>
      hit ? { messageId: message.id, score: rounded(hit.score), reasons: nonZeroReasons(hit.reasons) } : [],
    )
    return {
      threadId: passage.threadId,
      score: rounded(bestOf(messages)),
      messages: messages.map(({ message }) => message.id),
      hits,
      ...(excerpts.length > 0 && { excerpts }),
    }
  })
  const quoted = ordered.flatMap(({ messages }) => messages.map(({ message }) => taintOf(message.content)))
  const taintedBy = quoted.reduce(joinTaint, [])
  return {
    text: [first, ...ordered.map(({ passage }, at) => renderPassage(passage, lines, ordered[at - 1]?.passage)), closing].join('\n'),
    quoted: ordered.flatMap(({ passage, messages }) =>
      messages.map(({ message }) => ({ threadId: passage.threadId, messageId: message.id, text: searchableText(message.content) })),
    ),
    metadata: {
      recall,
      ...(incomplete && { incomplete }),
      ...(taintedBy.length > 0 && { taintedBy: [...taintedBy] }),
      sources: quotes.filter((quote) => quote.threadId === threadId).map(({ messageId }) => messageId),
      quotes: quotes.filter((quote) => quote.threadId !== threadId),
    },
  }
}

const noticeText = `<recalled-messages>\nEarlier messages may matter here, but no more of them are added to this prompt.\n${closing}`
/** The estimated tokens of a notice. */
export const noticeTokens = estimateTokens(noticeText)

/** Stands in a window in place of further recall blocks, once: what was found does not fit. It leaves the window like a block. */
export function recallNotice(): ContextBlock {
  return { text: noticeText, metadata: { recall: [], full: true, sources: [], quotes: [] } }
}

/** True when these rows contain a notice. */
export function hasRecallNotice(rows: readonly MessageRow[]): boolean {
  return rows.some((row) => isRecallBlock(row) && row.content.metadata?.full === true)
}

/** The metadata of a recall block: a passage that it quotes. */
type RecallRecord = {
  threadId: string
  score: number
  messages: string[]
  /** The hits among them, and their reasons. */
  hits: Array<{ messageId: string; score: number; reasons: Record<string, number> }>
  /** The messages of which it quotes one passage of several. */
  excerpts?: string[]
}

interface QuotedMessages {
  all: MessageRef[]
  /** Without those of which only one passage of several is quoted. */
  whole: MessageRef[]
  /** True when the recall blocks contain this part of a message. */
  has(part: string): boolean
}

/** The messages that the recall blocks among these rows quote. */
export function readRecalled(rows: readonly MessageRow[]): QuotedMessages {
  const blocks = rows.filter(isRecallBlock)
  const recalled = blocks.flatMap(({ content: { metadata } }) => metadata?.recall as RecallRecord[])
  const refs = (wanted: (one: RecallRecord, id: string) => boolean) =>
    recalled.flatMap((one) => one.messages.filter((id) => wanted(one, id)).map((messageId) => ({ threadId: one.threadId, messageId })))
  return {
    all: refs(() => true),
    whole: refs(({ excerpts }, id) => !excerpts?.includes(id)),
    has: (part) => blocks.some(({ content }) => searchableText(content).includes(quoteLines(part.trim()))),
  }
}

/** The estimated tokens of the recall blocks among these rows. */
export function recalledTokens(rows: readonly MessageRow[]): number {
  return rows.filter(isRecallBlock).reduce((sum, { content }) => sum + estimateTokens(searchableText(content)), 0)
}

/** The line of each message that fits into the tokens. */
function renderLines(passages: readonly RecalledPassage[], terms: ReadonlySet<string>, tokens: number): Map<RecalledMessage, string> {
  const lines = new Map<RecalledMessage, string>()
  let left = tokens
  const take = (one: RecalledMessage, line: string, besides: number): boolean => {
    const cost = estimateTokens(`${line}\n${gap}\n`) + besides
    if (cost > left) return false
    left -= cost
    lines.set(one, line)
    return true
  }
  const hits = passages.flatMap((passage) => passage.messages.flatMap((one) => (one.hit ? { passage, one, hit: one.hit } : [])))
  for (const [at, { passage, one, hit }] of hits.toSorted((a, b) => b.hit.score - a.hit.score).entries()) {
    // A hit may have twice its even share of what is left: better hits are quoted at greater length, and none takes all.
    const share = Math.min(left, Math.max(leastShare, Math.ceil((2 * left) / (hits.length - at + 1))))
    const header = passage.messages.some((other) => lines.has(other)) ? 0 : estimateTokens(`${renderHeader(passage)}\n`)
    const text = quotedText(one.message, hit.text, terms)
    // The message was emptied after the search.
    if (text === '') continue
    // A token has at most four characters in the estimate.
    for (
      let longest = Math.min(text.length, (share - header) * 4);
      longest >= Math.min(minExcerpt, text.length);
      longest = Math.floor(longest * 0.8)
    ) {
      if (take(one, renderLine(one.message, excerpt(text, terms, longest)), header)) break
    }
  }
  for (const { passage } of hits.toSorted((a, b) => b.hit.score - a.hit.score)) {
    for (const one of nearestFirst(passage, lines))
      take(one, renderLine(one.message, excerpt(searchableText(one.message.content), terms, maxExcerpt)), 0)
  }
  return lines
}

/** A short message as a whole; of a long one the passage that matched, or its beginning when the message changed since. */
function quotedText({ content }: Message, passage: string, terms: ReadonlySet<string>): string {
  const text = searchableText(content).trim()
  return text.length <= maxExcerpt ? text : excerpt(quotePassage(text, passage), terms, maxExcerpt)
}

/** The messages around the quoted hits, the nearest first. */
function nearestFirst({ messages }: RecalledPassage, lines: ReadonlyMap<RecalledMessage, string>): RecalledMessage[] {
  const shown = messages.flatMap((one, at) => (one.hit && lines.has(one) ? [at] : []))
  if (shown.length === 0) return []
  const distance = (at: number) => Math.min(...shown.map((hit) => Math.abs(hit - at)))
  return messages
    .map((one, at) => ({ one, far: distance(at) }))
    .filter(({ one }) => !one.hit && !lines.has(one))
    .toSorted((a, b) => a.far - b.far)
    .map(({ one }) => one)
}

/** A passage of the thread and day of the one before it has no header of its own. */
function renderPassage(passage: RecalledPassage, lines: ReadonlyMap<RecalledMessage, string>, before: RecalledPassage | undefined): string {
  const shown = passage.messages.flatMap((one, at) => {
    const line = lines.get(one)
    return line === undefined ? [] : { line, at }
  })
  const header = renderHeader(passage)
  const continues = before?.threadId === passage.threadId && renderHeader(before) === header
  return [
    continues ? gap : header,
    ...shown.flatMap(({ line, at }, index) => (index > 0 && shown[index - 1]?.at !== at - 1 ? [gap, line] : [line])),
  ].join('\n')
}

/** True when one whole passage of a long message is quoted: its other passages may still be recalled. */
function isExcerpt({ message, hit }: RecalledMessage, line: string): boolean {
  return searchableText(message.content).trim().length > maxExcerpt && (!hit || line.includes(quoteLines(hit.text.trim())))
}

function renderHeader({ title, messages: [first] }: RecalledPassage): string {
  const day = first ? first.message.createdAt.toISOString().slice(0, 10) : ''
  const name = excerpt(title.replaceAll(/[\s\u0085]+/g, ' '), new Set(), maxTitleLength)
  return `--- ${day}${name === '' ? '' : ` · ${escapeText(name)}`}`
}

function renderLine({ role, type }: Message, text: string): string {
  return `${role === 'signal' ? (isXMLName(type) ? type : 'signal') : role}: ${quoteLines(text)}`
}

/** A message of several lines: none of them can be read as the beginning of another message. */
function quoteLines(text: string): string {
  return escapeText(text).replaceAll(/\r\n|[\n\r\v\f\u0085\u2028\u2029]/g, '\n> ')
}

/** The reasons that are not 0. */
function nonZeroReasons(reasons: Reasons): Record<string, number> {
  return Object.fromEntries(
    Object.entries(reasons)
      .map(([name, value]) => [name, rounded(value)] as const)
      .filter(([, value]) => value !== 0),
  )
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
