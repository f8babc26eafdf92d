import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { JSONObject } from '@ai-sdk/provider'
import { checkNames } from '../../base/arguments.ts'
import { systemClock, type Clock } from '../../base/clock.ts'
import { generated, stepParts } from '../step-parts.ts'
import { beforeAnswer, checkPace, playback, type Pace, type PlaybackContext } from '../playback.ts'
import { isFailure, scriptedAnswer, type Script, type ScriptedAnswer } from '../script.ts'
import { aiGateway } from './ai-gateway.ts'
import { anthropicMessages } from './anthropic-messages.ts'
import { openaiChat } from './openai-chat.ts'
import { openaiResponses } from './openai-responses.ts'
import type { RequestHeaders, WireProtocol, WireProtocolName } from './wire-protocol.ts'

/** The options of `providerServer()`. */
export interface ProviderServerOptions {
  script?: Script<RecordedRequest>
  loop?: boolean
  pace?: Pace
  /** For `pace` and `delayMs`. Defaults to the system's clock. */
  clock?: Clock
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
  /** Every request for a model, oldest first. */
  readonly requests: readonly RecordedRequest[]
  /** Sets the script; its first step answers the next request. */
  script(script: Script<RecordedRequest>, options?: { loop?: boolean }): void
  /** Ends every connection and every wait. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

const protocols = [openaiResponses, openaiChat, anthropicMessages, aiGateway]

/**
 * A server on this machine with the protocols of OpenAI (Responses, Chat Completions), Anthropic (Messages) and the gateway of the `ai`
 * package, which answers with the steps of a script. The response to a request without `stream` is one JSON object. A step that the
 * protocol can't encode, a missing step, and a schema that the provider would reject give status 400 with a message that names the
 * problem.
 *
 * @example
 * await using server = await providerServer({ script: ['Hello.', { error: { status: 429, headers: { 'retry-after': '2' } } }] })
 * const openai = createOpenAI(server.openai)
 */
export async function providerServer(options: ProviderServerOptions = {}): Promise<ProviderServer> {
  checkNames('providerServer()', options, ['script', 'loop', 'pace', 'clock'])
  const { clock = systemClock, pace } = options
  if (pace !== undefined) checkPace(pace)
  const requests: RecordedRequest[] = []
  const open = new Set<AbortController>()
  const answering: Answering = { clock, pace, requests, open, nextStep: stepsOf(options.script ?? [], options.loop) }
  const server = createServer((request, response) => void respond(request, response, answering))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => resolve())
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const access = { baseURL: `${url}/v1`, apiKey: 'scripted' }
  const close = async () => {
    for (const stop of open) stop.abort()
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
  const protocol = protocols.find(({ path }) => path === pathname && request.method === 'POST')
  if (!protocol) {
    const message = `Send a POST to one of ${protocols.map(({ path }) => path).join(', ')}.`
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
