import type { ChunkPayloads } from '../run/chunk.ts'

/** What a field of a payload has to be, and how that is said. */
interface Kind {
  readonly word: string
  readonly optional?: true
  fits(value: unknown): boolean
}

/** The fields that a payload must have, or may. Others are let be. */
export type PayloadShape = Readonly<Record<string, Kind>>

/** How a run goes is for the run to say. A processor may return such a chunk where it was given it, with no more changed than these fields of its payload. */
export interface OwnChunk {
  readonly may: PayloadShape
}

const text: Kind = { word: 'a text', fits: (value) => typeof value === 'string' }
const flag: Kind = { word: 'true or false', fits: (value) => typeof value === 'boolean' }
const value: Kind = { word: 'a value', fits: () => true }
const object: Kind = { word: 'an object', fits: isObject }
const error: Kind = { word: 'an error with name and message', fits: (told) => isObject(told) && typeof told.name === 'string' && typeof told.message === 'string' }
const sourceType: Kind = { word: "'url' or 'document'", fits: (told) => told === 'url' || told === 'document' }
const metadata: Kind = { word: 'an object with an object for each provider', fits: (told) => isObject(told) && Object.values(told).every((options) => options === undefined || isObject(options)) }

function maybe(kind: Kind): Kind {
  return { ...kind, optional: true, fits: (told) => told === undefined || kind.fits(told) }
}

const meta: PayloadShape = { providerMetadata: maybe(metadata) }
const block: PayloadShape = { id: text, ...meta }
const delta: PayloadShape = { ...block, text }
const call: PayloadShape = { toolCallId: text, toolName: text }
const calledWith: PayloadShape = { ...call, args: value }
const runBy: PayloadShape = { providerExecuted: maybe(flag), dynamic: maybe(flag), ...meta }
const own: OwnChunk = { may: {} }

/** Of every chunk that a run says: what its payload must be, or that it is the run's own. */
export const chunkShapes: { readonly [Type in keyof ChunkPayloads]: { readonly payload: PayloadShape | 'any' } | OwnChunk } = {
  start: own,
  'step-start': own,
  'response-metadata': { payload: { id: maybe(text), timestamp: maybe(text), modelId: maybe(text) } },
  'text-start': { payload: block },
  'text-delta': { payload: delta },
  'text-end': { payload: block },
  'reasoning-start': { payload: block },
  'reasoning-delta': { payload: delta },
  'reasoning-end': { payload: block },
  source: { payload: { id: text, sourceType, url: maybe(text), title: maybe(text), mimeType: maybe(text), filename: maybe(text), ...meta } },
  file: { payload: { data: text, mimeType: text, ...meta } },
  'tool-call-input-streaming-start': { payload: { ...call, ...runBy } },
  'tool-call-delta': { payload: { toolCallId: text, toolName: maybe(text), argsTextDelta: text, ...meta } },
  'tool-call-input-streaming-end': { payload: { toolCallId: text, ...meta } },
  'tool-call': { payload: { ...calledWith, ...runBy } },
  'tool-call-approval': { may: { args: value } },
  'tool-call-suspended': { may: { args: value, suspendPayload: value } },
  'tool-output': { payload: { ...call, output: value } },
  'tool-result': { payload: { ...calledWith, result: value, isError: maybe(flag), preliminary: maybe(flag), ...runBy } },
  'tool-error': { payload: { ...calledWith, error } },
  'tool-output-denied': { payload: { ...calledWith, reason: maybe(text) } },
  'step-finish': { may: { metadata: object } },
  object: { payload: { object: value } },
  'object-result': own,
  tripwire: own,
  raw: { payload: 'any' },
  error: own,
  abort: own,
  finish: { may: { metadata: object } },
}

/** What a thread says in chunks of data: a display takes them for the thread's own words. */
export const threadData: ReadonlySet<string> = new Set(['data-user-message', 'data-signal', 'data-thread-snapshot', 'data-run-resumed', 'data-inbox'])

/** The first field that isn't what it has to be, in words; nothing when all are. */
export function misfitIn(payload: object, shape: PayloadShape): string | undefined {
  for (const [name, kind] of Object.entries(shape)) {
    const there = Object.hasOwn(payload, name)
    if (!there && !kind.optional) return ` without ${name} in its payload`
    if (there && !kind.fits((payload as Record<string, unknown>)[name])) return ` whose ${name} is not ${kind.word}`
  }
  return undefined
}

export function isObject(told: unknown): told is Record<string, unknown> {
  return typeof told === 'object' && told !== null && !Array.isArray(told)
}
