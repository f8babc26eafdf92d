import type { LanguageModelV4CallOptions, LanguageModelV4Message } from '@ai-sdk/provider'
import type { MessageRow } from '../message/row.ts'
import { isUserAuthored } from '../signals/row.ts'
import { modelMessagesOf } from './from-rows.ts'
import { closeOpenCalls } from './open-calls.ts'
import type { CommonPrefix, Fingerprint } from './prefix.ts'
import { bytesOf, commonPrefix, fingerprint } from './prefix.ts'
import { estimateTokens, FILE_TOKENS } from './tokens.ts'

export type PromptSource = 'instructions' | 'tools' | 'history' | 'input' | 'signal' | 'context' | 'response'

export interface ExplainedPart {
  source: PromptSource
  role: LanguageModelV4Message['role']
  messageId?: string
  /** An estimate: see `estimateTokens`. */
  tokens: number
  bytes: number
  /** The first words of it, on one line. */
  preview: string
  /** Of a block of recalled messages: those that were found, in its order. */
  recalled?: ExplainedHit[]
}

/** A message that was found, how well it fits between 0 and 1, and what spoke for it, each compared to the best. */
export interface ExplainedHit {
  threadId: string
  messageId: string
  score: number
  reasons: Readonly<Record<string, number>>
}

export interface ExplainedPrompt {
  parts: ExplainedPart[]
  tokens: number
  bytes: number
  /** What this prompt has in common with the previous one. */
  prefix: CommonPrefix
  /** To be passed as `previous` next time. */
  fingerprints: Fingerprint[]
}

type Tools = NonNullable<LanguageModelV4CallOptions['tools']>

export interface ExplainedInput {
  system: readonly LanguageModelV4Message[]
  rows: readonly MessageRow[]
  tools?: Tools
  previous?: readonly Fingerprint[]
  /** The run that the prompt is for: its rows are `input` and `response`, the others `history`. */
  runId?: string
  /** Of the agent's own: see `modelMessagesOf`. */
  tags?: readonly string[]
}

/** What a prompt is made of, in its order: tools, instructions, rows. */
export function explainPrompt({ system, rows, tools = [], previous = [], runId, tags }: ExplainedInput): ExplainedPrompt {
  const parts: ExplainedPart[] = []
  const fingerprints: Fingerprint[] = []
  const add = (part: Omit<ExplainedPart, 'bytes'>, of: object) => {
    const print = fingerprint(of)
    fingerprints.push(print)
    const { preview, recalled, ...rest } = part
    parts.push({ ...rest, bytes: bytesOf(print), preview, ...(recalled && { recalled }) })
  }

  for (const tool of tools) {
    add({ source: 'tools', role: 'system', tokens: estimateTokens(JSON.stringify(tool)), preview: tool.name }, tool)
  }
  for (const message of system) add({ source: 'instructions', ...told(message) }, message)
  const shown = closeOpenCalls(rows)
  const isInput = runId === undefined ? trailingInput(shown) : (row: MessageRow) => row.runId === runId
  for (const row of shown) {
    const source = sourceOf(row, isInput(row))
    const recalled = row.role === 'context' ? recalledIn(row) : []
    for (const message of modelMessagesOf(row, tags)) add({ source, messageId: row.messageId, ...told(message), ...(recalled.length > 0 && { recalled }) }, message)
  }

  return {
    parts,
    tokens: parts.reduce((sum, part) => sum + part.tokens, 0),
    bytes: parts.reduce((sum, part) => sum + part.bytes, 0),
    prefix: commonPrefix(previous, fingerprints),
    fingerprints,
  }
}

/** What the block says of them. */
function recalledIn({ content: { metadata } }: MessageRow): ExplainedHit[] {
  const passages = (Array.isArray(metadata?.recall) ? metadata.recall : []) as Array<{ threadId: string; hits?: Array<Omit<ExplainedHit, 'threadId'>> }>
  return passages.flatMap(({ threadId, hits = [] }) => hits.map(({ messageId, score, reasons }) => ({ threadId, messageId, score, reasons })))
}

function sourceOf(row: MessageRow, isOfRun: boolean): PromptSource {
  if (row.role === 'context') return 'context'
  if (row.role === 'signal' && !isUserAuthored(row)) return 'signal'
  if (!isOfRun) return 'history'
  return row.role === 'assistant' || row.role === 'tool' ? 'response' : 'input'
}

/** Without a run, what follows the last answer is the input. */
function trailingInput(rows: readonly MessageRow[]): (row: MessageRow) => boolean {
  const answered = rows.findLastIndex(({ role }) => role === 'assistant' || role === 'tool')
  const input = new Set(rows.slice(answered + 1))
  return row => input.has(row)
}

function told(message: LanguageModelV4Message): Pick<ExplainedPart, 'role' | 'tokens' | 'preview'> {
  const { texts, files } = wordsOf(message)
  const tokens = texts.reduce((sum, text) => sum + estimateTokens(text), 0) + files * FILE_TOKENS
  return { role: message.role, tokens, preview: previewOf(texts, files) }
}

function wordsOf({ content }: LanguageModelV4Message): { texts: string[]; files: number } {
  if (typeof content === 'string') return { texts: [content], files: 0 }
  const texts: string[] = []
  let files = 0
  for (const part of content) {
    if (part.type === 'text' || part.type === 'reasoning') texts.push(part.text)
    else if (part.type === 'tool-call') texts.push(`${part.toolName}(${JSON.stringify(part.input)})`)
    else if (part.type === 'file' || part.type === 'reasoning-file') files++
    else if (part.type === 'tool-result') {
      const { output } = part
      if (output.type === 'content') {
        for (const item of output.value) {
          if (item.type === 'text') texts.push(item.text)
          else if (item.type === 'file') files++
        }
      } else if (output.type === 'execution-denied') texts.push(output.reason ?? 'denied')
      else texts.push(typeof output.value === 'string' ? output.value : JSON.stringify(output.value))
    }
  }
  return { texts, files }
}

function previewOf(texts: readonly string[], files: number): string {
  const words = texts.map(text => text.slice(0, 200)).join(' ').replace(/\s+/g, ' ').trim()
  const noted = files > 0 ? `${words} [${files} ${files === 1 ? 'file' : 'files'}]`.trim() : words
  return noted.length > 80 ? `${noted.slice(0, 79)}…` : noted
}
