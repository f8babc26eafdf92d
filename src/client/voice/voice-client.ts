import { checkName, checkNames } from '../../base/arguments.ts'
import type { SpeakOptions, Speaker } from '../../voice/contract.ts'
import type { Connection } from '../connection.ts'
import { RemoteVoiceSession, type RemoteSessionOptions } from './remote-session.ts'

/** How a text is spoken by the agent of a server. */
export type RemoteSpeakOptions = Pick<SpeakOptions, 'speaker' | 'language' | 'speed' | 'instructions' | 'format' | 'providerOptions'>

/** How a sound is read by the agent of a server. A stream is sent as it is: it has a `mediaType` alone. */
export interface RemoteListenOptions {
  /** Defaults to the type of the blob, else to what the bytes say. Samples without a header need `audio/pcm;rate=24000`. */
  mediaType?: string
  /** The same as an ending: `m4a`. */
  filetype?: string
  providerOptions?: SpeakOptions['providerOptions']
}

/** A sound: a blob or bytes, or a stream of bytes, which browsers can't send everywhere. */
export type RemoteAudio = Blob | Uint8Array | ReadableStream<Uint8Array>

/** The voice of an agent of a server. */
export class VoiceClient {
  readonly #connection: Connection
  readonly #path: string

  /** @internal */
  constructor(connection: Connection, path: string) {
    this.#connection = connection
    this.#path = path
  }

  /** The sound of a text: its body is read as it is made, its `content-type` is that of the sound. */
  async speak(text: string, options: RemoteSpeakOptions = {}): Promise<Response> {
    checkNames('voice.speak()', options, ['speaker', 'language', 'speed', 'instructions', 'format', 'providerOptions'])
    return this.#connection.respond(`${this.#path}/voice/speak`, { body: { text, ...options } })
  }

  /** The words in a sound. */
  async listen(audio: RemoteAudio, options: RemoteListenOptions = {}): Promise<{ text: string }> {
    checkNames('voice.listen()', options, ['mediaType', 'filetype', 'providerOptions'])
    const path = `${this.#path}/voice/listen`
    if (audio instanceof ReadableStream) {
      checkNames('voice.listen() of a stream', options, ['mediaType'])
      const contentType = options.mediaType ?? 'application/octet-stream'
      return (await this.#connection.respond(path, { content: audio, contentType })).json() as Promise<{ text: string }>
    }
    const form = new FormData()
    form.set('audio', audio instanceof Blob ? audio : new Blob([audio as Uint8Array<ArrayBuffer>]))
    if (Object.keys(options).length > 0) form.set('options', JSON.stringify(options))
    return (await this.#connection.respond(path, { content: form })).json() as Promise<{ text: string }>
  }

  /** The voices that `speaker` may name, where the server knows them. */
  getSpeakers(): Promise<Speaker[]> {
    return this.#connection.json(`${this.#path}/voice/speakers`)
  }

  getListener(): Promise<{ enabled: boolean }> {
    return this.#connection.json(`${this.#path}/voice/listener`)
  }

  /** A conversation on a thread, over a WebSocket. Pages with a microphone use `openVoiceCall()` of `heed/voice-call`, which has one. */
  async session(options: RemoteSessionOptions): Promise<RemoteVoiceSession> {
    checkNames('voice.session()', options, ['threadId', 'resourceId', 'inputRate', 'turn', 'speaker', 'language', 'reconnect'])
    checkName('threadId', options.threadId)
    if (typeof options.reconnect === 'object') checkNames('reconnect', options.reconnect, ['maxRetries', 'delayMs', 'onLost', 'onOpen'])
    const path = `${this.#path}/threads/${encodeURIComponent(options.threadId)}/voice`
    return new RemoteVoiceSession(this.#connection, path, options).open()
  }
}
