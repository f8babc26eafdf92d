import { checkNames } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import { isObject } from '../../base/json.ts'
import { ownAttachments } from '../../message/attachments.ts'
import { hasOutcome } from '../../message/content.ts'
import type { Message, ToolInvocation } from '../../message/message.ts'
import { isRecallBlock, type MessageRow } from '../../message/row.ts'
import { estimateTokens, FILE_TOKENS } from '../../prompt/tokens.ts'
import { createdSignal, rowToSignal } from '../../signals/conversions.ts'
import { lanePositionOf } from '../../signals/state.ts'
import { historyIds } from '../hook-messages.ts'
import type { Processor, ProcessInputStepArgs } from '../processor.ts'
import { checkFunction, checkOneOf } from './option-checks.ts'

/** The options of `TokenLimiter`. */
export interface TokenLimiterOptions {
  /** The maximum of tokens of instructions and messages together. Tool definitions are not counted. */
  limit: number
  /**
   * Recall blocks of earlier runs are left out first. If that is not enough, `truncate` leaves out history, oldest first, and `abort`
   * rejects. Defaults to `truncate`.
   */
  strategy?: 'truncate' | 'abort'
  /** Defaults to `estimateTokens`. Must return the same number for the same text. */
  countTokens?: (text: string) => number
}

const known: readonly string[] = ['limit', 'strategy', 'countTokens']

/**
 * Limits the tokens of prompts, with everything that the run adds to them. It leaves out the context of earlier runs first, such as their
 * recall blocks, then history from the oldest message on, without gaps, then what this run recalled. A prompt never begins with an
 * assistant message. A call and its result stay together. The input of the run and its output always stay, even where they alone exceed
 * the limit, as do instructions, working memory and the current state of lanes: of each, the newest snapshot and the deltas after it.
 *
 * Only prompts are shortened, not history. Each cut changes the beginning of the prompt and invalidates the provider's cache; the window
 * of memory moves less often.
 *
 * @example new Agent({ …, inputProcessors: [new TokenLimiter(8000)] })
 */
export class TokenLimiter implements Processor<'token-limiter'> {
  readonly id = 'token-limiter'
  readonly #limit: number
  readonly #strategy: 'truncate' | 'abort'
  readonly #count: (text: string) => number
  readonly #counted = new WeakMap<MessageRow, number>()

  constructor(options: number | TokenLimiterOptions) {
    if (typeof options !== 'number') checkNames('TokenLimiter', options, known)
    const { limit, strategy = 'truncate', countTokens = estimateTokens } = typeof options === 'number' ? { limit: options } : options
    if (!Number.isFinite(limit) || limit <= 0) {
      const message = `TokenLimiter needs a limit above 0, not ${limit}: new TokenLimiter(8000).`
      throw new HeedError('invalid_argument', message, { details: { limit } })
    }
    checkOneOf('TokenLimiter', 'strategy', ['truncate', 'abort'], strategy)
    checkFunction('TokenLimiter', 'countTokens', countTokens)
    this.#limit = limit
    this.#strategy = strategy
    this.#count = countTokens
  }

  processInputStep({ messages, messageList, systemMessages, runId, abort, logger }: ProcessInputStepArgs): Message[] | undefined {
    const inHistory = historyIds(messages, messageList, runId)
    const rows = messageList.rows()
    const costs = new Map<string, number>()
    let total = 0
    for (const { content } of [...systemMessages, ...messageList.systemMessages()]) total += this.#count(content)
    for (const row of rows) {
      const tokens = this.#tokensOf(row)
      total += tokens
      if (row.role !== 'context') costs.set(row.messageId, (costs.get(row.messageId) ?? 0) + tokens)
    }
    const leaveOut = (context: readonly MessageRow[]) => {
      for (const row of context) {
        if (total <= this.#limit) return
        total -= this.#tokensOf(row)
        messageList.removeByIds([row.id])
      }
    }
    leaveOut(staleContext(rows, runId))
    if (total <= this.#limit) return undefined
    if (this.#strategy === 'abort') {
      const metadata = { tokens: total, limit: this.#limit }
      abort(`The prompt takes about ${total} tokens, more than the limit of ${this.#limit}.`, { metadata })
    }

    const lanes = currentLaneMessages(rows)
    const history = messages.filter(({ id }) => inHistory.has(id) && !lanes.has(id))
    let start = 0
    for (; start < history.length && total > this.#limit; start++) total -= costs.get(history[start]?.id ?? '') ?? 0
    leaveOut(rows.filter((row) => row.runId === runId && isRecallBlock(row)))
    if (total > this.#limit) {
      logger.warn('a prompt without history is above the limit of its TokenLimiter', { runId, tokens: total, limit: this.#limit })
    }
    // An answer without its question misleads the model, and some providers reject a prompt that begins with one.
    while (history[start]?.role === 'assistant') start++
    const dropped = new Set(history.slice(0, start).map(({ id }) => id))
    return messages.filter(({ id }) => !dropped.has(id))
  }

  #tokensOf(row: MessageRow): number {
    let tokens = this.#counted.get(row)
    if (tokens === undefined) {
      tokens = this.#estimate(row)
      this.#counted.set(row, tokens)
    }
    return tokens
  }

  #estimate(row: MessageRow): number {
    if (row.role === 'signal') return this.#signalTokens(row)
    let tokens = ownAttachments(row.content).length * FILE_TOKENS
    for (const part of row.content.parts) {
      if (part.type === 'text') tokens += this.#count(part.text)
      else if (part.type === 'reasoning') tokens += this.#count(part.reasoning)
      else if (part.type === 'file') tokens += FILE_TOKENS
      else if (part.type === 'tool-invocation') tokens += this.#callTokens(part.toolInvocation, row.role === 'tool')
    }
    return row.content.parts.length === 0 && row.content.content ? tokens + this.#count(row.content.content) : tokens
  }

  /** The tokens of a signal as the model receives it, with its tag. */
  #signalTokens(row: MessageRow): number {
    const { content } = createdSignal(rowToSignal(row)).toLLMMessage()
    return content.reduce((sum, part) => sum + (part.type === 'text' ? this.#count(part.text) : FILE_TOKENS), 0)
  }

  #callTokens(call: ToolInvocation, isResult: boolean): number {
    const tokens = isResult ? 0 : this.#count(`${call.toolName} ${JSON.stringify(call.args ?? {})}`)
    return hasOutcome(call) ? tokens + this.#resultTokens(call) : tokens
  }

  #resultTokens({ state, modelOutput, result, errorText, approval }: ToolInvocation): number {
    if (state === 'output-error') return this.#count(errorText ?? '')
    if (state === 'output-denied') return this.#count(approval?.reason ?? '')
    if (modelOutput?.type === 'content') {
      return modelOutput.value.reduce((sum, part) => sum + (part.type === 'text' ? this.#count(part.text) : FILE_TOKENS), 0)
    }
    return this.#count(JSON.stringify(modelOutput && 'value' in modelOutput ? modelOutput.value : (result ?? null)))
  }
}

/**
 * The context of earlier runs that later rows replace or that was for their input alone, oldest first: all but the states of lanes, and
 * working memory since its newest snapshot.
 */
function staleContext(rows: readonly MessageRow[], runId: string): MessageRow[] {
  const context = rows.filter(({ role }) => role === 'context')
  const whole = context.findLastIndex(({ content }) => workingMemoryMode(content) === 'snapshot')
  return context.filter((row, index) => {
    if (row.runId === runId || laneVersionOf(row)) return false
    return workingMemoryMode(row.content) === undefined || index < whole
  })
}

function workingMemoryMode({ metadata }: MessageRow['content']): unknown {
  const shown = metadata?.workingMemory
  return isObject(shown) ? shown.mode : undefined
}

interface LaneVersion {
  version: number
  isSnapshot: boolean
  /** Absent for a repeated state, a context row. */
  id?: string
}

/** The ids of the messages with the current state of lanes: of each, the newest snapshot and the deltas after it. */
function currentLaneMessages(rows: readonly MessageRow[]): ReadonlySet<string> {
  const lanes = new Map<string, LaneVersion[]>()
  for (const row of rows) {
    const [lane, found] = laneVersionOf(row) ?? []
    if (lane === undefined || !found) continue
    const versions = lanes.get(lane)
    if (versions) versions.push(found)
    else lanes.set(lane, [found])
  }
  const current = new Set<string>()
  for (const versions of lanes.values()) {
    const since = versions.reduce((newest, { version, isSnapshot }) => (isSnapshot && version > newest ? version : newest), 0)
    for (const { id, version } of versions) if (id !== undefined && version >= since) current.add(id)
  }
  return current
}

function laneVersionOf(row: MessageRow): [lane: string, version: LaneVersion] | undefined {
  if (row.role === 'context') {
    const { lane, version } = row.content.metadata ?? {}
    // A repeated state replaces the snapshot and all deltas up to its version.
    return typeof lane === 'string' && typeof version === 'number' ? [lane, { version: version + 0.5, isSnapshot: true }] : undefined
  }
  const position = lanePositionOf(row)
  return position && [position.id, { version: position.version, isSnapshot: position.mode === 'snapshot', id: row.messageId }]
}
