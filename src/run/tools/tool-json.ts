import { describe, HeedError } from '../../base/errors.ts'
import type { JSONValue } from '../../base/json.ts'
import { storableOutput } from '../../message/tool-output.ts'
import type { ModelToolOutput } from '../../message/message.ts'

/** The value as JSON, since that is what is stored and what the model sees. `undefined` becomes null. */
export function jsonOf(value: unknown, subject: string): JSONValue {
  if (value === undefined || value === null) return null
  if (typeof value === 'string' || typeof value === 'boolean') return value
  let text: string | undefined
  try {
    text = JSON.stringify(value, refuseCollections)
  } catch (cause) {
    throw new HeedError('tool_output_invalid', `${subject} can't be stored as JSON: ${describe(cause)}`, { cause })
  }
  if (text === undefined) throw new HeedError('tool_output_invalid', `${subject} can't be stored as JSON: it is a ${typeof value}.`)
  return JSON.parse(text) as JSONValue
}

/** They would be stored as an empty object. */
function refuseCollections(_: string, value: unknown): unknown {
  if (value instanceof Map) throw new TypeError('it has a Map. Give Object.fromEntries(map) in its place')
  if (value instanceof Set) throw new TypeError('it has a Set. Give [...set] in its place')
  return value
}

/** The same value as an object of its own, for code that may change it. */
export function copyOf<T extends JSONValue | undefined>(value: T): T {
  return typeof value === 'object' && value !== null ? structuredClone(value) : value
}

const outputTypes: readonly unknown[] = ['text', 'json', 'error-text', 'error-json', 'content', 'execution-denied']

/** What `toModelOutput` gave, as it is stored and sent: bytes as base64, so that the prompt is the same for ever. */
export function modelOutputOf(output: unknown, toolName: string): ModelToolOutput {
  const { type, value } = (output ?? {}) as { type?: unknown; value?: unknown }
  if (!outputTypes.includes(type)) {
    throw new HeedError('tool_output_invalid', `toModelOutput of ${toolName} must return { type, value }, type being one of ${outputTypes.join(', ')}.`)
  }
  const wanted = wantedValue(type, value)
  if (wanted !== undefined) throw new HeedError('tool_output_invalid', `toModelOutput of ${toolName} must return ${wanted} as the value of type '${String(type)}'.`)
  if (type !== 'content') jsonOf(value, `What toModelOutput of ${toolName} returned`)
  return storableOutput(output as ModelToolOutput)
}

/** What the value of this type would have to be; nothing when it is that. */
function wantedValue(type: unknown, value: unknown): string | undefined {
  if (type === 'text' || type === 'error-text') return typeof value === 'string' ? undefined : 'a text'
  if (type === 'json' || type === 'error-json') return value === undefined ? 'something' : undefined
  if (type !== 'content') return undefined
  return Array.isArray(value) && value.every(isItem) ? undefined : 'a list of { type, … }'
}

function isItem(item: unknown): boolean {
  return typeof item === 'object' && item !== null && 'type' in item && typeof item.type === 'string' && (item.type !== 'text' || typeof (item as { text?: unknown }).text === 'string')
}
