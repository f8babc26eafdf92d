import { copyPlain, isObject, isSamePlain, orderedJSON } from '../base/json.ts'
import type { Chunk, ChunkPayloads } from '../message/chunk.ts'
import { checkJSON, describeResult } from './hook-results.ts'

/*
 * Validation of the chunks that processors return: subscribers read the chunks of a run without checking them. The errors are those of
 * `hook-results.ts`.
 */

/** The chunk to publish; undefined where the hook drops it. A chunk that only the run creates can't be dropped. */
export function returnedChunk(returned: unknown, part: Chunk): Chunk | undefined {
  if (returned === undefined || returned === part) return part
  if (returned === null) return isRunChunk(part.type) ? part : undefined
  return checkChunk(returned, part, 'returned')
}

/**
 * A copy for the hooks of a chunk. Values of a tool or of a provider may have circles: of those chunks, the copy has the payload itself,
 * and what a hook changes in it is published too.
 */
export function copyChunk(chunk: Chunk): Chunk {
  if (!('payload' in chunk)) return threadDataTypes.has(chunk.type) ? copyPlain(chunk) : { ...chunk }
  return chunk.type === 'raw' || chunk.type === 'tool-output' ? { ...chunk } : copyPlain(chunk)
}

/** The chunk to publish after all hooks. `copy`: the copy of `chunk` that they received, and may have changed in place. */
export function publishedChunk(passed: Chunk, copy: Chunk, chunk: Chunk): Chunk {
  return passed === copy && isSamePlain(copy, chunk) ? chunk : checkChunk(passed, chunk, 'left')
}

/** A chunk that a hook emits before `part`: always a copy, since each chunk gets a cursor of its own. */
export function emittedChunk(emitted: unknown, part: Chunk): Chunk {
  const chunk = checkChunk(emitted, part, 'emitted')
  if (!isRunChunk(chunk.type) && !threadDataTypes.has(chunk.type)) return chunk
  throw new Error(`it emitted a chunk of type '${chunk.type}', which only the run creates. Return the one that it received.`)
}

function checkChunk(chunk: unknown, part: Chunk, how: 'returned' | 'emitted' | 'left'): Chunk {
  if (!isObject(chunk) || typeof chunk.type !== 'string') {
    throw new Error(`it ${how} ${describeResult(chunk)}. Return a chunk, null to drop it, or nothing.`)
  }
  const { type, runId } = chunk
  if (runId !== part.runId) {
    const which = typeof runId === 'string' ? 'with the runId of another run' : 'without the runId of its run'
    throw new Error(`it ${how} a chunk of type '${type}' ${which}.`)
  }
  const invalid = type.startsWith('data-') ? findInvalidData(chunk, part) : findInvalidPayload(chunk, type, part)
  if (invalid !== undefined) throw new Error(`it ${how} a chunk of type '${type}'${invalid}.`)
  // Publishing assigns the cursor; this chunk may have one from an earlier stream.
  const { cursor: _, ...copy } = chunk
  return withChangedRequest(checkJSON(copy as unknown as Chunk, `in a ${type}`))
}

/** A processor that changes the arguments of a suspended call changes what its request shows. A request of a child shows its own. */
function withChangedRequest(chunk: Chunk): Chunk {
  if (chunk.type !== 'tool-call-approval' && chunk.type !== 'tool-call-suspended') return chunk
  const { request, child, args } = chunk.payload
  return request && !child ? ({ ...chunk, payload: { ...chunk.payload, request: { ...request, args } } } as Chunk) : chunk
}

function findInvalidPayload({ from, payload, metadata }: Record<string, unknown>, type: string, part: Chunk): string | undefined {
  const shape = isKnown(type) ? chunkShapes[type] : undefined
  if (!shape) return ', which is unknown. Use a type that begins with data- for a chunk of your own'
  if (from !== 'AGENT' && from !== 'USER' && from !== 'SYSTEM') return ' that is not from AGENT, USER or SYSTEM'
  if (metadata !== undefined && !isObject(metadata)) return ' whose metadata is not an object'
  if ('changeable' in shape) return findForbiddenChange(payload, shape, type, part)
  if (shape.payload === 'any') return undefined
  if (!isObject(payload)) return payload === undefined ? ' without payload' : ` whose payload is ${describeResult(payload)}`
  if (type === 'source' && payload.sourceType === 'url' && typeof payload.url !== 'string') return ' without url in its payload'
  return findInvalidField(payload, shape.payload)
}

function findForbiddenChange(payload: unknown, { changeable }: RunChunk, type: string, part: Chunk): string | undefined {
  if (type !== part.type || !('payload' in part)) return ', which only the run creates. Return the one that it received, or nothing'
  if (!isObject(payload)) return ' without payload'
  const received = part.payload as Record<string, unknown>
  const names = Object.keys(changeable)
  const unchanged: Record<string, unknown> = { ...payload }
  for (const name of names) unchanged[name] = received[name]
  if (orderedJSON(unchanged) === orderedJSON(received)) return findInvalidField(payload, changeable)
  return ` that differs from the one that it received. ${names.length === 0 ? 'No field' : `Only ${names.join(' and ')}`} can be changed`
}

function findInvalidData({ type, data, id, transient }: Record<string, unknown>, part: Chunk): string | undefined {
  if (id !== undefined && typeof id !== 'string') return ' whose id is not a text'
  if (transient !== undefined && typeof transient !== 'boolean') return ' whose transient is not true or false'
  if (!threadDataTypes.has(type as string)) return undefined
  if (type !== part.type || !('data' in part) || !isObject(part.data)) {
    return ', which only the thread creates. Return the one that it received, or send a signal with sendSignal()'
  }
  if (!isObject(data) || data.id !== part.data.id || data.type !== part.data.type) return ' of another signal than the one that it received'
  return typeof data.contents === 'string' || Array.isArray(data.contents) ? undefined : ' without contents'
}

function isKnown(type: string): type is keyof ChunkPayloads {
  return Object.hasOwn(chunkShapes, type)
}

function isRunChunk(type: string): boolean {
  return isKnown(type) && 'changeable' in chunkShapes[type]
}

/** The type of a field of a payload, and its description in errors. */
interface FieldType {
  readonly description: string
  readonly optional?: true
  matches(value: unknown): boolean
}

/** The checked fields of a payload. Others are not checked. */
type PayloadShape = Readonly<Record<string, FieldType>>

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
  'tool-result': {
    payload: { ...callWithArgs, result: value, isError: maybe(flag), errorCode: maybe(text), preliminary: maybe(flag), ...executor },
  },
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
  'data-user-message', 'data-signal', 'data-thread-snapshot', 'data-run-resumed', 'data-inbox', 'data-watch',
])

/** The first invalid field of a payload, for an error message; undefined when all are valid. */
function findInvalidField(payload: object, shape: PayloadShape): string | undefined {
  for (const [name, type] of Object.entries(shape)) {
    const isPresent = Object.hasOwn(payload, name)
    if (!isPresent && !type.optional) return ` without ${name} in its payload`
    if (isPresent && !type.matches((payload as Record<string, unknown>)[name])) return ` whose ${name} is not ${type.description}`
  }
  return undefined
}
