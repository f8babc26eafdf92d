import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { Clock } from '../base/clock.ts'
import type { HeedError } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import type { Chunk } from '../message/chunk.ts'
import type { ProviderOptions } from '../message/message.ts'
import type { TracingOptions } from '../tracing/options.ts'

/** Speech to text and text to speech. `CompositeVoice` is one on models of the AI SDK. */
export interface Voice {
  /** The sound of a text. A text that streams is spoken sentence by sentence, as it comes. */
  speak(text: SpokenText, options?: SpeakOptions): Promise<SpokenAudio>
  /** The words in a sound. */
  listen(audio: AudioInput, options?: ListenOptions): Promise<string>
  /** The voices that `speaker` may name, where the implementation knows them. */
  getSpeakers(): Promise<Speaker[]>
  /** Whether `listen` works. */
  getListener(): Promise<{ enabled: boolean }>
  /** A conversation on a thread. An agent calls it with its thread: see `agent.voice.session()`. */
  openSession?(thread: VoiceThread, options: VoiceSessionOptions): Promise<VoiceSession>
  /** @internal The same voice, traced as the Heed of its agent says. */
  traced?(tracing: TracingOptions | false | undefined): Voice
}

/** A text, or a stream of its pieces; bytes are read as UTF-8. */
export type SpokenText = string | AsyncIterable<string | Uint8Array>

/** A sound: its bytes, or a stream of them. */
export type AudioInput = Uint8Array | AsyncIterable<Uint8Array>

/**
 * The sound of a text, with its true type: `audio/mpeg`, `audio/wav`, or `audio/pcm;rate=24000` for samples of 16 bits. A `CompositeVoice`
 * returns a stream of Node, which `pipeline()` of `node:stream/promises` writes to a file.
 */
export interface SpokenAudio extends AsyncIterable<Uint8Array> {
  readonly mediaType: string
  /** Ends the sound, and the call of the model that makes it. */
  destroy(error?: Error): unknown
}

/** A voice of a provider. */
export interface Speaker {
  voiceId: string
  name?: string
  language?: string
}

/** How a text is spoken. */
export interface SpeakOptions {
  /** The voice of the provider. */
  speaker?: string
  /** The language of the text, as ISO 639-1, or `auto`. */
  language?: string
  format?: AudioFormat
  /** From 1 on faster, below 1 slower. */
  speed?: number
  /** How to say it, in words, for models that can be instructed. */
  instructions?: string
  providerOptions?: ProviderOptions
  abortSignal?: AbortSignal
  headers?: Record<string, string | undefined>
}

/** How a sound is read. */
export interface ListenOptions {
  /** Detected from the bytes when absent. Samples of 16 bits without a header need `audio/pcm;rate=24000`. */
  mediaType?: string
  /** Called with what was understood so far, where the model streams. A later text may revise an earlier one. */
  onPartial?: (text: string) => void
  providerOptions?: ProviderOptions
  abortSignal?: AbortSignal
  headers?: Record<string, string | undefined>
}

/** The format of a sound: `{ type: 'audio/pcm', rate: 24000 }`, `{ type: 'audio/mpeg' }`. */
export interface AudioFormat {
  /** A media type. */
  type: string
  /** Samples a second, for `audio/pcm`. */
  rate?: number
}

/** What a session does now. `interrupted`: the user spoke over the agent, and their words are not on the thread yet. */
export type VoiceState = 'listening' | 'thinking' | 'speaking' | 'interrupted'

/** The thread of a session and how it speaks. */
export interface VoiceSessionOptions {
  threadId: string
  resourceId: string
  /** The samples of `write()`: 16 bits, one channel, so many a second. Defaults to 24,000. */
  inputRate?: number
  turn?: TurnOptions
  speaker?: string
  language?: string
}

/** When a user's turn begins and ends. */
export interface TurnOptions {
  /** `energy` (default): by the loudness of the sound. `caller`: by `beginTurn()` and `endTurn()` alone. */
  detect?: 'energy' | 'caller'
  /** The loudness above which a sound is speech, from 0 to 1: the root of the mean square of the samples. Defaults to 0.02. */
  level?: number
  /** So much speech begins a turn, in milliseconds; a shorter sound is ignored. Defaults to 120. */
  speechMs?: number
  /** So much silence ends a turn, in milliseconds. Defaults to 600. */
  silenceMs?: number
  /** The longest turn, in milliseconds: it is sent in parts. Defaults to 60,000. */
  maxMs?: number
}

/** A conversation by voice on a thread. */
export interface VoiceSession {
  readonly id: string
  /** What can be changed of a session with a realtime model; undefined for others. */
  readonly realtime?: RealtimeControls | undefined
  readonly state: VoiceState
  /** What a player does and a display shows, in order, for one reader. Ends with `close()`. */
  readonly events: AsyncIterable<VoiceSessionEvent>
  /** Samples of the microphone: 16 bits, little-endian, one channel. Resolves when more may be written. */
  write(samples: Uint8Array): Promise<void>
  /** The user begins to speak, where the caller detects it. Speaking over the agent interrupts it. */
  beginTurn(): void
  /** The user has spoken. */
  endTurn(): void
  /** Cuts the sound and the model, without words of the user. */
  interrupt(): void
  /** How far a player is: so many milliseconds of an item. With no report the session estimates it by the clock. */
  played(report: { itemId: string; ms: number }): void
  /** Ends the session. The sound stops; the run of the agent goes on. */
  close(): Promise<void>
}

/** What can be changed of a session with a realtime model, from its next answer on. */
export interface RealtimeControls {
  /** Adds to the instructions of the agent. */
  addInstructions(text: string): void
  /** Adds to the tools of the agent. They are run as its own are: with approvals, and stored. */
  addTools(tools: Readonly<Record<string, unknown>>): void
  updateConfig(config: RealtimeConfig): void
}

/** How a realtime model hears and speaks. */
export interface RealtimeConfig {
  speaker?: string
  language?: string
  /** The model that writes down what the user says, and a hint for it. */
  transcription?: { model?: string; prompt?: string }
  /** Settings of the provider's session, as the provider names them. */
  providerOptions?: Record<string, unknown>
}

/** An event of a session. */
export type VoiceSessionEvent =
  | { type: 'state'; state: VoiceState }
  /** What was understood so far of a turn that goes on, where the model streams. A later text may revise it. Nothing of it is stored. */
  | { type: 'partial'; text: string }
  /** Words of the user, as they are on the thread under `id`. */
  | { type: 'transcript'; id: string; text: string }
  /** An item begins. `rate` is that of its samples: 16 bits, little-endian, one channel. Of a realtime model, more words may follow. */
  | { type: 'sentence'; itemId: string; messageId: string; text: string; rate: number }
  /** More words of an item that a realtime model speaks. */
  | { type: 'caption'; itemId: string; text: string }
  /** Samples of an item, from `atMs` on. */
  | { type: 'audio'; itemId: string; atMs: number; audio: Uint8Array }
  /** The player was given all samples of an item, which lasts so long. */
  | { type: 'item-end'; itemId: string; ms: number }
  /** Stop the sound at once and forget what was not played, then report how far it was played. */
  | { type: 'clear' }
  /** The message was cut to what the user heard. */
  | { type: 'heard'; messageId: string; text: string }
  /** A tool of the agent. `waiting`: for a decision on the thread. */
  | { type: 'tool'; toolCallId: string; toolName: string; state: 'running' | 'waiting' | 'done' | 'failed' }
  | { type: 'error'; error: HeedError }

/** What a session needs of the thread that it speaks on. */
export interface VoiceThread {
  readonly agentId: string
  readonly threadId: string
  readonly clock: Clock
  readonly logger: Logger
  /** Of the Heed of the thread. */
  readonly tracing: TracingOptions | false | undefined
  /** Processors of the agent may change or reject what it says. */
  readonly checksOutput: boolean
  newId(): string
  /** Resolves when the listener has room for sound, besides the room in `events`; undefined where it has at once. */
  readonly room?: () => Promise<void> | undefined
  /** The chunks of the thread, from now on or from the begin of the active run. */
  subscribe(): Promise<{ stream: AsyncIterable<Chunk>; unsubscribe(): void }>
  /** Stores words of the user, which interrupt an active run. */
  send(message: { id: string; text: string; interrupted: boolean }): Promise<void>
  /** Aborts this run. Resolves when it has ended. */
  abort(runId: string): Promise<void>
  /** Cuts the text of a message to so many characters, in one transaction. `active`: not done, since it belongs to the active run. */
  keepHeard(messageId: string, heard: { characters: number; ms: number }): Promise<'kept' | 'active' | 'gone'>
  /** Lets a model answer on the thread in place of that of the agent, as long as the session is open. Returns what ends that. */
  answerWith(model: AnsweringModel): () => void
}

/** The model of a session, for the runs on its thread in this process. */
export interface AnsweringModel {
  readonly model: LanguageModelV4
  /** Added to the instructions of the agent. */
  readonly instructions: () => readonly string[]
  /** Added to the tools of the agent. */
  readonly tools: () => Readonly<Record<string, unknown>>
}
