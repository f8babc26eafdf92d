import type { ServerResponse } from 'node:http'
import type { JSONObject } from '@ai-sdk/provider'
import { generated } from '../generated.ts'
import { beforeAnswer, playback, type Pace, type PlaybackContext } from '../playback.ts'
import { isFailure } from '../scripted-failure.ts'
import type { ScriptedAnswer } from '../scripted-step.ts'
import { beginEvents, send } from './server-sent.ts'
import { stepParts } from '../step-parts.ts'
import type { WireProtocol } from './wire-protocol.ts'

export interface WireExchange {
  protocol: WireProtocol
  index: number
  body: JSONObject
  model: string
  streaming: boolean
  /** The length of the request, from which input tokens are derived. */
  characters: number
}

/** Answers one request as the step says. Returns whether the script broke the answer off. */
export async function answerOverWire(
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
    if (!failsAtOnce(step)) await send(response, opening)
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

function failsAtOnce({ errorAfter }: ScriptedAnswer): boolean {
  return errorAfter?.parts === 0 && isFailure(errorAfter.error)
}

export function reply(response: ServerResponse, status: number, body: JSONObject, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}
