import { HeedError } from '../errors.ts'
import type { JSONValue } from '../json.ts'
import { storableOutput } from '../message/storable-output.ts'
import type { ModelToolOutput } from '../message/tool-output.ts'
import { describe } from './provider-error.ts'

/** The value as JSON, since that is what is stored and what the model sees. `undefined` becomes null. */
export function jsonOf(value: unknown, subject: string): JSONValue {
  if (value === undefined || value === null) return null
  if (typeof value === 'string' || typeof value === 'boolean') return value
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch (cause) {
    throw new HeedError('tool_output_invalid', `${subject} can't be stored as JSON: ${describe(cause)}`, { cause })
  }
  if (text === undefined) throw new HeedError('tool_output_invalid', `${subject} can't be stored as JSON: it is a ${typeof value}.`)
  return JSON.parse(text) as JSONValue
}

const outputTypes: readonly unknown[] = ['text', 'json', 'error-text', 'error-json', 'content', 'execution-denied']

/** What `toModelOutput` gave, as it is stored and sent: bytes as base64, so that the prompt is the same for ever. */
export function modelOutputOf(output: unknown, toolName: string): ModelToolOutput {
  const { type, value } = (output ?? {}) as { type?: unknown; value?: unknown }
  if (!outputTypes.includes(type) || (type === 'content' && !Array.isArray(value))) {
    throw new HeedError('tool_output_invalid', `toModelOutput of ${toolName} must return { type, value }, type being one of ${outputTypes.join(', ')}.`)
  }
  if (type !== 'content') jsonOf(value, `What toModelOutput of ${toolName} returned`)
  return storableOutput(output as ModelToolOutput)
}
