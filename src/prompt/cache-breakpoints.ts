import type { LanguageModelV4Message, LanguageModelV4Prompt } from '@ai-sdk/provider'

/** The cache marker of the models that `matches` accepts, and the key of the provider options that holds it. */
interface MarkerRule {
  matches(provider: string, model: string): boolean
  options: 'anthropic' | 'bedrock' | 'openrouter'
  marker: Record<string, { type: string }>
}

const ephemeral = { cacheControl: { type: 'ephemeral' } }

const bedrockClaude = /\banthropic\.claude-(?!v\d|instant|3-(?:sonnet|opus|haiku)|3-5-sonnet)/i

/**
 * Claude caches only up to markers, at every provider that serves it. The other models of these providers cache without markers, or
 * reject them.
 */
const markerRules: readonly MarkerRule[] = [
  { matches: (provider) => /\banthropic\b/i.test(provider), options: 'anthropic', marker: ephemeral },
  // Bedrock rejects markers for earlier models.
  {
    matches: (provider, model) => /\bbedrock\b/i.test(provider) && bedrockClaude.test(model),
    options: 'bedrock',
    marker: { cachePoint: { type: 'default' } },
  },
  {
    matches: (provider, model) => /^openrouter\b/i.test(provider) && /^anthropic\//i.test(model),
    options: 'openrouter',
    marker: ephemeral,
  },
  { matches: (provider, model) => /^gateway\b/i.test(provider) && /^anthropic\//i.test(model), options: 'anthropic', marker: ephemeral },
]
const markerNames = ['cacheControl', 'cache_control', 'cachePoint']

/**
 * Adds cache markers for a provider that needs them: after the instructions, after the prompt of the previous call, and at the end. A
 * prompt for any other provider, or one in which the program set markers itself, is returned unchanged.
 */
export function withCacheBreakpoints(
  { provider, modelId }: { provider: string; modelId: string }, prompt: LanguageModelV4Prompt,
): LanguageModelV4Prompt {
  const rule = markerRules.find(({ matches }) => matches(provider, modelId))
  if (!rule || prompt.some(hasMarker)) return prompt
  const system = prompt.findLastIndex(({ role }) => role === 'system')
  const last = prompt.length - 1
  // The prompt of the previous call ends before the last assistant message.
  const response = prompt.findLastIndex(({ role }) => role === 'assistant')
  const breakpoints = new Set([system, response - 1, last].filter((index) => index >= 0))
  return prompt.map((message, index) => (breakpoints.has(index) ? withMarker(message, rule) : message))
}

function withMarker(message: LanguageModelV4Message, { options, marker }: MarkerRule): LanguageModelV4Message {
  const { providerOptions } = message
  return { ...message, providerOptions: { ...providerOptions, [options]: { ...providerOptions?.[options], ...marker } } }
}

function hasMarker({ providerOptions, content }: LanguageModelV4Message): boolean {
  return isMarker(providerOptions) || (Array.isArray(content) && content.some((part) => isMarker(part.providerOptions)))
}

function isMarker(providerOptions: LanguageModelV4Message['providerOptions']): boolean {
  return Object.values(providerOptions ?? {}).some((options) => markerNames.some((name) => Object.hasOwn(options, name)))
}
