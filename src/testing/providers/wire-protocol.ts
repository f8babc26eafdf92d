import type { JSONObject, JSONValue, LanguageModelV4StreamPart, LanguageModelV4Usage } from '@ai-sdk/provider'
import { HeedError } from '../../base/errors.ts'
import { failureMessage, type ScriptedFailure } from '../script.ts'

/** The protocol of a request. */
export type WireProtocolName =
  | 'openai-responses' | 'openai-chat' | 'anthropic-messages' | 'ai-gateway' | 'openai-speech' | 'openai-transcription' | 'openai-realtime'

/** A provider's API: how it encodes an answer, whose stream parts are given. */
export interface WireProtocol {
  name: WireProtocolName
  path: string
  /** The model of a request, and whether it asks for a stream, if its headers have them and not its body. */
  readHeaders?(headers: RequestHeaders): { model: string; streaming: boolean }
  /** Why the provider would reject the request; the script is not used then. */
  rejectionReason?(body: JSONObject): string | undefined
  /** Creates the encoder of one answer. */
  writer(answer: WireAnswer): WireWriter
  /** The body of a response with an error status. */
  failure(failure: ScriptedFailure): JSONObject
}

export type RequestHeaders = Readonly<Record<string, string | string[] | undefined>>

/** An answer before it is encoded. */
export interface WireAnswer {
  index: number
  /** The model's name in the request. */
  model: string
  body: JSONObject
  /** Every part of the answer. */
  parts: readonly LanguageModelV4StreamPart[]
  usage: LanguageModelV4Usage
}

/** Encodes one answer as server-sent events. */
export interface WireWriter {
  open(): string
  /** The events of a part. Throws for a part that the protocol can't encode. */
  part(part: LanguageModelV4StreamPart): string
  /** The protocol's error event, in the middle of an answer. */
  failure(failure: ScriptedFailure): string
  /** The whole answer as one JSON object, for a request without `stream`. */
  document(): JSONObject
}

/** True for parts that no protocol encodes: each begins an answer in its own way. */
export function isNotEncoded(part: LanguageModelV4StreamPart): boolean {
  return part.type === 'stream-start' || part.type === 'response-metadata' || part.type === 'raw'
}

export function unsupportedPart(part: LanguageModelV4StreamPart, protocol: WireProtocolName): HeedError {
  return new HeedError('unsupported_option', `A scripted part of type ${part.type} can't be encoded in ${protocol}.`)
}

export function sourceWithoutText(protocol: WireProtocolName): HeedError {
  return new HeedError('unsupported_option', `In ${protocol}, a text cites a source. Add a text to the step.`)
}

export function partNotStarted(id: string): HeedError {
  return new HeedError('invalid_argument', `The scripted parts continue ${id} before its start.`)
}

/** One server-sent event. */
export function frame(data: unknown, event?: string): string {
  const text = typeof data === 'string' ? data : JSON.stringify(data)
  return event === undefined ? `data: ${text}\n\n` : `event: ${event}\ndata: ${text}\n\n`
}

const types: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
}

export function openaiError(failure: ScriptedFailure): { message: string; type: string; param: null; code: string } {
  const type = failure.type ?? types[failure.status] ?? 'server_error'
  return { message: failureMessage(failure), type, param: null, code: type }
}

export function openaiFailure(failure: ScriptedFailure): JSONObject {
  return { error: openaiError(failure) }
}

/* The errors of providers about schemas that they reject. The root must be an object, without alternatives. */

const choices = ['oneOf', 'anyOf', 'allOf', 'enum', 'not']

/** OpenAI's error about the schema of a structured answer. */
export function responseSchemaError(format: JSONValue | undefined): string | undefined {
  if (!isObject(format) || !isObject(format.schema)) return undefined
  const { type, anyOf } = format.schema
  if (type === 'object' && anyOf === undefined) return undefined
  const got = type === 'object' ? 'anyOf' : `type: ${JSON.stringify(type ?? 'None')}`
  return `Invalid schema for response_format '${String(format.name)}': schema must be a JSON Schema of 'type: "object"', got '${got}'.`
}

/** OpenAI's error about the input schema of a tool. */
export function functionSchemaError(tools: JSONValue | undefined): string | undefined {
  for (const tool of objectsIn(tools)) {
    const { name, parameters } = isObject(tool.function) ? tool.function : tool
    if (isObject(parameters) && !isPlainObject(parameters)) {
      const forbidden = choices.map((choice) => `'${choice}'`).join('/')
      return `Invalid schema for function '${String(name)}': schema must have type 'object' and not have ${forbidden} at the top level.`
    }
  }
  return undefined
}

/** Anthropic's error about the input schema of a tool. */
export function toolSchemaError(tools: JSONValue | undefined): string | undefined {
  const at = objectsIn(tools).findIndex(({ input_schema: schema }) => isObject(schema) && !isPlainObject(schema))
  return at < 0 ? undefined : `tools.${at}.custom.input_schema: must be of type object and have no oneOf, allOf or anyOf at the top level`
}

function isPlainObject(schema: JSONObject): boolean {
  return schema.type === 'object' && choices.every((choice) => !(choice in schema))
}

function objectsIn(tools: JSONValue | undefined): JSONObject[] {
  return Array.isArray(tools) ? tools.filter(isObject) : []
}

function isObject(value: JSONValue | undefined): value is JSONObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
