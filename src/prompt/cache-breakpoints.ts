import type { LanguageModelV4Message, LanguageModelV4Prompt } from '@ai-sdk/provider'

const mark = { type: 'ephemeral' } as const

/**
 * Marks where a provider that caches only up to marks is to do so: after the instructions, after what it was sent last time, and at the
 * end. Others cache by themselves and get the prompt as it is, as does one in which a program set marks of its own.
 */
export function withCacheBreakpoints(provider: string, prompt: LanguageModelV4Prompt): LanguageModelV4Prompt {
  if (!/\banthropic\b/i.test(provider) || prompt.some(isMarked)) return prompt
  const system = prompt.findLastIndex(({ role }) => role === 'system')
  const last = prompt.length - 1
  // What was sent last time ends before the last answer.
  const answer = prompt.findLastIndex(({ role }) => role === 'assistant')
  const places = new Set([system, answer - 1, last].filter((place) => place >= 0))
  return prompt.map((message, place) => (places.has(place) ? marked(message) : message))
}

function marked(message: LanguageModelV4Message): LanguageModelV4Message {
  return { ...message, providerOptions: { ...message.providerOptions, anthropic: { ...message.providerOptions?.anthropic, cacheControl: mark } } }
}

function isMarked({ providerOptions, content }: LanguageModelV4Message): boolean {
  if (providerOptions?.anthropic && 'cacheControl' in providerOptions.anthropic) return true
  return Array.isArray(content) && content.some((part) => part.providerOptions?.anthropic !== undefined && 'cacheControl' in part.providerOptions.anthropic)
}
