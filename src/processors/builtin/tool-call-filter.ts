import { checkNames } from '../../base/arguments.ts'
import type { Message, MessagePart, ToolInvocationPart } from '../../message/message.ts'
import { stepsOf } from '../../message/content.ts'
import { checkCount, checkTexts } from './option-kinds.ts'
import type { Processor, ProcessInputStepArgs } from '../processor.ts'
import { rememberedIds } from './remembered.ts'

export interface ToolCallFilterOptions {
  /** The tools whose calls are left out. All, when absent. */
  exclude?: readonly string[]
  /** How many of those calls stay, the newest. Defaults to none. */
  keepLast?: number
}

/**
 * Leaves the tool calls of earlier runs, and what they returned, out of prompts: they are long and seldom needed again. Calls of the
 * current run stay, and history keeps everything.
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
    if (exclude !== undefined) checkTexts('ToolCallFilter', 'exclude', exclude, undefined, 0)
    this.#exclude = exclude && new Set(exclude)
    this.#keepLast = keepLast
  }

  processInputStep({ messages, messageList, runId }: ProcessInputStepArgs): Message[] | undefined {
    const remembered = rememberedIds(messages, messageList, runId)
    const calls = messages.flatMap(({ id, content }) => (remembered.has(id) ? content.parts.filter((part) => this.#concerns(part)) : []))
    const removed = new Set<MessagePart>(calls.slice(0, Math.max(0, calls.length - this.#keepLast)))
    if (removed.size === 0) return undefined
    return messages.flatMap((message) => {
      if (!message.content.parts.some((part) => removed.has(part))) return [message]
      const parts = withoutCalls(message.content.parts, removed)
      return parts.length === 0 ? [] : [{ ...message, content: { ...message.content, parts } }]
    })
  }

  #concerns(part: MessagePart): part is ToolInvocationPart {
    return part.type === 'tool-invocation' && (this.#exclude?.has(part.toolInvocation.toolName) ?? true)
  }
}

/** A step of which only thoughts are left goes too: providers refuse a thought that leads to nothing. */
function withoutCalls(parts: readonly MessagePart[], removed: ReadonlySet<MessagePart>): MessagePart[] {
  return stepsOf(parts).flatMap((step) => {
    const kept = step.parts.filter((part) => !removed.has(part))
    const isWhole = kept.length === step.parts.length
    if (!isWhole && kept.every((part) => part.type === 'reasoning' || (part.type === 'text' && part.text === ''))) return []
    return [step.start ?? ({ type: 'step-start' } as const), ...kept]
  })
}
