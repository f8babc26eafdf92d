import { randomUUID } from 'node:crypto'
import type { JSONObject, JSONValue, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { HeedError } from '../../base/errors.ts'
import type { ServerSocket } from '../../socket/server-socket.ts'
import { beforeAnswer, playback, type Pace, type PlaybackContext } from '../playback.ts'
import { isFailure, type ScriptedAnswer } from '../script.ts'
import { generated, stepParts } from '../step-parts.ts'
import { spelledRate } from '../spelled-sound.ts'
import type { ServerSpeech } from './openai-audio.ts'
import { isNotEncoded, openaiError, unsupportedPart } from './wire-protocol.ts'

/** A session of a realtime model with the server. */
export interface RecordedRealtimeSession {
  /** What the client sent, oldest first. */
  readonly events: readonly JSONObject[]
  /** The settings of the session. */
  readonly session: JSONObject
  /** The conversation, as the model has it: what the user said as its transcript, what the model said as far as it was not cut. */
  readonly items: readonly RealtimeItem[]
  /** Ends the connection, as a network does. */
  drop(): void
}

/** An item of the conversation of a realtime model. */
export interface RealtimeItem {
  readonly id: string
  readonly type: 'message' | 'function_call' | 'function_call_output'
  readonly role?: 'user' | 'assistant'
  /** Its words. */
  text: string
  /** How much of its sound the model believes to have spoken. */
  audioMs?: number
  readonly callId?: string
}

interface RealtimeOptions extends PlaybackContext {
  pace?: Pace | undefined
  speech: ServerSpeech
  /** The step that answers. */
  next(session: RecordedRealtimeSession): Promise<{ index: number; step: ScriptedAnswer }>
}

/** The shortest sound that may be committed. */
const leastMs = 100

/** The server's side of OpenAI's realtime protocol, in its general form, on one connection. */
export class RealtimeConversation implements RecordedRealtimeSession {
  readonly events: JSONObject[] = []
  readonly items: RealtimeItem[] = []
  session: JSONObject = { type: 'realtime', id: `sess_${randomUUID()}` }
  readonly #socket: () => ServerSocket
  readonly #options: RealtimeOptions
  #input: Uint8Array[] = []
  #response: { id: string; stop: AbortController } | undefined
  #transcribing: Promise<void> = Promise.resolve()

  constructor(socket: () => ServerSocket, options: RealtimeOptions) {
    this.#socket = socket
    this.#options = options
  }

  open(): void {
    this.#send({ type: 'session.created', session: this.session })
  }

  drop(): void {
    this.#socket().destroy()
  }

  /** The connection is over. */
  close(): void {
    this.#response?.stop.abort()
  }

  handle(text: string): void {
    const event = JSON.parse(text) as JSONObject & { type: string }
    // Sound is in the transcripts.
    this.events.push(event.type === 'input_audio_buffer.append' ? { type: event.type } : event)
    switch (event.type) {
      case 'session.update':
        this.session = { ...this.session, ...(event.session as JSONObject) }
        return this.#send({ type: 'session.updated', session: this.session })
      case 'input_audio_buffer.append':
        return void this.#input.push(Buffer.from(String(event.audio), 'base64'))
      case 'input_audio_buffer.clear':
        this.#input = []
        return this.#send({ type: 'input_audio_buffer.cleared' })
      case 'input_audio_buffer.commit':
        return this.#commit()
      case 'conversation.item.create':
        return this.#create(event.item as JSONObject)
      case 'conversation.item.truncate':
        return this.#truncate(event)
      case 'response.create':
        return this.#respond()
      case 'response.cancel':
        if (!this.#response) return this.#fail('response_cancel_not_active', 'There is no active response.')
        return this.#response.stop.abort()
      default:
        return this.#fail('unknown_event', `The event ${event.type} is not known.`)
    }
  }

  #send(event: JSONObject): void {
    void this.#socket().send(JSON.stringify({ event_id: `event_${randomUUID()}`, ...event }))
  }

  #fail(code: string, message: string): void {
    this.#send({ type: 'error', error: { type: 'invalid_request_error', code, message, param: null, event_id: null } })
  }

  #add(item: Omit<RealtimeItem, 'id'>): RealtimeItem {
    const added = { id: `item_${randomUUID()}`, ...item }
    this.items.push(added)
    return added
  }

  #commit(): void {
    const pcm = Buffer.concat(this.#input)
    this.#input = []
    if (msOf(pcm.length) < leastMs) return this.#fail('input_audio_buffer_commit_empty', `The buffer has less than ${leastMs} ms of sound.`)
    const previous = this.items.at(-1)?.id ?? null
    const item = this.#add({ type: 'message', role: 'user', text: '' })
    this.#send({ type: 'input_audio_buffer.committed', item_id: item.id, previous_item_id: previous })
    this.#send({ type: 'conversation.item.added', previous_item_id: previous, item: { id: item.id, type: 'message', role: 'user' } })
    const { input } = (this.session.audio ?? {}) as { input?: { transcription?: JSONValue } }
    this.#transcribing = this.#transcribing.then(async () => {
      try {
        item.text = await this.#options.speech.listen(pcm)
        if (!input?.transcription) return
        const type = 'conversation.item.input_audio_transcription.completed'
        this.#send({ type, item_id: item.id, content_index: 0, transcript: item.text })
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error)
        const failed = 'conversation.item.input_audio_transcription.failed'
        this.#send({ type: failed, item_id: item.id, content_index: 0, error: { type: 'server_error', code: 'failed', message } })
      }
    })
  }

  #create(item: JSONObject): void {
    const callId = item.type === 'function_call_output' ? String(item.call_id) : undefined
    if (callId !== undefined && !this.items.some((one) => one.type === 'function_call' && one.callId === callId)) {
      return this.#fail('invalid_tool_call_id', `There is no call ${callId}.`)
    }
    const texts = Array.isArray(item.content) ? (item.content as Array<{ text?: string }>).map(({ text = '' }) => text) : []
    const added = callId === undefined ? this.#add({ type: 'message', role: 'user', text: texts.join('') })
      : this.#add({ type: 'function_call_output', text: String(item.output), callId })
    this.#send({ type: 'conversation.item.added', item: { ...item, id: added.id } })
  }

  #truncate({ item_id: id, audio_end_ms: ms }: JSONObject): void {
    const item = this.items.find((one) => one.id === id && one.role === 'assistant')
    if (!item) return this.#fail('item_truncate_invalid_item_id', `There is no item ${String(id)}.`)
    if (Number(ms) > (item.audioMs ?? 0)) return this.#fail('invalid_value', `The sound of ${String(id)} is shorter than ${String(ms)} ms.`)
    item.text = item.text.slice(0, Math.round((item.text.length * Number(ms)) / (item.audioMs || 1)))
    item.audioMs = Number(ms)
    this.#send({ type: 'conversation.item.truncated', item_id: item.id, content_index: 0, audio_end_ms: item.audioMs })
  }

  #respond(): void {
    if (this.#response) return this.#fail('conversation_already_has_active_response', 'A response is active.')
    const response = { id: `resp_${randomUUID()}`, stop: new AbortController() }
    this.#response = response
    const stopped = () => response.stop.abort()
    this.#options.signal.addEventListener('abort', stopped, { once: true })
    void this.#answer(response).catch((error: unknown) => {
      this.#response = undefined
      const failure = isFailure(error) ? error : { status: 500, message: error instanceof Error ? error.message : String(error) }
      this.#done(response.id, 'failed', { type: 'failed', error: openaiError(failure) })
    }).finally(() => this.#options.signal.removeEventListener('abort', stopped))
  }

  async #answer({ id, stop }: { id: string; stop: AbortController }): Promise<void> {
    this.#send({ type: 'response.created', response: { id, status: 'in_progress' } })
    const { clock, pace } = this.#options
    const context = { clock, pace, signal: stop.signal }
    const { index, step } = await this.#options.next(this)
    const parts = stepParts(step, { index, inputCharacters: this.items.reduce((sum, { text }) => sum + text.length, 0) })
    const writer = new ResponseWriter(id, parts, this.items, this.#options.speech, (event) => this.#send(event))
    try {
      await beforeAnswer(step, context)
      let sent = 0
      for await (const due of playback(step, parts, context)) for (; sent < due; sent++) await writer.write(parts[sent], stop.signal)
    } catch (error) {
      if (stop.signal.aborted) {
        this.#response = undefined
        return this.#done(id, 'cancelled', { type: 'cancelled', reason: 'client_cancelled' })
      }
      // The script broke the answer off.
      if (step.errorAfter && !isFailure(error)) return this.drop()
      throw error
    }
    this.#response = undefined
    const { usage, finishReason } = generated(parts.filter((part) => part.type === 'finish'))
    const status = finishReason.unified === 'length' ? 'incomplete' : 'completed'
    this.#done(id, status, null, { input_tokens: usage.inputTokens.total ?? 0, output_tokens: usage.outputTokens.total ?? 0 })
  }

  #done(id: string, status: string, details: JSONValue, usage: JSONObject | null = null): void {
    this.#send({ type: 'response.done', response: { id, status, status_details: details, usage } })
  }
}

/** Writes the parts of an answer as events. */
class ResponseWriter {
  readonly #responseId: string
  readonly #parts: readonly LanguageModelV4StreamPart[]
  readonly #items: RealtimeItem[]
  readonly #speech: ServerSpeech
  readonly #send: (event: JSONObject) => void
  #item: RealtimeItem | undefined
  #sound: Uint8Array = new Uint8Array()
  #spoken = 0
  #whole = ''

  constructor(
    responseId: string, parts: readonly LanguageModelV4StreamPart[], items: RealtimeItem[], speech: ServerSpeech,
    send: (event: JSONObject) => void,
  ) {
    this.#responseId = responseId
    this.#parts = parts
    this.#items = items
    this.#speech = speech
    this.#send = send
  }

  async write(part: LanguageModelV4StreamPart | undefined, signal: AbortSignal): Promise<void> {
    if (!part || isNotEncoded(part)) return
    switch (part.type) {
      case 'text-start':
        return this.#begin(part.id, signal)
      case 'text-delta':
        return this.#say(part.delta)
      case 'text-end':
        return this.#end()
      case 'tool-call':
        return this.#call(part)
      case 'tool-input-start':
      case 'tool-input-delta':
      case 'tool-input-end':
      case 'finish':
        return
      default:
        throw unsupportedPart(part, 'openai-realtime')
    }
  }

  #event(type: string, item: RealtimeItem, more: JSONObject = {}): void {
    this.#send({ type, response_id: this.#responseId, item_id: item.id, output_index: 0, content_index: 0, ...more })
  }

  async #begin(id: string, signal: AbortSignal): Promise<void> {
    this.#whole = this.#parts.flatMap((part) => (part.type === 'text-delta' && part.id === id ? part.delta : [])).join('')
    this.#sound = await this.#speech.speak(this.#whole)
    signal.throwIfAborted()
    this.#spoken = 0
    const item: RealtimeItem = { id: `item_${randomUUID()}`, type: 'message', role: 'assistant', text: '', audioMs: 0 }
    this.#item = item
    this.#items.push(item)
    const added = { id: item.id, type: 'message', role: 'assistant' }
    this.#send({ type: 'response.output_item.added', response_id: this.#responseId, output_index: 0, item: added })
    this.#event('response.content_part.added', item, { part: { type: 'audio' } })
  }

  /** The sound is divided as the text is. */
  #say(delta: string): void {
    const item = this.#item
    if (!item) throw new HeedError('invalid_argument', 'The scripted parts continue a text before its start.')
    const from = evenPart(this.#sound.length, this.#spoken / this.#whole.length)
    this.#spoken += delta.length
    const audio = this.#sound.subarray(from, evenPart(this.#sound.length, this.#spoken / this.#whole.length))
    item.text += delta
    item.audioMs = (item.audioMs ?? 0) + msOf(audio.length)
    this.#event('response.output_audio_transcript.delta', item, { delta })
    if (audio.length > 0) this.#event('response.output_audio.delta', item, { delta: Buffer.from(audio).toString('base64') })
  }

  #end(): void {
    const item = this.#item
    if (!item) return
    this.#event('response.output_audio.done', item)
    this.#event('response.output_audio_transcript.done', item, { transcript: item.text })
    this.#event('response.content_part.done', item, { part: { type: 'audio', transcript: item.text } })
    const done = { id: item.id, type: 'message', role: 'assistant' }
    this.#send({ type: 'response.output_item.done', response_id: this.#responseId, output_index: 0, item: done })
    this.#item = undefined
  }

  #call({ toolCallId, toolName, input }: Extract<LanguageModelV4StreamPart, { type: 'tool-call' }>): void {
    const item: RealtimeItem = { id: `item_${randomUUID()}`, type: 'function_call', text: input, callId: toolCallId }
    this.#items.push(item)
    const shown = { id: item.id, type: 'function_call', call_id: toolCallId, name: toolName }
    this.#send({ type: 'response.output_item.added', response_id: this.#responseId, output_index: 0, item: shown })
    this.#event('response.function_call_arguments.delta', item, { call_id: toolCallId, delta: input })
    this.#event('response.function_call_arguments.done', item, { call_id: toolCallId, name: toolName, arguments: input })
    this.#send({ type: 'response.output_item.done', response_id: this.#responseId, output_index: 0, item: { ...shown, arguments: input } })
  }
}

function evenPart(length: number, share: number): number {
  return 2 * Math.round((length * share) / 2)
}

function msOf(bytes: number): number {
  return (bytes / 2 / spelledRate) * 1_000
}
