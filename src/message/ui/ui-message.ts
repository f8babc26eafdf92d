import type { JSONValue } from '../../base/json.ts'
import type { ProviderOptions } from '../message.ts'
import type { SignalView } from '../content.ts'

/** A message for user interfaces, in the shape that the AI SDK's hooks and components read (version 5 and later). */
export interface UIMessage {
  id: string
  role: 'user' | 'assistant' | 'system'
  metadata?: UIMetadata
  parts: UIPart[]
}

/** The metadata of the message, with its time and, for a signal, its record. */
export interface UIMetadata extends Record<string, unknown> {
  /** ISO 8601. */
  createdAt?: string
  signal?: SignalView
}

/** A part of a UI message, in the form of the AI SDK. */
export type UIPart =
  | { type: 'text'; text: string; providerMetadata?: ProviderOptions }
  | { type: 'reasoning'; text: string; providerMetadata?: ProviderOptions }
  | UIFilePart
  | { type: 'reasoning-file'; url: string; mediaType: string; providerMetadata?: ProviderOptions }
  | { type: 'source-url'; sourceId: string; url: string; title?: string; providerMetadata?: ProviderOptions }
  | UIDocumentPart
  | { type: 'custom'; kind: `${string}.${string}`; providerMetadata?: ProviderOptions }
  | { type: 'step-start' }
  | { type: `data-${string}`; id?: string; data: JSONValue }
  | UIToolPart

/** A file of a UI message. */
export interface UIFilePart {
  type: 'file'
  /** A hosted file, or a `data:` URL. */
  url: string
  mediaType: string
  filename?: string
  providerReference?: Record<string, string>
  providerMetadata?: ProviderOptions
}

/** A document that an answer names as its source. */
export interface UIDocumentPart {
  type: 'source-document'
  sourceId: string
  mediaType: string
  title: string
  filename?: string
  providerMetadata?: ProviderOptions
}

/** A tool call of a UI message, with its state. */
export type UIToolPart = {
  type: `tool-${string}`
  toolCallId: string
  providerExecuted?: boolean
  input: unknown
  callProviderMetadata?: ProviderOptions
} & (
  | { state: 'input-available' }
  | { state: 'approval-requested'; approval: { id: string } }
  | { state: 'approval-responded'; approval: { id: string; approved: boolean; by?: string; reason?: string } }
  | { state: 'output-available'; output: unknown; resultProviderMetadata?: ProviderOptions; approval?: Approved }
  | { state: 'output-error'; errorText: string; resultProviderMetadata?: ProviderOptions; approval?: Approved }
  | { state: 'output-denied'; approval: { id: string; approved: false; by?: string; reason?: string } }
)

type Approved = { id: string; approved: true; by?: string; reason?: string }
