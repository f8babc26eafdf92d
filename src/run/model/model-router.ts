import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { EmbeddingModelV4, LanguageModelV4 } from '@ai-sdk/provider'
import { HeedError } from '../../base/errors.ts'

interface ProviderPackage {
  package: string
  factory: string
  /** The environment variable that holds the key. */
  key: string
}

/** Providers that a `'provider/model'` string may name. Their packages are the user's to install. */
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
      `Model '${id}' names the provider '${provider}', which Heed doesn't know. Known: ${Object.keys(providers).join(', ')}. `
        + "For any other, pass a model object of the provider's own package.",
      { details: { provider } },
    )
  }
  return { provider, model, entry }
}

type ProviderInstance = ((modelId: string) => LanguageModelV4) & Partial<Record<'embeddingModel' | 'textEmbeddingModel', (modelId: string) => EmbeddingModelV4>>

export async function loadModel(id: string): Promise<LanguageModelV4> {
  const { model, entry } = parseModelId(id)
  return (await loadProvider(id, entry))(model)
}

export async function loadEmbeddingModel(id: string): Promise<EmbeddingModelV4> {
  const { model, entry } = parseModelId(id)
  const provider = await loadProvider(id, entry)
  const make = provider.embeddingModel ?? provider.textEmbeddingModel
  if (!make) throw new HeedError('unsupported_model', `${entry.package} makes no embeddings. Name another provider than that of '${id}'.`, { details: { package: entry.package } })
  return make.call(provider, model)
}

async function loadProvider(id: string, entry: ProviderPackage): Promise<ProviderInstance> {
  const module = await importPackage(entry.package).catch((cause: unknown) => {
    throw new HeedError('provider_not_installed', `Model '${id}' needs the package ${entry.package}. Install it: npm install ${entry.package}`, {
      cause,
      details: { package: entry.package },
    })
  })
  if (!process.env[entry.key]) {
    throw new HeedError('api_key_missing', `Model '${id}' needs a key. Set the environment variable ${entry.key}.`, { details: { variable: entry.key } })
  }
  const create = module[entry.factory]
  if (typeof create !== 'function') {
    throw new HeedError('unsupported_model', `${entry.package} has no '${entry.factory}'. Update it: npm install ${entry.package}@latest`)
  }
  return (create as () => ProviderInstance)()
}

/** From where Heed is installed, else from the program's own folder: linked and hoisted installs differ. */
async function importPackage(name: string): Promise<Record<string, unknown>> {
  try {
    return (await import(name)) as Record<string, unknown>
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
    const path = createRequire(join(process.cwd(), 'index.js')).resolve(name)
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>
  }
}
