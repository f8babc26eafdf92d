import { checkNames } from '../../base/arguments.ts'
import { stepsOf } from '../../message/content.ts'
import type { Message, MessagePart, ToolInvocationPart } from '../../message/message.ts'
import { historyIds } from '../hook-messages.ts'
import type { Processor, ProcessInputStepArgs } from '../processor.ts'
import { checkCount, checkTextList } from './option-checks.ts'

/** The options of `ToolCallFilter`. */
export interface ToolCallFilterOptions {
  /** The tools whose calls are left out. Defaults to all. */
  exclude?: readonly string[]
  /** How many of those calls stay, newest first. Defaults to 0. */
  keepLast?: number
}

/**
 * Leaves tool calls of earlier runs and their results out of prompts: they are long and seldom needed again. Calls of the current run
 * stay, and history is not changed.
 *
 * @example new ToolCallFilter({ exclude: ['read_file'], keepLast: 2 })
 */
export class ToolCallFilter implements Processor<'tool-call-filter'> {
  readonly id = 'tool-call-filter'
  readonly #exclude: ReadonlySet<string> | undefined
  readonly #keepLast: number

  constructor(options: ToolCallFilterOptions = {}) {
    checkNames('ToolCallFilter', options, ['exclude', 'keepLast'])
    const { exclude, keepLast = 0 } = options
    checkCount('ToolCallFilter', 'keepLast', keepLast, 0)
    if (exclude !== undefined) checkTextList('ToolCallFilter', 'exclude', exclude, undefined, 0)
    this.#exclude = exclude && new Set(exclude)
    this.#keepLast = keepLast
  }

  processInputStep({ messages, messageList, runId }: ProcessInputStepArgs): Message[] | undefined {
    const history = historyIds(messages, messageList, runId)
    const calls = messages.flatMap(({ id, content }) => (history.has(id) ? content.parts.filter((part) => this.#isExcluded(part)) : []))
    const removed = new Set<MessagePart>(calls.slice(0, Math.max(0, calls.length - this.#keepLast)))
    if (removed.size === 0) return undefined
    return messages.flatMap((message) => {
      if (!message.content.parts.some((part) => removed.has(part))) return [message]
      const parts = withoutCalls(message.content.parts, removed)
      return parts.length === 0 ? [] : [{ ...message, content: { ...message.content, parts } }]
    })
  }

  #isExcluded(part: MessagePart): part is ToolInvocationPart {
    return part.type === 'tool-invocation' && (this.#exclude?.has(part.toolInvocation.toolName) ?? true)
  }
}

/** Removes a step of which only reasoning is left: providers reject reasoning without output. */
function withoutCalls(parts: readonly MessagePart[], removed: ReadonlySet<MessagePart>): MessagePart[] {
  return stepsOf(parts).flatMap((step) => {
    const kept = step.parts.filter((part) => !removed.has(part))
    const isWhole = kept.length === step.parts.length
    if (!isWhole && kept.every((part) => part.type === 'reasoning' || (part.type === 'text' && part.text === ''))) return []
    return [step.start ?? ({ type: 'step-start' } as const), ...kept]
  })
}
