import type { LanguageModelV4ToolChoice } from '@ai-sdk/provider'
import { isObject } from '../base/json.ts'
import type { Run } from '../run/loop/run.ts'
import type { ModelSettings } from '../run/model/model.ts'
import { describeResult, readChange, readSystemMessages } from './hook-results.ts'
import type { InputStepChange } from './processor.ts'

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
