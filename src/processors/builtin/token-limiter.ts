import { checkNames } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import { ownAttachments } from '../../message/attachments.ts'
import { hasOutcome } from '../../message/content.ts'
import type { Message, ToolInvocation } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import { estimateTokens, FILE_TOKENS } from '../../prompt/tokens.ts'
import { createdSignal } from '../../signals/created.ts'
import { rowToSignal } from '../../signals/row.ts'
import { checkFunction, checkWord } from './option-kinds.ts'
import { presentLanes } from './present-lanes.ts'
import type { Processor, ProcessInputStepArgs } from '../processor.ts'
import { rememberedIds } from './remembered.ts'

export interface TokenLimiterOptions {
  /** How many tokens instructions and messages may take together. Definitions of tools are not counted. */
  limit: number
  /** `truncate`: leave out history, oldest first. `abort`: refuse. Defaults to `truncate`. */
  strategy?: 'truncate' | 'abort'
  /** Defaults to `estimateTokens`. Must give the same number for the same text. */
  countTokens?: (text: string) => number
}

const known: readonly string[] = ['limit', 'strategy', 'countTokens']

/**
 * Keeps prompts below a number of tokens. History goes first, from its oldest message on and without gaps; what is left begins with
 * something other than an answer. A call is never parted from its result. What the run was asked, and all it said since, always
 * stays, even where that alone is more than the limit. So does what lanes say now, like instructions: of each, the newest snapshot and every change
 * after it.
 *
 * Only prompts are shortened: history stays as it is. Each cut changes where the prompt begins and so costs the provider's cache;
 * memory's own window moves more rarely.
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
    checkWord('TokenLimiter', 'strategy', ['truncate', 'abort'], strategy)
    checkFunction('TokenLimiter', 'countTokens', countTokens)
    this.#limit = limit
    this.#strategy = strategy
    this.#count = countTokens
  }

  processInputStep({ messages, messageList, systemMessages, runId, abort, logger }: ProcessInputStepArgs): Message[] | undefined {
    const remembered = rememberedIds(messages, messageList, runId)
    const costs = new Map<string, number>()
    let total = 0
    for (const { content } of [...systemMessages, ...messageList.systemMessages()]) total += this.#count(content)
    for (const row of messageList.rows()) {
      const tokens = this.#tokensOf(row)
      total += tokens
      if (row.role !== 'context') costs.set(row.messageId, (costs.get(row.messageId) ?? 0) + tokens)
    }
    if (total <= this.#limit) return undefined
    if (this.#strategy === 'abort') {
      const metadata = { tokens: total, limit: this.#limit }
      abort(`The prompt takes about ${total} tokens, more than the ${this.#limit} that are allowed.`, { metadata })
    }

    const lanes = presentLanes(messageList.rows())
    const history = messages.filter(({ id }) => remembered.has(id) && !lanes.has(id))
    let start = 0
    for (; start < history.length && total > this.#limit; start++) total -= costs.get(history[start]?.id ?? '') ?? 0
    if (total > this.#limit) {
      logger.warn('a prompt is above the limit of its TokenLimiter without any history', { runId, tokens: total, limit: this.#limit })
    }
    // An answer without its question misleads, and some providers refuse a prompt that begins with one.
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

  /** As the model sees it: inside its tag. */
  #signalTokens(row: MessageRow): number {
    const { content } = createdSignal(rowToSignal(row)).toLLMMessage()
    return content.reduce((sum, part) => sum + (part.type === 'text' ? this.#count(part.text) : FILE_TOKENS), 0)
  }

  #callTokens(call: ToolInvocation, isResult: boolean): number {
    const asked = isResult ? 0 : this.#count(`${call.toolName} ${JSON.stringify(call.args ?? {})}`)
    return hasOutcome(call) ? asked + this.#resultTokens(call) : asked
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
