import { describe, HeedError } from '../../base/errors.ts'
import type { JSONValue } from '../../base/json.ts'
import { storableOutput } from '../../message/tool-output.ts'
import type { ModelToolOutput } from '../../message/message.ts'

/** The value as JSON, as it is stored and sent to the model. `undefined` becomes null. */
export function toJSON(value: unknown, subject: string): JSONValue {
  if (value === undefined || value === null) return null
  if (typeof value === 'string' || typeof value === 'boolean') return value
  let text: string | undefined
  try {
    text = JSON.stringify(value, rejectCollections)
  } catch (cause) {
    throw new HeedError('tool_output_invalid', `${subject} can't be stored as JSON: ${describe(cause)}`, { cause })
  }
  if (text === undefined) throw new HeedError('tool_output_invalid', `${subject} can't be stored as JSON: it is a ${typeof value}.`)
  return JSON.parse(text) as JSONValue
}

/** JSON.stringify would write them as an empty object. */
function rejectCollections(_: string, value: unknown): unknown {
  if (value instanceof Map) throw new TypeError('it contains a Map. Use Object.fromEntries(map) instead')
  if (value instanceof Set) throw new TypeError('it contains a Set. Use [...set] instead')
  return value
}

/** A copy for code that may change it. */
export function copyOf<T extends JSONValue | undefined>(value: T): T {
  return typeof value === 'object' && value !== null ? structuredClone(value) : value
}

const outputTypes: readonly unknown[] = ['text', 'json', 'error-text', 'error-json', 'content', 'execution-denied']

/** Validates the result of `toModelOutput` and encodes its bytes as base64, so that every prompt has the same text. */
export function encodeModelOutput(output: unknown, toolName: string): ModelToolOutput {
  const { type, value } = (output ?? {}) as { type?: unknown; value?: unknown }
  if (!outputTypes.includes(type)) throw invalidOutput(toolName, `{ type, value }, type being one of ${outputTypes.join(', ')}`)
  const expected = expectedValue(type, value)
  if (expected !== undefined) throw invalidOutput(toolName, `${expected} as the value of type '${String(type)}'`)
  if (type !== 'content') toJSON(value, `What toModelOutput of ${toolName} returned`)
  return storableOutput(output as ModelToolOutput)
}

function invalidOutput(toolName: string, expected: string): HeedError {
  return new HeedError('tool_output_invalid', `toModelOutput of ${toolName} must return ${expected}.`)
}

/** What the value of this type must be; undefined when it is valid. */
function expectedValue(type: unknown, value: unknown): string | undefined {
  if (type === 'text' || type === 'error-text') return typeof value === 'string' ? undefined : 'a string'
  if (type === 'json' || type === 'error-json') return value === undefined ? 'a defined value' : undefined
  if (type !== 'content') return undefined
  return Array.isArray(value) && value.every(isContentItem) ? undefined : 'an array of { type, … }'
}

function isContentItem(item: unknown): boolean {
  if (typeof item !== 'object' || item === null || !('type' in item) || typeof item.type !== 'string') return false
  return item.type !== 'text' || typeof (item as { text?: unknown }).text === 'string'
}
