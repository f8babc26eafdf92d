import type { LanguageModelV4Message } from '@ai-sdk/provider'
import type { JSONObject, JSONValue } from '../base/json.ts'
import type { Message, ProviderOptions } from '../message/message.ts'

/** A text of a signal. */
export interface SignalTextPart {
  type: 'text'
  text: string
  providerOptions?: ProviderOptions
}

/** The bytes of a file. */
export type FileBytes = Uint8Array | ArrayBuffer

/** A file of a signal. */
export interface SignalFilePart {
  type: 'file'
  /** Bytes, base64, or a URL (as text too, `data:` included). */
  data: FileInput
  mediaType: string
  filename?: string
  providerOptions?: ProviderOptions
}

/** An image of a signal. */
export interface SignalImagePart {
  type: 'image'
  image: FileInput
  /** Detected from the data when absent. */
  mediaType?: string
  providerOptions?: ProviderOptions
}

/** A file: bytes, base64, or a URL. */
export type FileInput = string | FileBytes | URL | { type: 'data'; data: string | FileBytes } | { type: 'url'; url: string | URL }

/** Text, or parts with files. */
export type SignalContents = string | Array<SignalTextPart | SignalFilePart | SignalImagePart>

/** Objects and arrays are rendered as JSON; `null` and `undefined` are left out. */
export type SignalAttributes = Record<string, JSONValue | undefined>

/** A signal as a caller sends it. */
export interface SignalInput {
  type: SignalInputType
  /** A caller id: sent twice to a thread, the signal is stored once. */
  id?: string
  /** The XML tag that the model sees. */
  tagName?: string
  contents: SignalContents
  attributes?: SignalAttributes
  /** For the application; never shown to the model. Must be JSON. */
  metadata?: Record<string, unknown>
  providerOptions?: ProviderOptions
  /**
   * For the run that drains it only: readers of history don't see it and recall doesn't find it. Where it would only be persisted, it is
   * discarded. Rejected for states, which a lane stores.
   */
  transient?: boolean
}

/** A user's message: contents alone, or with an id, attributes, metadata or provider options. */
export type MessageInput = SignalContents | MessageInputObject

/** A user's message with an id, attributes or metadata. */
export type MessageInputObject = Omit<SignalInput, 'type' | 'tagName' | 'transient'>

/**
 * A signal after validation. It is plain JSON, so that the stored signal, the published one and the one that is read back are equal to
 * it. Absent fields are absent keys. Contents with a single text are always a string.
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
  /** Set for plain user text that imitates the tag of a signal: the model receives it escaped, inside an element. */
  guarded?: true
}

/** The fields of a signal that rendering reads. */
export type ModelSignal = Omit<Signal, 'createdAt' | 'acceptedAt'>

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

/** A signal as its sender receives it. It can be logged, cloned and sent again: the conversions are not own properties. */
export interface CreatedAgentSignal extends Readonly<Omit<Signal, 'createdAt' | 'acceptedAt'>> {
  readonly createdAt: Date
  readonly acceptedAt?: Date
  /** The message as history holds it. */
  toDBMessage(owner?: { threadId?: string; resourceId?: string }): Message
  /** The message as the model receives it. */
  toLLMMessage(): UserModelMessage
  /** The echo that subscribers receive. */
  toDataPart(): SignalDataPart
}

/** A signal as the model receives it. */
export type UserModelMessage = Extract<LanguageModelV4Message, { role: 'user' }>

/** The echo of a signal. It is not stored: the row of the signal is. */
export interface SignalDataPart {
  type: 'data-user-message' | 'data-signal'
  data: Omit<Signal, 'guarded'>
  transient: true
}

/** The echo of a signal in the stream of the run that drained it. */
export interface SignalDataChunk extends SignalDataPart {
  runId: string
}

/** The four types of a signal. The model sees its `tagName`. */
export type SignalType = 'user' | 'state' | 'reactive' | 'notification'

/** The types that a sender may write: also two older names, each of which stands for a type and a tag. */
export type SignalInputType = SignalType | 'user-message' | 'system-reminder'

export interface SignalKind {
  type: SignalType
  tagName: string
}
