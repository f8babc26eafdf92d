import type { LanguageModelV4Message, LanguageModelV4Prompt } from '@ai-sdk/provider'

interface Marks {
  /** Whose models these are, and how the provider's package is told. */
  of(provider: string, model: string): boolean
  options: 'anthropic' | 'bedrock' | 'openrouter'
  mark: Record<string, { type: string }>
}

const ephemeral = { cacheControl: { type: 'ephemeral' } }

/** Claude caches up to marks only, wherever it is served. Others that are asked through the same providers cache by themselves, or refuse marks. */
const marksOf: readonly Marks[] = [
  { of: (provider) => /\banthropic\b/i.test(provider), options: 'anthropic', mark: ephemeral },
  // Earlier models refuse a request with marks there.
  {
    of: (provider, model) => /\bbedrock\b/i.test(provider) && /\banthropic\.claude-(?!v\d|instant|3-(?:sonnet|opus|haiku)|3-5-sonnet)/i.test(model),
    options: 'bedrock',
    mark: { cachePoint: { type: 'default' } },
  },
  { of: (provider, model) => /^openrouter\b/i.test(provider) && /^anthropic\//i.test(model), options: 'openrouter', mark: ephemeral },
  { of: (provider, model) => /^gateway\b/i.test(provider) && /^anthropic\//i.test(model), options: 'anthropic', mark: ephemeral },
]
const names = ['cacheControl', 'cache_control', 'cachePoint']

/**
 * Marks where a provider that caches only up to marks is to do so: after the instructions, after what it was sent last time, and at the
 * end. Others cache by themselves and get the prompt as it is, as does one in which a program set marks of its own.
 */
export function withCacheBreakpoints({ provider, modelId }: { provider: string; modelId: string }, prompt: LanguageModelV4Prompt): LanguageModelV4Prompt {
  const marks = marksOf.find(({ of }) => of(provider, modelId))
  if (!marks || prompt.some(isMarked)) return prompt
  const system = prompt.findLastIndex(({ role }) => role === 'system')
  const last = prompt.length - 1
  // What was sent last time ends before the last answer.
  const answer = prompt.findLastIndex(({ role }) => role === 'assistant')
  const places = new Set([system, answer - 1, last].filter((place) => place >= 0))
  return prompt.map((message, place) => (places.has(place) ? marked(message, marks) : message))
}

function marked(message: LanguageModelV4Message, { options, mark }: Marks): LanguageModelV4Message {
  return { ...message, providerOptions: { ...message.providerOptions, [options]: { ...message.providerOptions?.[options], ...mark } } }
}

function isMarked({ providerOptions, content }: LanguageModelV4Message): boolean {
  const has = (given: LanguageModelV4Message['providerOptions']) => Object.values(given ?? {}).some((options) => names.some((name) => Object.hasOwn(options, name)))
  return has(providerOptions) || (Array.isArray(content) && content.some((part) => has(part.providerOptions)))
}
