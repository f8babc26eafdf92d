import type { ServerResponse } from 'node:http'
import type { JSONObject, JSONValue, LanguageModelV4StreamPart, LanguageModelV4Usage } from '@ai-sdk/provider'
import { HeedError } from '../../base/errors.ts'
import { failureMessage, type ScriptedFailure } from '../script.ts'

export type WireProtocolName = 'openai-responses' | 'openai-chat' | 'anthropic-messages' | 'ai-gateway'

/** A provider's API: how an answer, given as stream parts, is written in its words. */
export interface WireProtocol {
  name: WireProtocolName
  path: string
  /** What a request asks for, where its headers say it and not its body. */
  asks?(headers: RequestHeaders): { model: string; streaming: boolean }
  /** Why the provider would refuse the request, whatever the script says. */
  refusal?(body: JSONObject): string | undefined
  /** A fresh writer for one answer. */
  writer(answer: WireAnswer): WireWriter
  /** The JSON that goes with an error status. */
  failure(failure: ScriptedFailure): JSONObject
}

export type RequestHeaders = Readonly<Record<string, string | string[] | undefined>>

/** What is known about an answer before it is written. */
export interface WireAnswer {
  index: number
  /** The model's name, as the request has it. */
  model: string
  body: JSONObject
  /** Every part of the answer. */
  parts: readonly LanguageModelV4StreamPart[]
  usage: LanguageModelV4Usage
}

/** Frames are server-sent events, ready to be sent. */
export interface WireWriter {
  open(): string
  /** The part's frames. Throws for a part that the protocol has no words for. */
  part(part: LanguageModelV4StreamPart): string
  /** The protocol's error event, in the middle of an answer. */
  failure(failure: ScriptedFailure): string
  /** The whole answer as one JSON object, for a request without `stream`. */
  document(): JSONObject
}

/** Parts that travel over no wire: the opening is the protocol's own. */
export function isSilent(part: LanguageModelV4StreamPart): boolean {
  return part.type === 'stream-start' || part.type === 'response-metadata' || part.type === 'raw'
}

export function unspeakable(part: LanguageModelV4StreamPart, protocol: WireProtocolName): HeedError {
  return new HeedError('unsupported_option', `A scripted part of type ${part.type} has no form in ${protocol}.`)
}

export function uncited(protocol: WireProtocolName): HeedError {
  return new HeedError('unsupported_option', `In ${protocol} a source is cited by a text: script one with it.`)
}

export function unopened(id: string): HeedError {
  return new HeedError('invalid_argument', `The scripted parts go on with ${id} before it was started.`)
}

/** One server-sent event. */
export function frame(data: unknown, event?: string): string {
  const text = typeof data === 'string' ? data : JSON.stringify(data)
  return event === undefined ? `data: ${text}\n\n` : `event: ${event}\ndata: ${text}\n\n`
}

export function beginEvents(response: ServerResponse, headers: Record<string, string>): void {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache', ...headers })
  response.flushHeaders()
}

/** Resolves when the text has left for the socket, or the socket has gone. */
export function send(response: ServerResponse, text: string): Promise<void> {
  if (text === '' || response.destroyed) return Promise.resolve()
  return new Promise((resolve) => response.write(text, () => resolve()))
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

/*
 * What providers say of schemas that they do not take. They are strict about the root: an object, and no choice.
 */

const choices = ['oneOf', 'anyOf', 'allOf', 'enum', 'not']

/** OpenAI, of an answer's schema. */
export function answerRefusal(format: JSONValue | undefined): string | undefined {
  if (!isObject(format) || !isObject(format.schema)) return undefined
  const { type, anyOf } = format.schema
  if (type === 'object' && anyOf === undefined) return undefined
  const got = type === 'object' ? 'anyOf' : `type: ${JSON.stringify(type ?? 'None')}`
  return `Invalid schema for response_format '${String(format.name)}': schema must be a JSON Schema of 'type: "object"', got '${got}'.`
}

/** OpenAI, of the input of a tool. */
export function functionRefusal(tools: JSONValue | undefined): string | undefined {
  for (const tool of listed(tools)) {
    const { name, parameters } = isObject(tool.function) ? tool.function : tool
    if (isObject(parameters) && !isPlainObject(parameters)) {
      return `Invalid schema for function '${String(name)}': schema must have type 'object' and not have ${choices.map((choice) => `'${choice}'`).join('/')} at the top level.`
    }
  }
  return undefined
}

/** Anthropic, of the input of a tool. */
export function toolRefusal(tools: JSONValue | undefined): string | undefined {
  const at = listed(tools).findIndex(({ input_schema: schema }) => isObject(schema) && !isPlainObject(schema))
  return at < 0 ? undefined : `tools.${at}.custom.input_schema: must be of type object and have no oneOf, allOf or anyOf at the top level`
}

function isPlainObject(schema: JSONObject): boolean {
  return schema.type === 'object' && choices.every((choice) => !(choice in schema))
}

function listed(tools: JSONValue | undefined): JSONObject[] {
  return Array.isArray(tools) ? tools.filter(isObject) : []
}

function isObject(value: JSONValue | undefined): value is JSONObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
