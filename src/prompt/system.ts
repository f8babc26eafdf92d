import { isObject } from '../base/json.ts'
import type { LanguageModelV4Message } from '@ai-sdk/provider'
import { HeedError } from '../base/errors.ts'
import { isProviderOptions } from '../message/read/raw.ts'
import type { ProviderOptions } from '../message/message.ts'

export interface SystemMessage {
  role: 'system'
  content: string
  providerOptions?: ProviderOptions
}

/** The same as a program's variable has it, where the compiler no longer knows the role. Another role is refused when it is read. */
export interface WrittenSystemMessage extends Omit<SystemMessage, 'role'> {
  role: string
}

/** Every form in which an agent's instructions may be written. */
export type SystemMessageInput = string | WrittenSystemMessage | ReadonlyArray<string | WrittenSystemMessage>

export type SystemModelMessage = Extract<LanguageModelV4Message, { role: 'system' }>

/** Instructions as a model receives them, one message for each; none for an empty text. Refuses with `invalid_agent`. */
export function systemMessages(instructions: SystemMessageInput): SystemModelMessage[] {
  if (!Array.isArray(instructions)) return systemMessage(instructions, 'instructions')
  return instructions.flatMap((item: unknown, index) => systemMessage(item, `instructions[${index}]`))
}

function systemMessage(item: unknown, field: string): SystemModelMessage[] {
  if (typeof item === 'string') return item === '' ? [] : [{ role: 'system', content: item }]
  if (Array.isArray(item)) throw invalid(field, 'is a list inside a list')
  if (!isObject(item)) throw invalid(field, `is ${item === null ? 'null' : typeof item}`)
  if (item.role !== 'system') throw invalid(field, `has the role ${JSON.stringify(item.role)}`)
  if (typeof item.content !== 'string') throw invalid(field, 'has content that is not a text')
  const options = item.providerOptions ?? item.experimental_providerMetadata
  if (options !== undefined && !isProviderOptions(options)) throw invalid(field, 'has providerOptions that are no objects')
  return item.content === '' ? [] : [{ role: 'system', content: item.content, ...(options && { providerOptions: options }) }]
}

function invalid(field: string, why: string): HeedError {
  const message = `${field} ${why}. Write a text, { role: 'system', content: 'text' }, or a list of these.`
  return new HeedError('invalid_agent', message, { details: { field } })
}
