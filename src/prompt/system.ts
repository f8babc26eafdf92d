import type { LanguageModelV4Message } from '@ai-sdk/provider'
import { HeedError } from '../base/errors.ts'
import { isObject } from '../base/json.ts'
import type { ProviderOptions } from '../message/message.ts'
import { isProviderOptions } from '../message/read/raw.ts'

/** Instructions, with options of the provider. */
export interface SystemMessage {
  role: 'system'
  content: string
  providerOptions?: ProviderOptions
}

/** A system message whose `role` has the type `string`, as in a variable without annotation. Any other role is rejected. */
export interface WrittenSystemMessage extends Omit<SystemMessage, 'role'> {
  role: string
}

/** Every form in which an agent's instructions may be written. */
export type SystemMessageInput = string | WrittenSystemMessage | ReadonlyArray<string | WrittenSystemMessage>

/** Instructions, as a model receives them. */
export type SystemModelMessage = Extract<LanguageModelV4Message, { role: 'system' }>

/** Instructions as a model receives them, one message for each text that is not empty. Rejects with `invalid_agent`. */
export function systemMessages(instructions: SystemMessageInput): SystemModelMessage[] {
  if (!Array.isArray(instructions)) return systemMessage(instructions, 'instructions')
  return instructions.flatMap((item: unknown, index) => systemMessage(item, `instructions[${index}]`))
}

function systemMessage(item: unknown, field: string): SystemModelMessage[] {
  if (typeof item === 'string') return item === '' ? [] : [{ role: 'system', content: item }]
  if (Array.isArray(item)) throw invalidInstructions(field, 'is a list inside a list')
  if (!isObject(item)) throw invalidInstructions(field, `is ${item === null ? 'null' : typeof item}`)
  if (item.role !== 'system') throw invalidInstructions(field, `has the role ${JSON.stringify(item.role)}`)
  if (typeof item.content !== 'string') throw invalidInstructions(field, 'has content that is not a text')
  const unknown = Object.keys(item).find((name) => !messageNames.has(name) && item[name] !== undefined)
  if (unknown !== undefined) throw invalidInstructions(field, `has '${unknown}', which is none of ${[...messageNames].join(', ')}`)
  const options = item.providerOptions ?? item.experimental_providerMetadata
  if (options !== undefined && !isProviderOptions(options)) {
    throw invalidInstructions(field, 'has providerOptions that are not an object for each provider')
  }
  return item.content === '' ? [] : [{ role: 'system', content: item.content, ...(options && { providerOptions: options }) }]
}

const messageNames: ReadonlySet<string> = new Set(['role', 'content', 'providerOptions', 'experimental_providerMetadata'])

/** Options that providers read from a system message. Every other option belongs to the call. */
const messageOption = /^cache[_-]?(control|point)$/i
/** Their provider writes all options of a message into the message. */
const ownedByMessage: ReadonlySet<string> = new Set(['openaiCompatible', 'openai-compatible'])

/**
 * Separates the provider options of instructions: a model applies those of a message to that message only, so that settings such as
 * `openai.reasoningEffort` have to be options of the call. Of several messages, the later one counts.
 */
export function splitProviderOptions(messages: readonly SystemMessage[]): { system: SystemMessage[]; call: ProviderOptions | undefined } {
  const call: ProviderOptions = {}
  const system = messages.map((message) => {
    if (!message.providerOptions) return message
    const kept: ProviderOptions = {}
    for (const [provider, options] of Object.entries(message.providerOptions)) {
      for (const [name, value] of Object.entries(options)) {
        const to = ownedByMessage.has(provider) || messageOption.test(name) ? kept : call
        to[provider] = { ...to[provider], [name]: value }
      }
    }
    const { providerOptions: _, ...rest } = message
    return Object.keys(kept).length === 0 ? rest : { ...rest, providerOptions: kept }
  })
  return { system, call: Object.keys(call).length === 0 ? undefined : call }
}

function invalidInstructions(field: string, reason: string): HeedError {
  const message = `${field} ${reason}. Write a text, { role: 'system', content: 'text' }, or a list of these.`
  return new HeedError('invalid_agent', message, { details: { field } })
}
