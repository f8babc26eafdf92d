import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { EmbeddingModelV4, EmbeddingModelV4CallOptions, EmbeddingModelV4Result, LanguageModelV4 } from '@ai-sdk/provider'
import { checkNames } from '../../base/arguments.ts'
import { HeedError, packageError } from '../../base/errors.ts'

interface ProviderPackage {
  package: string
  factory: string
  /** The environment variable that holds the key. */
  key: string
}

/** The providers that a `'provider/model'` string may name. The user installs their packages. */
const providers: Record<string, ProviderPackage> = {
  openai: { package: '@ai-sdk/openai', factory: 'createOpenAI', key: 'OPENAI_API_KEY' },
  anthropic: { package: '@ai-sdk/anthropic', factory: 'createAnthropic', key: 'ANTHROPIC_API_KEY' },
  google: { package: '@ai-sdk/google', factory: 'createGoogleGenerativeAI', key: 'GOOGLE_GENERATIVE_AI_API_KEY' },
  mistral: { package: '@ai-sdk/mistral', factory: 'createMistral', key: 'MISTRAL_API_KEY' },
  groq: { package: '@ai-sdk/groq', factory: 'createGroq', key: 'GROQ_API_KEY' },
  xai: { package: '@ai-sdk/xai', factory: 'createXai', key: 'XAI_API_KEY' },
  deepseek: { package: '@ai-sdk/deepseek', factory: 'createDeepSeek', key: 'DEEPSEEK_API_KEY' },
  cohere: { package: '@ai-sdk/cohere', factory: 'createCohere', key: 'COHERE_API_KEY' },
  perplexity: { package: '@ai-sdk/perplexity', factory: 'createPerplexity', key: 'PERPLEXITY_API_KEY' },
  togetherai: { package: '@ai-sdk/togetherai', factory: 'createTogetherAI', key: 'TOGETHER_AI_API_KEY' },
  fireworks: { package: '@ai-sdk/fireworks', factory: 'createFireworks', key: 'FIREWORKS_API_KEY' },
  cerebras: { package: '@ai-sdk/cerebras', factory: 'createCerebras', key: 'CEREBRAS_API_KEY' },
  openrouter: { package: '@openrouter/ai-sdk-provider', factory: 'createOpenRouter', key: 'OPENROUTER_API_KEY' },
}

export function parseModelId(id: string): { provider: string; model: string; entry: ProviderPackage } {
  const slash = id.indexOf('/')
  const provider = id.slice(0, slash)
  const model = id.slice(slash + 1)
  if (slash < 1 || model === '') {
    throw new HeedError('unknown_provider', `'${id}' is not a model id. Write it as 'provider/model', for example 'openai/gpt-5.5'.`)
  }
  const entry = Object.hasOwn(providers, provider) ? providers[provider] : undefined
  if (!entry) {
    throw new HeedError(
      'unknown_provider',
      `Model '${id}' names the provider '${provider}', which Heed doesn't support. Supported: ${Object.keys(providers).join(', ')}. `
        + "For another provider, pass a model object of its package.",
      { details: { provider } },
    )
  }
  return { provider, model, entry }
}

type EmbeddingFactory = (modelId: string) => EmbeddingModelV4
type ProviderInstance = ((modelId: string) => LanguageModelV4) & {
  embeddingModel?: EmbeddingFactory
  textEmbeddingModel?: EmbeddingFactory
}

export async function loadModel(id: string): Promise<LanguageModelV4> {
  const { model, entry } = parseModelId(id)
  return (await loadProvider(id, entry))(model)
}

async function loadEmbeddingModel(id: string): Promise<EmbeddingModelV4> {
  const { model, entry } = parseModelId(id)
  const provider = await loadProvider(id, entry)
  const create = provider.embeddingModel ?? provider.textEmbeddingModel
  if (!create) {
    const message = `${entry.package} has no embedding models. Use another provider than that of '${id}'.`
    throw new HeedError('unsupported_model', message, { details: { package: entry.package } })
  }
  return create.call(provider, model)
}

async function loadProvider(id: string, entry: ProviderPackage): Promise<ProviderInstance> {
  const module = await importPackage(entry.package).catch((cause: unknown) => {
    throw packageError(entry.package, `Model '${id}' needs the package ${entry.package}. Install it: npm install ${entry.package}`, cause)
  })
  if (!process.env[entry.key]) {
    const message = `Model '${id}' needs a key. Set the environment variable ${entry.key}.`
    throw new HeedError('api_key_missing', message, { details: { variable: entry.key } })
  }
  const create = module[entry.factory]
  if (typeof create !== 'function') {
    throw new HeedError('unsupported_model', `${entry.package} has no '${entry.factory}'. Update it: npm install ${entry.package}@latest`)
  }
  return (create as () => ProviderInstance)()
}

/** Resolves the package from Heed's location, else from the working directory: linked and hoisted installs differ. */
async function importPackage(name: string): Promise<Record<string, unknown>> {
  try {
    return (await import(name)) as Record<string, unknown>
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
    const path = createRequire(join(process.cwd(), 'index.js')).resolve(name)
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>
  }
}

/**
 * An embedding model by its name. The provider's package is loaded on first use.
 *
 * @example new Memory({ embedder: new ModelRouterEmbeddingModel('openai/text-embedding-3-small') })
 */
export class ModelRouterEmbeddingModel implements EmbeddingModelV4 {
  readonly specificationVersion = 'v4'
  readonly provider: string
  readonly modelId: string
  readonly maxEmbeddingsPerCall = 96
  readonly supportsParallelCalls = true
  readonly #id: string
  #model: Promise<EmbeddingModelV4> | undefined

  constructor(model: string | { providerId: string; modelId: string }) {
    if (typeof model === 'object') checkNames('ModelRouterEmbeddingModel', model, ['providerId', 'modelId'])
    const id = typeof model === 'string' ? model : `${model?.providerId}/${model?.modelId}`
    const { provider, model: name } = parseModelId(id)
    this.provider = provider
    this.modelId = name
    this.#id = id
  }

  async doEmbed(options: EmbeddingModelV4CallOptions): Promise<EmbeddingModelV4Result> {
    this.#model ??= loadEmbeddingModel(this.#id).catch((error: unknown) => {
      this.#model = undefined
      throw error
    })
    return (await this.#model).doEmbed(options)
  }
}

/** The fields that embedding models of all specification versions have. */
export interface AnyEmbeddingModel {
  readonly specificationVersion?: string
  readonly provider: string
  readonly modelId: string
  readonly maxEmbeddingsPerCall?: number | undefined | PromiseLike<number | undefined>
  doEmbed(options: { values: string[]; abortSignal?: AbortSignal }): PromiseLike<{ embeddings: number[][] }>
}

/** `'provider/model'`, or an embedding model of the AI SDK. */
export type EmbedderInput = string | AnyEmbeddingModel

export function resolveEmbedder(embedder: unknown): AnyEmbeddingModel {
  if (typeof embedder === 'string') return new ModelRouterEmbeddingModel(embedder)
  if (typeof embedder === 'object' && embedder !== null && 'doEmbed' in embedder && 'modelId' in embedder) {
    return embedder as AnyEmbeddingModel
  }
  const message = "embedder must be 'provider/model', an embedding model of the AI SDK, or localEmbedder() of heed/embed."
  throw new HeedError('invalid_argument', message, { details: { option: 'embedder' } })
}
