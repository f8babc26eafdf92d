import type { JSONObject, JSONValue } from '../base/json.ts'
import type { Message, ProviderOptions } from '../message/message.ts'
import type { SignalDataPart } from './echo.ts'
import type { SignalInputType, SignalType } from './kinds.ts'
import type { UserModelMessage } from './render.ts'

export interface SignalTextPart {
  type: 'text'
  text: string
  providerOptions?: ProviderOptions
}

export type FileBytes = Uint8Array | ArrayBuffer

export interface SignalFilePart {
  type: 'file'
  /** Bytes, base64, or a URL (as text too, `data:` included). */
  data: FileInput
  mediaType: string
  filename?: string
  providerOptions?: ProviderOptions
}

export interface SignalImagePart {
  type: 'image'
  image: FileInput
  /** Found out from the data where it is missing. */
  mediaType?: string
  providerOptions?: ProviderOptions
}

export type FileInput = string | FileBytes | URL | { type: 'data'; data: string | FileBytes } | { type: 'url'; url: string | URL }

export type SignalContents = string | Array<SignalTextPart | SignalFilePart | SignalImagePart>

/** Objects and arrays are written as JSON; `null` and `undefined` are left out. */
export type SignalAttributes = Record<string, JSONValue | undefined>

export interface SignalInput {
  type: SignalInputType
  /** The same id twice in a thread is one signal. */
  id?: string
  /** The XML tag that the model sees. */
  tagName?: string
  contents: SignalContents
  attributes?: SignalAttributes
  /** For the application; never shown to the model. Must be JSON. */
  metadata?: Record<string, unknown>
  providerOptions?: ProviderOptions
  /**
   * For the run that takes it, and nobody afterwards: no display shows it and nothing finds it again. Where it would only be persisted, it is discarded. Not
   * for states, which are there to be kept.
   */
  transient?: boolean
}

/** What a user says: contents alone, or with what goes beside them. */
export type MessageInput = SignalContents | MessageInputObject

export type MessageInputObject = Omit<SignalInput, 'type' | 'tagName' | 'transient'>

/**
 * A signal after validation: JSON through and through, so that what is stored, sent over the wire and read back is equal to it.
 * Absent fields are absent keys. Contents of one text alone are always a string.
 */
export interface Signal {
  id: string
  type: SignalType
  tagName: string
  contents: StoredContents
  attributes?: StoredAttributes
  metadata?: JSONObject
  providerOptions?: ProviderOptions
  /** ISO 8601. */
  createdAt: string
  acceptedAt?: string
  transient?: true
  /** Plain user text that reads like a signal's tag. It is shown to the model inside an escaped element. */
  guarded?: true
}

/** What a model is shown of a signal, and what it is known by. */
export type ShownSignal = Omit<Signal, 'createdAt' | 'acceptedAt'>

export type StoredContents = string | StoredPart[]
export type StoredAttributes = Record<string, string | number | boolean>
export type StoredPart = SignalTextPart | StoredFilePart

export interface StoredFilePart {
  type: 'file'
  /** A URL or base64. */
  data: string
  mediaType: string
  filename?: string
  providerOptions?: ProviderOptions
}

/** A signal as its sender gets it back. It may be logged, cloned and sent again: the conversions are no fields of their own. */
export interface CreatedAgentSignal extends Readonly<Omit<Signal, 'createdAt' | 'acceptedAt'>> {
  readonly createdAt: Date
  readonly acceptedAt?: Date
  /** The message as history holds it. */
  toDBMessage(owner?: { threadId?: string; resourceId?: string }): Message
  /** The message as the model receives it. */
  toLLMMessage(): UserModelMessage
  /** The part with which watchers learn of it. */
  toDataPart(): SignalDataPart
}

/** True for input that the model reads as an ordinary user message: no element around it, not a byte changed. */
export function isPlain(signal: Pick<Signal, 'type' | 'tagName' | 'attributes'>): boolean {
  return signal.type === 'user' && signal.tagName === 'user' && Object.keys(signal.attributes ?? {}).length === 0
}
