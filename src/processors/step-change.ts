import type { LanguageModelV4ToolChoice } from '@ai-sdk/provider'
import type { Run } from '../run/loop/run.ts'
import type { ModelSettings } from '../run/model/model.ts'
import type { InputStepChange } from './processor.ts'
import { changeIn, described, systemIn } from './returned.ts'

const stepChanges = ['messages', 'messageList', 'systemMessages', 'model', 'toolChoice', 'activeTools', 'modelSettings', 'providerOptions']

const settings: Record<keyof ModelSettings, true> = {
  maxOutputTokens: true, temperature: true, topP: true, topK: true, presencePenalty: true, frequencyPenalty: true, stopSequences: true, seed: true,
  headers: true, reasoning: true, maxRetries: true,
}

/** What a step's call is made with. */
export type StepChange = Omit<InputStepChange, 'toolChoice'> & { toolChoice?: LanguageModelV4ToolChoice }

/** What `processInputStep` returned, if a step can be made of it. `active`: the tools that are offered unless it says otherwise. */
export function stepChangeIn(returned: unknown, run: Run, active: readonly string[] | undefined): StepChange | undefined {
  const change = changeIn<Record<keyof InputStepChange, unknown>>(returned, stepChanges)
  if (!change) return undefined
  const { systemMessages, model, activeTools, toolChoice, modelSettings, providerOptions } = change
  if (systemMessages !== undefined) systemIn(systemMessages)
  if (model !== undefined && !isModel(model)) throw wrong('model', model, 'the object of a model, as a provider package makes it')
  const names = run.tools.definitions.map(({ name }) => name)
  if (activeTools !== undefined) checkTools(activeTools, names)
  if (toolChoice !== undefined) checkChoice(toolChoice, (activeTools as string[] | undefined) ?? active ?? names)
  if (modelSettings !== undefined) checkSettings(modelSettings)
  if (providerOptions !== undefined && !(isObject(providerOptions) && Object.values(providerOptions).every(isObject))) {
    throw wrong('providerOptions', providerOptions, 'an object with one object for each provider')
  }
  return defined({ ...change, toolChoice: typeof toolChoice === 'string' ? { type: toolChoice } : toolChoice })
}

/** What is undefined is not said: it must not hide what another processor or the run said. */
function defined(change: object): StepChange {
  return Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined))
}

function checkTools(activeTools: unknown, names: readonly string[]): void {
  if (!Array.isArray(activeTools) || !activeTools.every((name) => typeof name === 'string')) throw wrong('activeTools', activeTools, "a list of tools' names")
  const stranger = activeTools.find((name) => !names.includes(name))
  if (stranger !== undefined) throw new Error(`it returned activeTools with '${stranger}', but ${known(names)}.`)
}

const choices: readonly unknown[] = ['auto', 'none', 'required']

function checkChoice(choice: unknown, offered: readonly string[]): void {
  if (isObject(choice) && choice.type === 'tool' && typeof choice.toolName === 'string') {
    if (!offered.includes(choice.toolName)) throw new Error(`it returned a toolChoice of '${choice.toolName}', but ${known(offered)}.`)
    return
  }
  if (choices.includes(choice) || (isObject(choice) && choices.includes(choice.type))) return
  throw wrong('toolChoice', choice, "'auto', 'none', 'required' or { type: 'tool', toolName: '…' }")
}

function checkSettings(given: unknown): void {
  if (!isObject(given)) throw wrong('modelSettings', given, 'an object')
  const stranger = Object.keys(given).find((name) => !Object.hasOwn(settings, name))
  if (stranger !== undefined) throw new Error(`it returned modelSettings with '${stranger}'. Known: ${Object.keys(settings).join(', ')}.`)
}

function isModel(value: unknown): boolean {
  return isObject(value) && typeof value.doStream === 'function' && typeof value.specificationVersion === 'string'
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function known(names: readonly string[]): string {
  return names.length === 0 ? 'no tools are offered' : `the tools are ${names.join(', ')}`
}

function wrong(field: string, value: unknown, wanted: string): Error {
  return new Error(`it returned ${described(value)} as ${field}. Return ${wanted}.`)
}
