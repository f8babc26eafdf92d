import type { LanguageModelV4CallOptions, LanguageModelV4Message } from '@ai-sdk/provider'
import { isObject } from '../base/json.ts'
import { toBase64 } from '../message/file-data.ts'
import type { MessageRow } from '../message/row.ts'
import { isUserAuthored } from '../signals/conversions.ts'
import { modelMessagesOf } from './from-rows.ts'
import { closeOpenCalls } from './open-calls.ts'
import { estimateTokens, FILE_TOKENS } from './tokens.ts'

/** Where a part of a prompt comes from. */
export type PromptSource = 'instructions' | 'tools' | 'history' | 'input' | 'signal' | 'context' | 'response'

/** A part of a prompt: where it comes from and what it costs. */
export interface ExplainedPart {
  source: PromptSource
  role: LanguageModelV4Message['role']
  messageId?: string
  /** An estimate: see `estimateTokens`. */
  tokens: number
  bytes: number
  /** The beginning of the text, on one line. */
  preview: string
  /** Of instructions, in the prompt of the next call: the whole text. */
  text?: string
  /** In a recall block: the messages that recall found, in the order of the block. */
  recalled?: ExplainedHit[]
}

/** A message that recall found, its score between 0 and 1, and the score of each signal of the ranking, relative to the best. */
export interface ExplainedHit {
  threadId: string
  messageId: string
  score: number
  reasons: Readonly<Record<string, number>>
}

/** A prompt part by part, and how much of it equals the last one. */
export interface ExplainedPrompt {
  parts: ExplainedPart[]
  tokens: number
  bytes: number
  /** The prefix that this prompt shares with the previous one. */
  prefix: CommonPrefix
  /** Pass these as `previous` to explain the next prompt. */
  fingerprints: Fingerprint[]
  /** The version of the agent, where it is edited. */
  edit?: { version: number; release?: number }
}

type Tools = NonNullable<LanguageModelV4CallOptions['tools']>

interface ExplainedInput {
  system: readonly LanguageModelV4Message[]
  rows: readonly MessageRow[]
  tools?: Tools
  previous?: readonly Fingerprint[]
  /** The run of the prompt: its rows are `input` and `response`, the others `history`. */
  runId?: string
  /** The agent's reserved tags: see `modelMessagesOf`. */
  tags?: readonly string[]
  /** The rows are in the order of the prompt already, and each of their calls has a result. */
  closed?: boolean
  /** With the whole text of the instructions. */
  texts?: boolean
}

/** The parts of a prompt, in order: tools, instructions, rows. */
export function explainPrompt(
  { system, rows, tools = [], previous = [], runId, tags, closed: isClosed = false, texts: hasTexts = false }: ExplainedInput,
): ExplainedPrompt {
  const parts: ExplainedPart[] = []
  const fingerprints: Fingerprint[] = []
  const add = (part: Omit<ExplainedPart, 'bytes'>, of: object) => {
    const print = fingerprint(of)
    fingerprints.push(print)
    const { preview, text, recalled, ...rest } = part
    parts.push({ ...rest, bytes: bytesOf(print), preview, ...(text !== undefined && { text }), ...(recalled && { recalled }) })
  }

  for (const tool of tools) {
    add({ source: 'tools', role: 'system', tokens: estimateTokens(JSON.stringify(tool)), preview: tool.name }, tool)
  }
  for (const message of system) {
    const text = hasTexts ? { text: textsAndFiles(message).texts.join('\n') } : {}
    add({ source: 'instructions', ...explainMessage(message), ...text }, message)
  }
  const closed = isClosed ? rows : closeOpenCalls(rows)
  const isOfRun = runId === undefined ? trailingInput(closed) : (row: MessageRow) => row.runId === runId
  for (const row of closed) {
    const source = sourceOf(row, isOfRun(row))
    const hits = row.role === 'context' ? hitsIn(row) : []
    const recalled = hits.length > 0 ? { recalled: hits } : {}
    for (const message of modelMessagesOf(row, tags)) {
      add({ source, messageId: row.messageId, ...explainMessage(message), ...recalled }, message)
    }
  }

  return {
    parts,
    tokens: parts.reduce((sum, part) => sum + part.tokens, 0),
    bytes: parts.reduce((sum, part) => sum + part.bytes, 0),
    prefix: commonPrefix(previous, fingerprints),
    fingerprints,
  }
}

interface RecalledPassage {
  threadId: string
  hits?: Array<Omit<ExplainedHit, 'threadId'>>
}

/** The hits that a recall block stores in its metadata. */
function hitsIn({ content: { metadata } }: MessageRow): ExplainedHit[] {
  const passages = (Array.isArray(metadata?.recall) ? metadata.recall : []) as RecalledPassage[]
  return passages.flatMap(({ threadId, hits = [] }) => {
    return hits.map(({ messageId, score, reasons }) => ({ threadId, messageId, score, reasons }))
  })
}

function sourceOf(row: MessageRow, isOfRun: boolean): PromptSource {
  if (row.role === 'context') return 'context'
  if (row.role === 'signal' && !isUserAuthored(row)) return 'signal'
  if (!isOfRun) return 'history'
  return row.role === 'assistant' || row.role === 'tool' ? 'response' : 'input'
}

/** Without a run, the rows after the last response are the input. */
function trailingInput(rows: readonly MessageRow[]): (row: MessageRow) => boolean {
  const answered = rows.findLastIndex(({ role }) => role === 'assistant' || role === 'tool')
  const input = new Set(rows.slice(answered + 1))
  return row => input.has(row)
}

function explainMessage(message: LanguageModelV4Message): Pick<ExplainedPart, 'role' | 'tokens' | 'preview'> {
  const { texts, files } = textsAndFiles(message)
  const tokens = texts.reduce((sum, text) => sum + estimateTokens(text), 0) + files * FILE_TOKENS
  return { role: message.role, tokens, preview: previewOf(texts, files) }
}

function textsAndFiles({ content }: LanguageModelV4Message): { texts: string[]; files: number } {
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
  const text = texts.map(text => text.slice(0, 200)).join(' ').replace(/\s+/g, ' ').trim()
  const preview = files > 0 ? `${text} [${files} ${files === 1 ? 'file' : 'files'}]`.trim() : text
  return preview.length > 80 ? `${preview.slice(0, 79)}…` : preview
}

/** A hash of one message as a provider receives it, and its size in bytes. Equal for equal bytes; small enough to store. */
export type Fingerprint = `${string}:${number}`

const memo = new WeakMap<object, Fingerprint>()

/**
 * The fingerprint of a message of a prompt, or of a tool. Cache markers are left out: their positions change from step to step, and
 * providers don't count them as content. The order of keys matters only inside of payloads, where a model sees it.
 */
export function fingerprint(message: object): Fingerprint {
  let known = memo.get(message)
  if (!known) {
    known = hash(canonicalJSON(message))
    memo.set(message, known)
  }
  return known
}

/** What two prompts share from their beginning. */
export interface CommonPrefix {
  /** The number of equal messages, from the start. */
  messages: number
  bytes: number
  /** The share of the previous prompt that the next one begins with. 1: all of it, so that a provider's cache can serve it whole. */
  ratio: number
}

export function commonPrefix(previous: readonly Fingerprint[], next: readonly Fingerprint[]): CommonPrefix {
  let messages = 0
  while (messages < previous.length && previous[messages] === next[messages]) messages++
  const bytes = sumBytes(previous.slice(0, messages))
  const before = sumBytes(previous)
  return { messages, bytes, ratio: before === 0 ? 1 : bytes / before }
}

export function bytesOf(print: Fingerprint): number {
  return Number(print.slice(print.lastIndexOf(':') + 1))
}

function sumBytes(prints: readonly Fingerprint[]): number {
  return prints.reduce((sum, print) => sum + bytesOf(print), 0)
}

/** JSON with the keys of messages and parts sorted. */
export function canonicalJSON(value: unknown): string {
  if (value instanceof URL) return JSON.stringify(value.href)
  if (value instanceof Uint8Array) return JSON.stringify(toBase64(value))
  if (Array.isArray(value)) return `[${value.map(canonicalJSON).join(',')}]`
  if (!isObject(value)) return JSON.stringify(value) ?? 'null'
  const fields: string[] = []
  for (const key of Object.keys(value).sort()) {
    const json = field(value, key)
    if (json !== undefined) fields.push(`${JSON.stringify(key)}:${json}`)
  }
  return `{${fields.join(',')}}`
}

function field(owner: Record<string, unknown>, key: string): string | undefined {
  const value = owner[key]
  if (value === undefined) return undefined
  if (key === 'providerOptions') return optionsJSON(value)
  return isPayload(owner.type, key) ? JSON.stringify(value) : canonicalJSON(value)
}

function isPayload(type: unknown, key: string): boolean {
  if (type === 'tool-call') return key === 'input'
  if (type === 'json' || type === 'error-json') return key === 'value'
  return type === 'function' && key === 'inputSchema'
}

function optionsJSON(options: unknown): string | undefined {
  if (!isObject(options)) return undefined
  const unmarked = Object.entries(options).map(([provider, values]) => [provider, withoutMarkers(values)] as const)
  const present = unmarked.filter(([, values]) => Object.keys(values).length > 0)
  return present.length > 0 ? canonicalJSON(Object.fromEntries(present)) : undefined
}

function withoutMarkers(values: unknown): Record<string, unknown> {
  const entries = isObject(values) ? Object.entries(values) : []
  return Object.fromEntries(entries.filter(([key]) => !/^cache[-_]?(control|point)$/i.test(key)))
}

/** Two hashes of 32 bits and the length in UTF-8. Not cryptographic: it only has to distinguish prompts. */
function hash(text: string): Fingerprint {
  let high = 0xdeadbeef
  let low = 0x41c6ce57
  let bytes = text.length
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    high = Math.imul(high ^ unit, 0x9e3779b1)
    low = Math.imul(low ^ unit, 0x5f356495)
    // A surrogate counts two bytes: the pair is four.
    if (unit >= 0x80) bytes += unit >= 0x800 && (unit < 0xd800 || unit > 0xdfff) ? 2 : 1
  }
  high = Math.imul(high ^ (high >>> 16), 0x85ebca6b) ^ Math.imul(low ^ (low >>> 13), 0xc2b2ae35)
  low = Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^ Math.imul(high ^ (high >>> 13), 0xc2b2ae35)
  return `${hex(high)}${hex(low)}:${bytes}`
}

function hex(number: number): string {
  return (number >>> 0).toString(16).padStart(8, '0')
}
