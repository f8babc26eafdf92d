import { checkNames, checkWhole, refused } from '../base/arguments.ts'
import type { Message, MessagePart } from '../message/message.ts'
import type { ScorerRun } from './contract.ts'
import { isAgentInput, isMessages } from './messages.ts'

/** What a scorer does not need of a run of an agent. */
export interface FilterRunOptions {
  /** Only parts of these types, such as `text` and `tool-invocation`. Messages that have none of them are left out. */
  partTypes?: readonly MessagePart['type'][]
  /** Only calls of these tools. */
  toolNames?: readonly string[]
  /** At most the newest so many messages of history. */
  maxRememberedMessages?: number
  /** At most the last so many messages of the answer. */
  maxOutputMessages?: number
  /** Without the instructions of the agent. Defaults to false. */
  dropSystemMessages?: boolean
  /** Without the request context. Defaults to false. */
  dropRequestContext?: boolean
}

const names = ['partTypes', 'toolNames', 'maxRememberedMessages', 'maxOutputMessages', 'dropSystemMessages', 'dropRequestContext']

/** For `prepareRun` of a scorer: leaves out what it does not need, so that a judge reads less. Values that are no messages stay. */
export function filterRun(options: FilterRunOptions): <Run extends ScorerRun>(run: Run) => Run {
  checkNames('filterRun()', options, names)
  const { partTypes, toolNames, maxRememberedMessages, maxOutputMessages, dropSystemMessages = false, dropRequestContext = false } = options
  for (const [name, value] of Object.entries({ partTypes, toolNames }))
    if (value !== undefined && !(Array.isArray(value) && value.every((one) => typeof one === 'string')))
      throw refused(name, 'a list of texts')
  for (const [name, value] of Object.entries({ maxRememberedMessages, maxOutputMessages })) if (value !== undefined) checkWhole(name, value)
  for (const [name, value] of Object.entries({ dropSystemMessages, dropRequestContext }))
    if (typeof value !== 'boolean') throw refused(name, 'true or false')
  const parts = (part: MessagePart) => (partTypes === undefined || partTypes.includes(part.type))
    && (part.type !== 'tool-invocation' || toolNames === undefined || toolNames.includes(part.toolInvocation.toolName))
  const kept = (messages: readonly Message[], most?: number) =>
    last(partTypes || toolNames ? withParts(messages, parts) : [...messages], most)
  return (run) => {
    const { input, output, requestContext, ...rest } = run
    return {
      ...rest,
      input: isAgentInput(input) ? {
        inputMessages: kept(input.inputMessages), rememberedMessages: kept(input.rememberedMessages, maxRememberedMessages),
        systemMessages: dropSystemMessages ? [] : input.systemMessages,
      } : input,
      output: isMessages(output) ? kept(output, maxOutputMessages) : output,
      ...(requestContext === undefined || dropRequestContext ? {} : { requestContext }),
    } as typeof run
  }
}

function withParts(messages: readonly Message[], keeps: (part: MessagePart) => boolean): Message[] {
  return messages.flatMap((message) => {
    const parts = message.content.parts.filter(keeps)
    return parts.length === 0 ? [] : [{ ...message, content: { ...message.content, parts } }]
  })
}

function last(messages: Message[], most: number | undefined): Message[] {
  return most === undefined ? messages : messages.slice(Math.max(0, messages.length - most))
}
