import type { LanguageModelV4Usage } from '@ai-sdk/provider'
import type { ScriptedUsage } from './scripted-step.ts'

/** What the numbers are derived from where the script leaves them out. */
export interface Characters {
  input: number
  reasoning: number
  /** Text and tool input. */
  output: number
}

export function usageOf(usage: ScriptedUsage | LanguageModelV4Usage = {}, characters: Characters): LanguageModelV4Usage {
  if (isComplete(usage)) return usage
  const cacheRead = usage.cachedInputTokens ?? 0
  const cacheWrite = usage.cacheWriteTokens ?? 0
  const input = usage.inputTokens ?? tokens(characters.input) + cacheRead + cacheWrite
  const reasoning = usage.reasoningTokens ?? tokens(characters.reasoning)
  const output = usage.outputTokens ?? tokens(characters.output) + reasoning
  return {
    inputTokens: { total: input, noCache: Math.max(0, input - cacheRead - cacheWrite), cacheRead, cacheWrite },
    outputTokens: { total: output, text: Math.max(0, output - reasoning), reasoning },
  }
}

/** A token for every four characters, begun ones included. */
function tokens(characters: number): number {
  return Math.ceil(characters / 4)
}

function isComplete(usage: ScriptedUsage | LanguageModelV4Usage): usage is LanguageModelV4Usage {
  return typeof usage.inputTokens === 'object'
}
