import type { LanguageModelV4Message } from '@ai-sdk/provider'
import { isPlainObject } from '../base/json.ts'

/** Messages that a program may change: prompts share the originals. Files stay the same objects, since they may be large. */
export function copyMessages(messages: readonly LanguageModelV4Message[]): LanguageModelV4Message[] {
  return messages.map((message) => copyOf(message))
}

function copyOf<Value>(value: Value): Value {
  if (Array.isArray(value)) return value.map((item: unknown) => copyOf(item)) as Value
  if (!isPlainObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, copyOf(item)])) as Value
}
