import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import type { JSONObject } from '@ai-sdk/provider'
import { checkNames } from '../../base/arguments.ts'
import { systemClock, type Clock } from '../../base/clock.ts'
import { checkHandshake, openingHead } from '../../socket/handshake.ts'
import { ServerSocket } from '../../socket/server-socket.ts'
import { generated, stepParts } from '../step-parts.ts'
import { beforeAnswer, checkPace, playback, type Pace, type PlaybackContext } from '../playback.ts'
import { isFailure, scriptedAnswer, type Script, type ScriptedAnswer } from '../script.ts'
import { aiGateway } from './ai-gateway.ts'
import { anthropicMessages } from './anthropic-messages.ts'
import { readTranscription, speech, spelledSpeech, type ServerSpeech } from './openai-audio.ts'
import { openaiChat } from './openai-chat.ts'
import { RealtimeConversation, type RecordedRealtimeSession } from './openai-realtime.ts'
import { openaiResponses } from './openai-responses.ts'
import { openaiFailure, type RequestHeaders, type WireProtocol, type WireProtocolName } from './wire-protocol.ts'

/** The options of `providerServer()`. */
export interface ProviderServerOptions {
  script?: Script<RecordedRequest>
  loop?: boolean
  pace?: Pace
  /** For `pace` and `delayMs`. Defaults to the system's clock. */
  clock?: Clock
  /** How the server speaks and listens. By default it spells: see `spelledSound`. */
  speech?: Partial<ServerSpeech>
}

/** A request that the server received. */
export interface RecordedRequest {
  /** Its position in `requests`. */
  readonly index: number
  readonly protocol: WireProtocolName
  readonly headers: RequestHeaders
  readonly body: JSONObject
  /** How the answer ended: `broken` by the script, `disconnected` by the client or by `close()`. */
  readonly outcome: Promise<'answered' | 'broken' | 'disconnected'>
}

/** A server on this machine that speaks the protocols of providers. */
export interface ProviderServer {
  readonly url: string
  /** The options of `createOpenAI`. */
  readonly openai: { baseURL: string; apiKey: string }
  /** The options of `createAnthropic`. */
  readonly anthropic: { baseURL: string; apiKey: string }
  /** The options of `createGateway`. */
  readonly gateway: { baseURL: string; apiKey: string }
  /** Every request for a model, oldest first; each answer of a realtime model is one. */
  readonly requests: readonly RecordedRequest[]
  /** Every session of a realtime model, oldest first. */
  readonly realtime: readonly RecordedRealtimeSession[]
  /** Sets the script; its first step answers the next request. */
  script(script: Script<RecordedRequest>, options?: { loop?: boolean }): void
  /** Ends every connection and every wait. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

const protocols = [openaiResponses, openaiChat, anthropicMessages, aiGateway]

/**
 * A server on this machine with the protocols of OpenAI (Responses, Chat Completions, speech, transcription, Realtime), Anthropic
 * (Messages)
 * and the gateway of the `ai` package, which answers with the steps of a script. Speech and transcription need no steps: they say what they
 * are asked to say, and understand what such a sound says. The response to a request without `stream` is one JSON object. A step that the
 * protocol can't encode, a missing step, and a schema that the provider would reject give status 400 with a message that names the
 * problem.
 *
 * @example
 * await using server = await providerServer({ script: ['Hello.', { error: { status: 429, headers: { 'retry-after': '2' } } }] })
 * const openai = createOpenAI(server.openai)
 */
export async function providerServer(options: ProviderServerOptions = {}): Promise<ProviderServer> {
  checkNames('providerServer()', options, ['script', 'loop', 'pace', 'clock', 'speech'])
  const { clock = systemClock, pace, speech: given = {} } = options
  checkNames('speech', given, ['speak', 'listen'])
  if (pace !== undefined) checkPace(pace)
  const requests: RecordedRequest[] = []
  const open = new Set<AbortController>()
  const realtime: RealtimeConversation[] = []
  const answering: Answering = {
    clock, pace, requests, open, realtime, sockets: new Set(), speech: { ...spelledSpeech, ...given },
    nextStep: stepsOf(options.script ?? [], options.loop),
  }
  const server = createServer((request, response) => void respond(request, response, answering))
  server.on('upgrade', (request, stream, head) => upgrade(request, stream, head, answering))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => resolve())
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const access = { baseURL: `${url}/v1`, apiKey: 'scripted' }
  const close = async () => {
    for (const stop of open) stop.abort()
    for (const socket of answering.sockets) socket.destroy()
    const closed = new Promise((resolve) => server.close(resolve))
    server.closeAllConnections()
    await closed
  }

  return {
    url,
    openai: access,
    anthropic: access,
    gateway: { baseURL: `${url}/v4/ai`, apiKey: 'scripted' },
    requests,
    realtime,
    script(script, options = {}) {
      checkNames('script()', options, ['loop'])
      const { loop } = options
      answering.nextStep = stepsOf(script, loop)
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

interface Answering {
  clock: Clock
  pace: ProviderServerOptions['pace']
  requests: RecordedRequest[]
  /** Of the requests that are being answered. */
  open: Set<AbortController>
  realtime: RealtimeConversation[]
  sockets: Set<ServerSocket>
  speech: ServerSpeech
  nextStep: ReturnType<typeof stepsOf>
}

async function respond(request: IncomingMessage, response: ServerResponse, answering: Answering): Promise<void> {
  const { clock, pace, requests, open } = answering
  const stop = new AbortController()
  const ended = Promise.withResolvers<Awaited<RecordedRequest['outcome']>>()
  let broken = false
  open.add(stop)
  response.on('error', () => {})
  response.once('close', () => {
    open.delete(stop)
    stop.abort()
    ended.resolve(broken ? 'broken' : response.writableFinished ? 'answered' : 'disconnected')
  })
  const { pathname } = new URL(request.url ?? '/', 'http://localhost')
  if (audioPaths.includes(pathname) && request.method === 'POST') {
    return respondWithAudio(request, response, pathname, answering, ended.promise)
  }
  const protocol = protocols.find(({ path }) => path === pathname && request.method === 'POST')
  if (!protocol) {
    const message = `Send a POST to one of ${[...protocols.map(({ path }) => path), ...audioPaths].join(', ')}.`
    return reply(response, 404, { error: { message } })
  }
  try {
    const text = await readText(request)
    const body = JSON.parse(text) as JSONObject
    const recorded = { index: requests.length, protocol: protocol.name, headers: request.headers, body, outcome: ended.promise }
    requests.push(recorded)
    const rejected = protocol.rejectionReason?.(body)
    if (rejected !== undefined) return reply(response, 400, protocol.failure({ status: 400, message: rejected }))
    const step = await answering.nextStep(recorded)
    const target = protocol.readHeaders?.(request.headers) ?? { model: String(body.model), streaming: body.stream === true }
    const exchange = { protocol, index: recorded.index, body, ...target, characters: text.length }
    broken = (await answerOverWire(response, step, exchange, { clock, pace, signal: stop.signal })) === 'broken'
    if (broken) response.destroy()
  } catch (error) {
    if (stop.signal.aborted || response.headersSent) return void response.destroy()
    reply(response, 400, protocol.failure({ status: 400, message: error instanceof Error ? error.message : String(error) }))
  }
}

const audioPaths = ['/v1/audio/speech', '/v1/audio/transcriptions']

/** Answers requests for sound and for words. */
async function respondWithAudio(
  request: IncomingMessage, response: ServerResponse, path: string, answering: Answering, outcome: RecordedRequest['outcome'],
): Promise<void> {
  const { requests, speech: voice } = answering
  const record = (protocol: WireProtocolName, body: JSONObject) => {
    requests.push({ index: requests.length, protocol, headers: request.headers, body, outcome })
  }
  try {
    const bytes = await buffer(request)
    if (path === '/v1/audio/speech') {
      const body = JSON.parse(bytes.toString()) as JSONObject
      record('openai-speech', body)
      const sound = await speech(body, voice)
      response.writeHead(200, { 'content-type': sound.type }).end(sound.bytes)
      return
    }
    const { body, pcm } = await readTranscription(bytes, request.headers['content-type'] ?? '')
    record('openai-transcription', body)
    reply(response, 200, { text: await voice.listen(pcm) })
  } catch (error) {
    reply(response, 400, openaiFailure({ status: 400, message: error instanceof Error ? error.message : String(error) }))
  }
}

/** Opens a session of a realtime model. */
function upgrade(request: IncomingMessage, stream: Duplex, head: Uint8Array, answering: Answering): void {
  const { clock, pace, requests, open, realtime, sockets, speech: voice } = answering
  const asked = { method: request.method ?? '', header: (name: string) => String(request.headers[name] ?? '') }
  const { pathname } = new URL(request.url ?? '/', 'http://localhost')
  try {
    if (pathname !== '/v1/realtime') throw new Error('Open /v1/realtime.')
    checkHandshake(asked)
  } catch {
    stream.end('HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')
    return
  }
  const stop = new AbortController()
  open.add(stop)
  const ended = Promise.withResolvers<Awaited<RecordedRequest['outcome']>>()
  const conversation = new RealtimeConversation(() => socket, {
    clock, pace, signal: stop.signal, speech: voice,
    async next({ session, items }) {
      const body = { session, items: items.map((item) => ({ ...item })) } as unknown as JSONObject
      const { headers } = request
      const recorded: RecordedRequest = { index: requests.length, protocol: 'openai-realtime', headers, body, outcome: ended.promise }
      requests.push(recorded)
      return { index: recorded.index, step: await answering.nextStep(recorded) }
    },
  })
  stream.write(openingHead(asked, undefined))
  const socket: ServerSocket = new ServerSocket(stream, head, {
    clock, pingMs: 600_000, maxMessageBytes: 20_000_000,
    onMessage: (message) => {
      if (typeof message === 'string') conversation.handle(message)
      return undefined
    },
    onClose: () => {
      stop.abort()
      open.delete(stop)
      sockets.delete(socket)
      ended.resolve('disconnected')
    },
  })
  sockets.add(socket)
  realtime.push(conversation)
  conversation.open()
}

/** Returns the steps of a script, one per request. */
function stepsOf(script: Script<RecordedRequest>, loop: boolean | undefined) {
  let taken = 0
  return (request: RecordedRequest) => scriptedAnswer(script, request, { index: taken++, loop })
}

async function readText(request: IncomingMessage): Promise<string> {
  request.setEncoding('utf8')
  let text = ''
  for await (const piece of request) text += piece
  return text
}

interface WireExchange {
  protocol: WireProtocol
  index: number
  body: JSONObject
  model: string
  streaming: boolean
  /** The length of the request, from which input tokens are derived. */
  characters: number
}

/** Answers one request with a step. `broken`: the script broke the answer off. */
async function answerOverWire(
  response: ServerResponse,
  step: ScriptedAnswer,
  { protocol, index, body, model, streaming, characters }: WireExchange,
  context: PlaybackContext & { pace?: Pace | undefined },
): Promise<'sent' | 'broken'> {
  const parts = stepParts(step, { index, inputCharacters: characters })
  const { usage } = generated(parts.filter((part) => part.type === 'finish'))
  const writer = protocol.writer({ index, model, body, parts, usage })
  const opening = writer.open()
  const frames = parts.map((part) => writer.part(part))

  try {
    await beforeAnswer(step, context)
  } catch (error) {
    if (context.signal.aborted) throw error
    const failure = isFailure(error) ? error : { status: 500, message: error instanceof Error ? error.message : String(error) }
    reply(response, failure.status, protocol.failure(failure), failure.headers)
    return 'sent'
  }

  if (streaming) {
    beginEvents(response, { 'x-request-id': `request_${index}` })
    if (!beginsWithFailure(step)) await send(response, opening)
  }
  let sent = 0
  try {
    for await (const due of playback(step, parts, context)) {
      if (streaming) await send(response, frames.slice(sent, due).join(''))
      sent = due
    }
  } catch (error) {
    if (context.signal.aborted) throw error
    if (!isFailure(error)) return 'broken'
    if (streaming) response.end(writer.failure(error))
    else reply(response, error.status, protocol.failure(error), error.headers)
    return 'sent'
  }
  if (streaming) response.end()
  else reply(response, 200, writer.document())
  return 'sent'
}

function beginsWithFailure({ errorAfter }: ScriptedAnswer): boolean {
  return errorAfter?.parts === 0 && isFailure(errorAfter.error)
}

function reply(response: ServerResponse, status: number, body: JSONObject, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

function beginEvents(response: ServerResponse, headers: Record<string, string>): void {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache', ...headers })
  response.flushHeaders()
}

/** Resolves when the text is written to the socket, or the socket is closed. */
function send(response: ServerResponse, text: string): Promise<void> {
  if (text === '' || response.destroyed) return Promise.resolve()
  return new Promise((resolve) => response.write(text, () => resolve()))
}
