import type { TurnOptions, VoiceSessionEvent } from './contract.ts'

/** The name of this protocol, as a subprotocol of the WebSocket. */
export const voiceProtocol = 'heed.voice.v1'
/** A subprotocol that is no protocol, but carries the ticket of a page: pages can't send headers, and addresses are logged. */
export const ticketPrefix = 'heed.ticket.'

/** What a client says in JSON. Its sound are binary messages: samples of 16 bits, little-endian, one channel. */
export type VoiceClientMessage =
  /** The first message. With `session`, it goes on with a session whose connection was lost, after the message `after` of the server. */
  | { type: 'start'; inputRate?: number; speaker?: string; language?: string; turn?: TurnOptions; session?: string; after?: number }
  | { type: 'begin' }
  | { type: 'end' }
  | { type: 'interrupt' }
  | { type: 'played'; itemId: string; ms: number }
  /** The client has all messages up to this one. */
  | { type: 'ack'; seq: number }
  /** The client has lost so many bytes of its sound, which the server has to count as received. */
  | { type: 'gap'; bytes: number }
  /** Ends the session. A connection that just ends can be resumed. */
  | { type: 'close' }

/** An error of a session as JSON. `final`: the session is over, or was never opened. */
export interface WireError {
  code: string
  message: string
  retryable: boolean
  details?: Record<string, unknown>
}

type Plain = Exclude<VoiceSessionEvent, { type: 'audio' | 'error' | 'sentence' }>
type Announced = Extract<VoiceSessionEvent, { type: 'sentence' }> & { item: number }

/** What the server says in JSON. The samples of an item are binary messages: see `encodeAudio`. */
export type VoiceServerMessage =
  /** The session is open. `received`: so many bytes of the client's sound are there. */
  | { type: 'started'; session: string; resumed: boolean; received: number }
  | { type: 'received'; bytes: number }
  | ({ seq: number } & (Plain | Announced | { type: 'error'; error: WireError }))
  | { type: 'error'; error: WireError; final: true }

/** Why the server closed a connection, as far as the client is to act on it. */
export const voiceClose = { replaced: 4001, invalid: 4400, gone: 4404, over: 4408, busy: 4409, failed: 4500 } as const

const headBytes = 12

/** Samples of an item, as a binary message: its number, that of the item, and from when on in the item, in milliseconds. */
export interface WireAudio {
  seq: number
  item: number
  atMs: number
  audio: Uint8Array
}

export function encodeAudio({ seq, item, atMs, audio }: WireAudio): Uint8Array {
  const bytes = new Uint8Array(headBytes + audio.length)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, seq, true)
  view.setUint32(4, item, true)
  view.setUint32(8, atMs, true)
  bytes.set(audio, headBytes)
  return bytes
}

export function decodeAudio(bytes: Uint8Array): WireAudio | undefined {
  if (bytes.length < headBytes) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return { seq: view.getUint32(0, true), item: view.getUint32(4, true), atMs: view.getUint32(8, true), audio: bytes.subarray(headBytes) }
}
