import type { LanguageModelV4ToolChoice } from '@ai-sdk/provider'
import { describe } from '../base/errors.ts'
import { isObject, isPlainObject } from '../base/json.ts'
import { MessageList } from '../message/list/list.ts'
import { textOf } from '../message/content.ts'
import type { Message, MessageContent } from '../message/message.ts'
import { systemMessages, type SystemMessage } from '../prompt/system.ts'
import type { Run } from '../run/loop/run.ts'
import type { ModelSettings } from '../run/model/model.ts'
import type { InputStepChange } from './processor.ts'

/*
 * Validation of the values that hooks return. The messages of these errors follow "Processor 'x' failed in processInput: ".
 */

/** The object that a hook returned in place of messages; undefined when it returned messages or nothing. */
export function readChange<T extends object>(returned: unknown, keys: readonly string[]): T | undefined {
  if (returned === undefined || returned instanceof MessageList || Array.isArray(returned)) return undefined
  return readObject(returned, keys, `messages, an object with ${keys.join(' or ')}, or nothing`)
}

/** The object that a hook returned, with at least one of `keys` and no other, or empty; undefined when it returned nothing. */
export function readObject<T extends object>(
  returned: unknown, keys: readonly string[], expected = `an object with ${keys.join(' or ')}, or nothing`,
): T | undefined {
  if (returned === undefined) return undefined
  const names = isObject(returned) ? Object.keys(returned) : []
  if (names.length === 0 && isPlainObject(returned)) return returned as T
  if (!names.some((name) => keys.includes(name))) throw new Error(`it returned ${describeResult(returned)}. Return ${expected}.`)
  const unknown = names.find((name) => !keys.includes(name))
  if (unknown !== undefined) throw new Error(`it returned an object with '${unknown}', which it can't change. Return ${expected}.`)
  return returned as T
}

/** Replaces messages of the list by those that a hook returned. `passed`: the messages that it received. */
export function applyMessages(
  list: MessageList, passed: readonly Message[], returned: unknown, source: 'input' | 'response' | 'all',
): void {
  if (returned instanceof MessageList) {
    throw new Error('it returned a new MessageList. Change the list that it received, or return an array of messages.')
  }
  if (!Array.isArray(returned)) throw new Error(`it returned ${describeResult(returned)}. Return messages or nothing.`)
  const known = new Set<unknown>(passed)
  for (const message of returned as unknown[]) {
    if (!known.has(message)) checkMessage(message, passed.find(({ id }) => id === (message as Partial<Message> | null)?.id)?.content)
  }
  const ids = new Set<string>()
  for (const { id } of returned as Message[]) {
    if (ids.has(id)) throw new Error(`it returned message '${id}' twice.`)
    ids.add(id)
  }
  list.replace(returned as Message[], source)
}

export function readSystemMessages(returned: unknown): SystemMessage[] {
  if (!Array.isArray(returned)) throw new Error(`it returned ${describeResult(returned)} as systemMessages. Return a list of them.`)
  // Validates: throws for an invalid system message.
  systemMessages(returned as SystemMessage[])
  return returned as SystemMessage[]
}

/** Rejects a message that a store would reject in the middle of a step. `before`: the content that the hook received, if it did. */
export function checkMessage(message: unknown, before?: MessageContent): void {
  if (!isMessage(message)) throw new Error(`it returned ${describeMessage(message)} among the messages.`)
  const where = `in message '${message.id}'`
  const { parts, content } = message.content
  if (content && parts.length > 0 && content !== before?.content && content !== textOf(message)) {
    const remedy = 'Set the text of a text part in content.parts.'
    throw new Error(`it set content.content ${where}, which no model reads where there are parts. ${remedy}`)
  }
  for (const part of message.content.parts as unknown[]) {
    if (!isObject(part) || typeof part.type !== 'string') throw new Error(`it returned ${describeResult(part)} among the parts ${where}.`)
    const { type, text, reasoning } = part
    if (type === 'text' && typeof text !== 'string') throw new Error(`it returned a text part without text ${where}.`)
    if (type === 'reasoning' && typeof reasoning !== 'string') throw new Error(`it returned a reasoning part without reasoning ${where}.`)
  }
  checkJSON(message.content, where)
}

/** Returns the value, or throws when it can't be stored. */
export function checkJSON<T>(value: T, where: string): T {
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch (error) {
    throw new Error(`it returned a value that is not JSON ${where}: ${describe(error)}`, { cause: error })
  }
  if (text === undefined) throw new Error(`it returned ${describeResult(value)} ${where}. Return JSON.`)
  return value
}

function isMessage(value: unknown): value is Message {
  const { id, content } = (value ?? {}) as Partial<Message>
  return typeof id === 'string' && typeof content === 'object' && content !== null && Array.isArray(content.parts)
}

/** What is not a message, and what to do where only its content is wrong: most programs that set it mean its text. */
function describeMessage(value: unknown): string {
  if (!isObject(value) || typeof value.id !== 'string') return describeResult(value)
  const { id, content } = value
  const form = "{ format: 2, parts: [{ type: 'text', text: '…' }] }"
  if (!isObject(content)) return `message '${id}' with ${describeResult(content)} as its content in place of ${form}`
  return `message '${id}' with ${describeResult(content.parts)} as its content.parts in place of a list of parts`
}

/** The result of a hook in an error message: unlike `describeValue`, with the keys of an object. */
export function describeResult(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? `an object with ${Object.keys(value).join(', ') || 'nothing in it'}` : `a ${typeof value}`
}

const stepChanges = ['messages', 'messageList', 'systemMessages', 'model', 'toolChoice', 'activeTools', 'modelSettings', 'providerOptions']

const settings: Record<keyof ModelSettings, true> = {
  maxOutputTokens: true, temperature: true, topP: true, topK: true, presencePenalty: true, frequencyPenalty: true, stopSequences: true,
  seed: true, headers: true, reasoning: true, maxRetries: true,
}

/** The options of a step's model call that processors have changed. */
export type StepChange = Omit<InputStepChange, 'toolChoice'> & { toolChoice?: LanguageModelV4ToolChoice }

/** Validates the result of `processInputStep`. `active`: the tools that the step offers unless the result changes them. */
export function readStepChange(returned: unknown, run: Run, active: readonly string[] | undefined): StepChange | undefined {
  const change = readChange<Record<keyof InputStepChange, unknown>>(returned, stepChanges)
  if (!change) return undefined
  const { systemMessages, model, activeTools, toolChoice, modelSettings, providerOptions } = change
  if (systemMessages !== undefined) readSystemMessages(systemMessages)
  if (model !== undefined && !isModel(model)) throw invalidField('model', model, 'a model object of a provider package')
  const names = run.tools.definitions.map(({ name }) => name)
  if (activeTools !== undefined) checkTools(activeTools, names)
  if (toolChoice !== undefined) checkChoice(toolChoice, (activeTools as string[] | undefined) ?? active ?? names)
  if (modelSettings !== undefined) checkSettings(modelSettings)
  if (providerOptions !== undefined && !(isObject(providerOptions) && Object.values(providerOptions).every(isObject))) {
    throw invalidField('providerOptions', providerOptions, 'an object with one object for each provider')
  }
  return defined({ ...change, toolChoice: typeof toolChoice === 'string' ? { type: toolChoice } : toolChoice })
}

/** Without undefined fields, which would hide the values of other processors and of the run. */
function defined(change: object): StepChange {
  return Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined))
}

function checkTools(activeTools: unknown, names: readonly string[]): void {
  if (!Array.isArray(activeTools) || !activeTools.every((name) => typeof name === 'string')) {
    throw invalidField('activeTools', activeTools, "a list of tools' names")
  }
  const unknown = activeTools.find((name) => !names.includes(name))
  if (unknown !== undefined) throw new Error(`it returned activeTools with '${unknown}', but ${knownTools(names)}.`)
}

const choices: readonly unknown[] = ['auto', 'none', 'required']

function checkChoice(choice: unknown, offered: readonly string[]): void {
  if (isObject(choice) && choice.type === 'tool' && typeof choice.toolName === 'string') {
    if (!offered.includes(choice.toolName)) throw new Error(`it returned a toolChoice of '${choice.toolName}', but ${knownTools(offered)}.`)
    return
  }
  if (choices.includes(choice) || (isObject(choice) && choices.includes(choice.type))) return
  throw invalidField('toolChoice', choice, "'auto', 'none', 'required' or { type: 'tool', toolName: '…' }")
}

function checkSettings(modelSettings: unknown): void {
  if (!isObject(modelSettings)) throw invalidField('modelSettings', modelSettings, 'an object')
  const unknown = Object.keys(modelSettings).find((name) => !Object.hasOwn(settings, name))
  if (unknown !== undefined) throw new Error(`it returned modelSettings with '${unknown}'. Known: ${Object.keys(settings).join(', ')}.`)
}

function isModel(value: unknown): boolean {
  return isObject(value) && typeof value.doStream === 'function' && typeof value.specificationVersion === 'string'
}

function knownTools(names: readonly string[]): string {
  return names.length === 0 ? 'no tools are offered' : `the tools are ${names.join(', ')}`
}

function invalidField(field: string, value: unknown, expected: string): Error {
  return new Error(`it returned ${describeResult(value)} as ${field}. Return ${expected}.`)
}
