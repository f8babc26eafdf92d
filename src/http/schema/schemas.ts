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

/** An object of a request with these properties. Others are rejected by name: what is accepted has an effect. */
export function object(properties: Record<string, JSONSchema>, required: readonly string[] = []): ObjectSchema {
  return { ...having(properties, required), additionalProperties: false }
}

/** An object with these properties and any others, which are read too: generated clients may send them. */
export function open(properties: Record<string, JSONSchema>, required: readonly string[] = []): ObjectSchema {
  return { ...having(properties, required), additionalProperties: true }
}

/** An object of a response, with at least these properties. */
export function having(properties: Record<string, JSONSchema>, required: readonly string[] = []): ObjectSchema {
  return { type: 'object', properties, required }
}

/** What existing clients send by themselves, and what has no effect here: docs/server.md lists it. */
export const ignored: JSONSchema = { description: 'Existing clients send it. It has no effect.' }

const part: JSONSchema = open({ type: { enum: ['text', 'file', 'image'] } }, ['type'])

const contents: JSONSchema = { anyOf: [text, { type: 'array', items: part, maxItems: 1_000 }] }

/** Attributes may be any JSON: values other than strings, numbers and booleans are written as JSON. */
const signalExtras = { id, attributes: record, metadata: record, providerOptions: record }

/** A client may send a signal that it received again: the times have to be times, and are ignored. */
const received = { createdAt: anything, acceptedAt: anything, guarded: anything }
const signalProperties = { type: text, tagName: text, contents, transient: flag, ...signalExtras, ...received }

/** `type` and `tagName`: of a user's signal that was received. */
const messageObject = object(signalProperties, ['contents'])
export const message: JSONSchema = { anyOf: [text, { type: 'array', items: part, maxItems: 1_000 }, messageObject] }
export const signal = object(signalProperties, ['type', 'contents'])

export const state = object(
  {
    stateId: id, mode: { enum: ['snapshot', 'delta'] }, cacheKey: text, contents, value: anything, delta: anything, tagName: text,
    signalId: id, ...signalExtras,
  },
  ['cacheKey', 'contents'],
)

/** The options of a run that change its prompt, and can be written as JSON. */
export const promptOptions: Record<string, JSONSchema> = {
  activeTools: { type: 'array', items: text, maxItems: 128 },
  requestContext: record,
  instructions: anything,
  system: anything,
  clientTools: { ...record, maxProperties: 128 },
  agentVersion: { anyOf: [{ type: 'integer', minimum: 0, maximum: 1_000_000_000 }, { const: 'draft' }] },
}

/** The options of a run that can be written as JSON. */
export const runOptions: Record<string, JSONSchema> = {
  ...promptOptions,
  maxSteps: { type: 'integer', minimum: 1, maximum: 1_000 },
  toolChoice: anything,
  modelSettings: record,
  providerOptions: record,
  structuredOutput: object({ schema: record, name: text, description: text, jsonPromptInjection: flag }, ['schema']),
  requireToolApproval: flag,
}

const lastMessages = { anyOf: [{ type: 'integer', minimum: 0 }, { const: false }] }
const memoryChoices = { lastMessages, semanticRecall: { anyOf: [flag, record] }, readOnly: flag, save: flag }
/** The options of memory that a caller may choose. */
export const memoryOptions = object(memoryChoices)

/** Options of a run that existing clients send: traces are configured on the server. */
export const toleratedOptions: Record<string, JSONSchema> = { tracingOptions: ignored }

/** The options of the run that a send may start. Its thread is that of the send, which `memory` may repeat. */
const sentThread = { anyOf: [id, object({ id, title: text, metadata: record })] }
const sentMemory = { thread: sentThread, resource: id, options: memoryOptions }
export const streamOptions = object({ ...runOptions, ...toleratedOptions, runId: id, memory: object(sentMemory) })

/** The options of a run that continues with results of a client's tools: clients repeat those of the run before it, with its id. */
const sameThread = { anyOf: [id, object({ id }, ['id'])] }
export const continuedOptions = object({ ...streamOptions.properties, memory: object({ ...sentMemory, thread: sameThread }) })

/** The target of a send: the active run, or a thread of a resource. */
export const target = {
  runId: id,
  resourceId: id,
  threadId: id,
  ifActive: object({ behavior: { enum: activeBehaviors }, attributes: record }),
  ifIdle: object({ behavior: { enum: idleBehaviors }, attributes: record, streamOptions }),
}

export const threadScope: Record<string, JSONSchema> = { threadId: id, resourceId: id }
