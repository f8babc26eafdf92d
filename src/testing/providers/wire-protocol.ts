import type { JSONObject, LanguageModelV4StreamPart, LanguageModelV4Usage } from '@ai-sdk/provider'
import { HeedError } from '../../base/errors.ts'
import type { ScriptedFailure } from '../scripted-step.ts'

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
