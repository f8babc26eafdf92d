import type { LanguageModelV2, LanguageModelV3, LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { HeedError } from '../../base/errors.ts'
import { isObject } from '../../base/json.ts'
import type { ProviderOptions } from '../../message/message.ts'
import { loadModel, parseModelId } from './model-router.ts'

/** A model object of the AI SDK's provider interface, in any supported version. */
export type LanguageModel = LanguageModelV4 | LanguageModelV3 | LanguageModelV2

/**
 * `'openai/gpt-5.5'`: the provider's package is loaded when the model is first used. Any string, so that a variable of the environment can
 * be passed; one that is not `provider/model` is rejected with `unknown_provider`.
 */
export type ModelId = `${string}/${string}` | (string & {})

export type SingleModel = LanguageModel | ModelId

/** One of several models to try in order, with options of its own, which take precedence over those of the call and of the agent. */
export interface ModelCandidate {
  model: SingleModel
  /** Retries of this model before the next is tried. Defaults to `modelSettings.maxRetries` of the entry, then of the call. */
  maxRetries?: number
  modelSettings?: ModelSettings
  /** Merged with those of the call, option by option. */
  providerOptions?: ProviderOptions
  /** Headers of the requests to this model, besides those of `modelSettings`. */
  headers?: Record<string, string>
}

/** A model, by name or as an object; a list is a chain of fallbacks. */
export type ModelConfig = SingleModel | Array<SingleModel | ModelCandidate>

export const defaultMaxRetries = 2

/** Settings of a model call. */
export interface ModelSettings
  extends Pick<
    LanguageModelV4CallOptions,
    | 'maxOutputTokens' | 'temperature' | 'topP' | 'topK' | 'presencePenalty' | 'frequencyPenalty'
    | 'stopSequences' | 'seed' | 'headers' | 'reasoning'
  > {
  /** Retries of a failed call that is retryable, per model. Defaults to 2. */
  maxRetries?: number
}

/** The names of all model settings. */
export const modelSettingNames: Record<keyof ModelSettings, true> = {
  maxOutputTokens: true, temperature: true, topP: true, topK: true, presencePenalty: true, frequencyPenalty: true, stopSequences: true,
  seed: true, headers: true, reasoning: true, maxRetries: true,
}

const settingsOfText: ReadonlySet<string> = new Set(['stopSequences', 'headers', 'reasoning'])

/** Whether provider options are an object for each provider: an option that stands alone reaches none. */
export function hasOptionsByProvider(options: unknown): boolean {
  return isObject(options) && Object.values(options).every((one) => one === undefined || isObject(one))
}

/** What an invalid model setting must be, by its name; undefined where all are valid. */
export function invalidSetting(settings: object): { name: string; wanted: string } | undefined {
  for (const [name, value] of Object.entries(settings) as Array<[string, unknown]>) {
    if (value === undefined || value === null) continue
    if (!settingsOfText.has(name) && !Number.isFinite(value)) return { name, wanted: 'a number' }
    if (name === 'maxRetries' && !(Number.isInteger(value) && Number(value) >= 0)) return { name, wanted: 'a whole number of at least 0' }
    if (name === 'reasoning' && (typeof value !== 'string' || value === '')) return { name, wanted: 'a text that is not empty' }
    if (name === 'headers' && !(isObject(value) && Object.values(value).every((one) => one === undefined || typeof one === 'string'))) {
      return { name, wanted: 'an object of texts' }
    }
    if (name === 'stopSequences' && !(Array.isArray(value) && value.every((one) => typeof one === 'string'))) {
      return { name, wanted: 'a list of texts' }
    }
  }
  return undefined
}

export interface ResolvedModel {
  /** A function loads it on first use: a fallback model may be unavailable until it is needed. */
  model: LanguageModel | (() => Promise<LanguageModel>)
  maxRetries: number | undefined
  /** The options of its entry in the list. */
  own?: Pick<LanguageModelV4CallOptions, keyof Omit<ModelSettings, 'maxRetries'> | 'providerOptions'>
}

/** Throws for a value that can't be a model. Loads nothing. */
export function checkModel(config: unknown, agent: string): void {
  if (typeof config === 'function') return
  const list = Array.isArray(config) ? config : [config]
  if (list.length === 0) throw new HeedError('model_missing', `Agent '${agent}' has an empty list of models. Name at least one.`)
  for (const [index, entry] of list.entries()) {
    const model: unknown = isCandidate(entry) ? entry.model : entry
    if (isCandidate(entry)) checkCandidate(entry, `model[${index}] of agent '${agent}'`)
    if (typeof model === 'string') parseModelId(model)
    else if (!isLanguageModel(model)) throw unsupported(model, agent)
  }
}

/**
 * The models in the order in which they are tried. If a string names the first, it is loaded here; the others are loaded when they
 * are tried, so that a missing API key of a fallback does not fail the first.
 */
export async function resolveModels(config: ModelConfig, agent: string): Promise<ResolvedModel[]> {
  checkModel(config, agent)
  if (isLanguageModel(config)) return [{ model: config, maxRetries: undefined }]
  const list = Array.isArray(config) ? config : [config]
  return Promise.all(
    list.map(async (entry, index) => {
      const { model, ...options }: ModelCandidate = isCandidate(entry) ? entry : { model: entry }
      const resolved = ownOptions(options)
      if (typeof model !== 'string') return { model, ...resolved }
      const load = () => loadChecked(model, agent)
      return { model: index === 0 ? await load() : once(load), ...resolved }
    }),
  )
}

function ownOptions({ maxRetries, modelSettings = {}, providerOptions, headers }: Omit<ModelCandidate, 'model'>) {
  const { maxRetries: ofSettings, ...settings } = modelSettings
  const own: ResolvedModel['own'] = { ...settings }
  if (headers) own.headers = { ...settings.headers, ...headers }
  if (providerOptions) own.providerOptions = providerOptions
  return { maxRetries: maxRetries ?? ofSettings, ...(Object.keys(own).length > 0 ? { own } : {}) }
}

const candidateChecks: Record<keyof ModelCandidate, (value: unknown) => string | undefined> = {
  model: () => undefined,
  maxRetries: (value) => (Number.isInteger(value) && (value as number) >= 0 ? undefined : 'a whole number'),
  modelSettings: (value) => (isObject(value) ? undefined : 'an object'),
  providerOptions: (value) => (hasOptionsByProvider(value) ? undefined : 'an object with one object for each provider'),
  headers: (value) => {
    return isObject(value) && Object.values(value).every((one) => typeof one === 'string') ? undefined : 'an object of strings'
  },
}

/** Rejects options of an entry that nothing would read. */
function checkCandidate(entry: object, where: string): void {
  for (const [name, value] of Object.entries(entry)) {
    if (value === undefined) continue
    if (!Object.hasOwn(candidateChecks, name)) throw unknownField(where, name, candidateChecks)
    const wanted = candidateChecks[name as keyof ModelCandidate](value)
    if (wanted === undefined) continue
    throw new HeedError('invalid_argument', `${name} of ${where} must be ${wanted}.`, { details: { option: name } })
  }
  const { modelSettings = {} } = entry as ModelCandidate
  const unknown = Object.keys(modelSettings).find((name) => !Object.hasOwn(modelSettingNames, name))
  if (unknown !== undefined) throw unknownField(`modelSettings of ${where}`, unknown, modelSettingNames)
  const invalid = invalidSetting(modelSettings)
  if (invalid) {
    const option = `modelSettings.${invalid.name}`
    throw new HeedError('invalid_argument', `${option} of ${where} must be ${invalid.wanted}.`, { details: { option } })
  }
}

function unknownField(where: string, name: string, names: object): HeedError {
  const message = `${where} has no option '${name}'. Known: ${Object.keys(names).join(', ')}.`
  return new HeedError('unsupported_option', message, { details: { option: name } })
}

async function loadChecked(id: ModelId, agent: string): Promise<LanguageModel> {
  const model: unknown = await loadModel(id)
  if (!isLanguageModel(model)) throw unsupported(model, agent)
  return model
}

function once<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined
  return () => (loading ??= load())
}

function isLanguageModel(value: unknown): value is LanguageModel {
  if (typeof value !== 'object' || value === null) return false
  const { specificationVersion, doStream } = value as Partial<LanguageModel>
  return typeof doStream === 'function' && (specificationVersion === 'v4' || specificationVersion === 'v3' || specificationVersion === 'v2')
}

function isCandidate(value: unknown): value is ModelCandidate {
  return typeof value === 'object' && value !== null && 'model' in value && !('doStream' in value)
}

function unsupported(value: unknown, agent: string): HeedError {
  const version = (value as { specificationVersion?: unknown } | null | undefined)?.specificationVersion
  return new HeedError(
    'unsupported_model',
    version === undefined
      ? `The model of agent '${agent}' is not a model. Pass 'provider/model', a model object of an AI SDK provider package, `
        + 'a list of those, or a function that returns one.'
      : `The model of agent '${agent}' implements version '${String(version)}' of the provider interface; v4, v3 and v2 are supported. `
        + 'Update its package.',
  )
}
