import { isObject } from '../base/json.ts'
import type { ChunkPayloads } from '../message/chunk.ts'

/** The type of a field of a payload, and its description in errors. */
interface FieldType {
  readonly description: string
  readonly optional?: true
  matches(value: unknown): boolean
}

/** The checked fields of a payload. Others are not checked. */
export type PayloadShape = Readonly<Record<string, FieldType>>

/** A chunk that only the run creates. A processor may return the one that it received, with changes of these payload fields only. */
export interface RunChunk {
  readonly changeable: PayloadShape
}

const text: FieldType = { description: 'a text', matches: (value) => typeof value === 'string' }
const flag: FieldType = { description: 'true or false', matches: (value) => typeof value === 'boolean' }
const value: FieldType = { description: 'a value', matches: () => true }
const object: FieldType = { description: 'an object', matches: isObject }
const error: FieldType = {
  description: 'an error with name and message',
  matches: (value) => isObject(value) && typeof value.name === 'string' && typeof value.message === 'string',
}
const sourceType: FieldType = { description: "'url' or 'document'", matches: (value) => value === 'url' || value === 'document' }
const metadata: FieldType = {
  description: 'an object with an object for each provider',
  matches: (value) => isObject(value) && Object.values(value).every((options) => options === undefined || isObject(options)),
}

function maybe(type: FieldType): FieldType {
  return { ...type, optional: true, matches: (value) => value === undefined || type.matches(value) }
}

const meta: PayloadShape = { providerMetadata: maybe(metadata) }
const block: PayloadShape = { id: text, ...meta }
const delta: PayloadShape = { ...block, text }
const call: PayloadShape = { toolCallId: text, toolName: text }
const callWithArgs: PayloadShape = { ...call, args: value }
const executor: PayloadShape = { providerExecuted: maybe(flag), dynamic: maybe(flag), ...meta }
const ofRun: RunChunk = { changeable: {} }

/** The payload of each type of chunk, or that only the run creates it. */
export const chunkShapes: { readonly [Type in keyof ChunkPayloads]: { readonly payload: PayloadShape | 'any' } | RunChunk } = {
  start: ofRun,
  'step-start': ofRun,
  'response-metadata': { payload: { id: maybe(text), timestamp: maybe(text), modelId: maybe(text) } },
  'text-start': { payload: block },
  'text-delta': { payload: delta },
  'text-end': { payload: block },
  'reasoning-start': { payload: block },
  'reasoning-delta': { payload: delta },
  'reasoning-end': { payload: block },
  source: {
    payload: { id: text, sourceType, url: maybe(text), title: maybe(text), mimeType: maybe(text), filename: maybe(text), ...meta },
  },
  file: { payload: { data: text, mimeType: text, ...meta } },
  'tool-call-input-streaming-start': { payload: { ...call, ...executor } },
  'tool-call-delta': { payload: { toolCallId: text, toolName: maybe(text), argsTextDelta: text, ...meta } },
  'tool-call-input-streaming-end': { payload: { toolCallId: text, ...meta } },
  'tool-call': { payload: { ...callWithArgs, ...executor } },
  'tool-call-approval': { changeable: { args: value } },
  'tool-call-suspended': { changeable: { args: value, suspendPayload: value } },
  'tool-output': { payload: { ...call, output: value } },
  'tool-result': { payload: { ...callWithArgs, result: value, isError: maybe(flag), preliminary: maybe(flag), ...executor } },
  'tool-error': { payload: { ...callWithArgs, error } },
  'tool-output-denied': { payload: { ...callWithArgs, reason: maybe(text) } },
  'step-finish': { changeable: { metadata: object } },
  object: { payload: { object: value } },
  'object-result': ofRun,
  tripwire: ofRun,
  raw: { payload: 'any' },
  error: ofRun,
  abort: ofRun,
  finish: { changeable: { metadata: object } },
}

/** The types of data chunks that only a thread creates: clients read them as events of the thread. */
export const threadDataTypes: ReadonlySet<string> = new Set([
  'data-user-message', 'data-signal', 'data-thread-snapshot', 'data-run-resumed', 'data-inbox',
])

/** The first invalid field of a payload, for an error message; undefined when all are valid. */
export function findInvalidField(payload: object, shape: PayloadShape): string | undefined {
  for (const [name, type] of Object.entries(shape)) {
    const isPresent = Object.hasOwn(payload, name)
    if (!isPresent && !type.optional) return ` without ${name} in its payload`
    if (isPresent && !type.matches((payload as Record<string, unknown>)[name])) return ` whose ${name} is not ${type.description}`
  }
  return undefined
}
