import { isPlainObject } from '../../base/json.ts'
import { fromEntries, mapTexts } from '../../base/json-texts.ts'
import { mapSchemaTexts } from './schema-texts.ts'

type MapText = (text: string) => string

/** Fields that name, order or configure something: no text of theirs is written for a model. */
const structural: ReadonlySet<string> = new Set([
  'id', 'ids', 'role', 'type', 'threadId', 'newThreadId', 'resourceId', 'resource', 'runId', 'toolCallId', 'approvalId', 'digest',
  'signalId', 'signalIds', 'stateId', 'messageIds', 'cacheKey', 'dedupeKey', 'coalesceKey', 'createdAt', 'updatedAt', 'at', 'cron',
  'timeZone', 'overlap', 'missed', 'mode', 'priority', 'status', 'behavior', 'format', 'mediaType', 'mimeType', 'contentType',
  'requestContext', 'providerOptions', 'providerMetadata', 'modelSettings', 'toolChoice', 'activeTools', 'options',
])

/** Fields whose value is data of the caller: every text in it counts, its keys too. */
const data: ReadonlySet<string> = new Set([
  'attributes', 'metadata', 'payload', 'workingMemory', 'value', 'delta', 'args', 'input', 'result', 'output', 'resumeData',
])

/** Objects whose keys the caller chose. */
const named: ReadonlySet<string> = new Set(['clientTools'])

/** Fields whose value is a JSON Schema. */
const schemas: ReadonlySet<string> = new Set(['inputSchema', 'parameters', 'schema', 'result_schema'])

/** Fields of files: their contents are no text. */
const files: ReadonlySet<string> = new Set(['data', 'image', 'url'])

/**
 * The body of a request with each text replaced that a model may read, now or when it is stored. `startsRun`: the texts of its messages
 * enter a run, whose processors see them.
 */
export function mapRequestTexts(body: Record<string, unknown>, map: MapText, startsRun: boolean): Record<string, unknown> {
  return mapFields(body, (name, value) => {
    if (startsRun && name === 'message') return mapMessage(value, map)
    if (startsRun && name === 'messages') return Array.isArray(value) ? value.map((one) => mapMessage(one, map)) : mapMessage(value, map)
    return mapField(name, value, map)
  })
}

function mapField(name: string, value: unknown, map: MapText): unknown {
  if (structural.has(name)) return value
  if (data.has(name)) return mapTexts(value, map)
  if (schemas.has(name)) return mapSchemaTexts(value, map)
  if (named.has(name) && isPlainObject(value)) {
    return fromEntries(Object.entries(value).map(([key, one]) => [map(key), mapValue(one, map)]))
  }
  return mapValue(value, map)
}

function mapValue(value: unknown, map: MapText): unknown {
  if (typeof value === 'string') return map(value)
  if (Array.isArray(value)) return value.map((item) => mapValue(item, map))
  if (!isPlainObject(value)) return value
  return mapFields(value, (name, one) => (isFile(value, name) ? one : mapField(name, one, map)))
}

function mapFields(value: Record<string, unknown>, map: (name: string, value: unknown) => unknown): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, map(name, one)]))
}

function isFile({ type }: Record<string, unknown>, name: string): boolean {
  return files.has(name) && (type === 'file' || type === 'image' || type === undefined)
}

/** A message of a user without its texts, which its run checks; any other message, such as the result of a tool, with all of them. */
function mapMessage(message: unknown, map: MapText): unknown {
  if (typeof message === 'string') return message
  if (Array.isArray(message)) return message.map((part) => mapPart(part, map))
  if (!isPlainObject(message) || (message.role !== undefined && message.role !== 'user')) return mapValue(message, map)
  return mapFields(message, (name, value) => (contents.has(name) ? mapContents(value, map) : mapField(name, value, map)))
}

const contents: ReadonlySet<string> = new Set(['content', 'contents', 'parts'])

function mapContents(value: unknown, map: MapText): unknown {
  if (typeof value === 'string') return value
  if (Array.isArray(value)) return value.map((part) => mapPart(part, map))
  return isPlainObject(value) ? mapMessage(value, map) : value
}

function mapPart(part: unknown, map: MapText): unknown {
  return isPlainObject(part) && part.type === 'text' && typeof part.text === 'string' ? part : mapValue(part, map)
}
