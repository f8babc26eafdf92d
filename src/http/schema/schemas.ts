import { activeBehaviors, idleBehaviors } from '../../machine.ts'
import type { JSONSchema, ObjectSchema } from '../route.ts'

export const id: JSONSchema = { type: 'string', minLength: 1, maxLength: 512 }
export const text: JSONSchema = { type: 'string' }
export const flag: JSONSchema = { type: 'boolean' }
export const anything: JSONSchema = {}
/** An object with any values. Without `additionalProperties`, generators of clients take it for one without any. */
export const record: JSONSchema = { type: 'object', additionalProperties: true }
export const date: JSONSchema = { type: 'string', maxLength: 64, description: 'ISO 8601' }
export const page: JSONSchema = { type: 'integer', minimum: 0, maximum: 1_000_000_000 }
export const perPage: JSONSchema = { type: 'integer', minimum: 1, maximum: 1_000 }
export const limit: JSONSchema = { type: 'integer', minimum: 1, maximum: 1_000 }
export const ids: JSONSchema = { type: 'array', items: id, maxItems: 1_000 }

/** An object with these properties. Others, which existing clients send, are ignored. */
export function object(properties: Record<string, JSONSchema>, required: readonly string[] = []): ObjectSchema {
  return { type: 'object', properties, required }
}

/** An object with these properties and any others, which are read too: generated clients may send them. */
export function open(properties: Record<string, JSONSchema>, required: readonly string[] = []): ObjectSchema {
  return { ...object(properties, required), additionalProperties: true }
}

/** An object with these properties only. */
export function closed(properties: Record<string, JSONSchema>, required: readonly string[] = []): ObjectSchema {
  return { ...object(properties, required), additionalProperties: false }
}

const part: JSONSchema = open({ type: { enum: ['text', 'file', 'image'] } }, ['type'])

const contents: JSONSchema = { anyOf: [text, { type: 'array', items: part, maxItems: 1_000 }] }

/** Attributes may be any JSON: values other than strings, numbers and booleans are written as JSON. */
const signalExtras = { id, attributes: record, metadata: record, providerOptions: record }

/** A client may send back a message that it received, with its `createdAt`: that has to be a time, and is ignored. */
const messageObject = object({ contents, createdAt: anything, ...signalExtras }, ['contents'])
export const message: JSONSchema = { anyOf: [text, { type: 'array', items: part, maxItems: 1_000 }, messageObject] }
export const messageFields = Object.keys(messageObject.properties)

export const signal = object(
  { type: text, tagName: text, contents, createdAt: text, transient: flag, ...signalExtras },
  ['type', 'contents'],
)
export const signalFields = Object.keys(signal.properties)

export const state = object(
  {
    stateId: id, mode: { enum: ['snapshot', 'delta'] }, cacheKey: text, contents, value: anything, delta: anything, tagName: text,
    signalId: id, ...signalExtras,
  },
  ['cacheKey', 'contents'],
)

export const stateFields = Object.keys(state.properties)

/** The options of a run that can be written as JSON. */
export const runOptions: Record<string, JSONSchema> = {
  maxSteps: { type: 'integer', minimum: 1, maximum: 1_000 },
  toolChoice: anything,
  activeTools: { type: 'array', items: text, maxItems: 128 },
  modelSettings: record,
  providerOptions: record,
  requestContext: record,
  instructions: anything,
  system: anything,
  structuredOutput: object({ schema: record, name: text, description: text, jsonPromptInjection: flag }, ['schema']),
  requireToolApproval: flag,
  clientTools: { ...record, maxProperties: 128 },
}

const lastMessages = { anyOf: [{ type: 'integer', minimum: 0 }, { const: false }] }
const memoryChoices = { lastMessages, semanticRecall: { anyOf: [flag, record] }, readOnly: flag, save: flag }
/** The options of memory that a caller may choose. */
export const memoryOptions = object(memoryChoices)

/** Options of a run that existing clients send, and that have no effect: traces are configured on the server. */
export const toleratedOptions: Record<string, JSONSchema> = { tracingOptions: anything }

/** The options of the run that a send may start. Its thread is that of the send, which `memory` may repeat. */
const sentThread = { anyOf: [id, closed({ id, title: text, metadata: record })] }
const sentMemory = { thread: sentThread, resource: id, options: closed(memoryChoices) }
export const streamOptions = closed({ ...runOptions, ...toleratedOptions, runId: id, memory: closed(sentMemory) })

/** The options of a run that continues with results of a client's tools: clients repeat those of the run before it, with its id. */
const sameThread = { anyOf: [id, closed({ id }, ['id'])] }
export const continuedOptions = closed({ ...streamOptions.properties, memory: closed({ ...sentMemory, thread: sameThread }) })

/** The target of a send: the active run, or a thread of a resource. */
export const target = {
  runId: id,
  resourceId: id,
  threadId: id,
  ifActive: closed({ behavior: { enum: activeBehaviors }, attributes: record }),
  ifIdle: closed({ behavior: { enum: idleBehaviors }, attributes: record, streamOptions }),
}

export const threadScope: Record<string, JSONSchema> = { threadId: id, resourceId: id }
