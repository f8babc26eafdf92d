import { Readable } from 'node:stream'
import { HeedError } from '../../base/errors.ts'
import { isPlainObject } from '../../base/json.ts'
import type { AgentVoice } from '../../agent/voice/agent-voice.ts'
import { checkHandshake, offeredProtocols } from '../../socket/handshake.ts'
import type { AudioInput, SpeakOptions } from '../../voice/contract.ts'
import { voiceProtocol } from '../../voice/wire.ts'
import { requireResource } from '../auth/principal.ts'
import { isLimited } from '../auth/scopes.ts'
import { threadIdOf } from '../request/access.ts'
import { checkContentEncoding, parseBody, Upgrade, type HttpRequest } from '../request/exchange.ts'
import { omitUndefined } from '../request/fields.ts'
import { route, type Call, type Route } from '../route.ts'
import * as responses from '../schema/response-schemas.ts'
import { id, object, record, text } from '../schema/schemas.ts'

const spoken = { type: 'string', minLength: 1, maxLength: 100_000 }
const format = object({ type: id, rate: { type: 'integer', minimum: 1, maximum: 1_000_000 } }, ['type'])
const speaking = { speaker: id, language: id, speed: { type: 'number' }, instructions: text, format, providerOptions: record }
/** Existing clients name the speaker `speakerId`, or in `options`. */
const speakBody = object({ text: spoken, input: spoken, speakerId: id, options: object(speaking), ...speaking, requestContext: record })

type Speaking = Pick<SpeakOptions, 'speaker' | 'language' | 'speed' | 'instructions' | 'format' | 'providerOptions'>
type SpeakBody = Speaking & { text?: string; input?: string; speakerId?: string; options?: Speaking }

const formOptions = { ...text, description: 'JSON: mediaType, filetype, providerOptions.' }
const form = object({ audio: { type: 'string', format: 'binary' }, options: formOptions }, ['audio'])

/** The same routes under the paths of older clients. */
const speakPaths = ['/agents/:agentId/voice/speak', '/agents/:agentId/speak']
const listenPaths = ['/agents/:agentId/voice/listen', '/agents/:agentId/listen']
const speakersPaths = ['/agents/:agentId/voice/speakers', '/agents/:agentId/speakers']

/** Speech of agents, and voice sessions on threads. */
export const voice: readonly Route[] = [
  ...speakersPaths.map((path) => route<never>({
    method: 'GET', path, summary: 'The voices that an agent may speak with, where they are known', response: 'json',
    responseSchema: responses.speakers, read: true,
    handle: async (call) => (await voiceOf(call)).getSpeakers(),
  })),
  route<never>({
    method: 'GET', path: '/agents/:agentId/voice/listener', summary: 'Whether an agent can listen', response: 'json',
    responseSchema: responses.listener, read: true,
    handle: async (call) => (await voiceOf(call)).getListener(),
  }),
  ...speakPaths.map((path) => route<SpeakBody>({
    method: 'POST', path, summary: 'The sound of a text, while it is made', response: 'audio', body: speakBody, handle: speak,
  })),
  ...listenPaths.map((path) => route<never>({
    method: 'POST', path, summary: 'The words in a sound: a form, or the sound itself', response: 'json',
    responseSchema: responses.heardText, upload: form, handle: listen,
  })),
  route<{ resourceId?: string }>({
    method: 'POST', path: '/agents/:agentId/threads/:threadId/voice/ticket',
    summary: 'A ticket that opens a voice session on the thread within a minute', response: 'json', responseSchema: responses.ticketIssued,
    creates: true, body: object({ resourceId: id }),
    handle: (call) => {
      const target = { agentId: call.params.agentId ?? '', threadId: threadIdOf(call) }
      return call.tickets.issue(call.principal, requireResource(call.principal, call.body.resourceId), target, 'voice')
    },
  }),
  route<never, { resourceId?: string }>({
    method: 'GET', path: '/agents/:agentId/threads/:threadId/voice', summary: 'A voice session on a thread, over a WebSocket',
    response: 'socket', creates: true, ticket: 'voice', query: object({ resourceId: id }), handle: openSession,
  }),
]

async function voiceOf(call: Pick<Call<unknown, unknown>, 'agent' | 'context'>): Promise<AgentVoice> {
  const requestContext = await call.context()
  return requestContext ? call.agent.getVoice({ requestContext }) : call.agent.getVoice()
}

async function speak(call: Call<SpeakBody>): Promise<Response> {
  const { text: given, input, speakerId, options: nested = {}, ...asked } = call.body
  const words = given ?? input
  if (words === undefined) throw new HeedError('invalid_argument', 'text is missing: the words to speak.', { details: { field: 'text' } })
  if (given !== undefined && input !== undefined) throw invalidField('input', 'must be left out beside text')
  const twice = Object.keys(nested).find((name) => asked[name as keyof Speaking] !== undefined)
  if (twice !== undefined) throw invalidField(`options.${twice}`, `must be left out beside ${twice}`)
  if (speakerId !== undefined && (asked.speaker ?? nested.speaker) !== undefined) {
    throw invalidField('speakerId', 'must be left out beside speaker')
  }
  const { speaker = speakerId, language, speed, instructions, format: wanted, providerOptions } = asked
  const own = omitUndefined({ speaker, language, speed, instructions, format: wanted, providerOptions })
  const options: SpeakOptions = { ...nested, ...own }
  checkProviderOptions(call, options.providerOptions)
  const audio = await (await voiceOf(call)).speak(words, { ...options, abortSignal: call.request.signal })
  const stream = audio instanceof Readable ? audio : Readable.from(audio)
  const body = Readable.toWeb(stream) as ReadableStream<Uint8Array>
  return new Response(body, { headers: { 'content-type': audio.mediaType, 'cache-control': 'no-store', 'x-accel-buffering': 'no' } })
}

async function listen(call: Call<never>): Promise<{ text: string }> {
  checkContentEncoding(call.request)
  const type = call.request.header('content-type') ?? ''
  const voice = await voiceOf(call)
  const abortSignal = call.request.signal
  if (!/^multipart\/form-data\b/i.test(type)) {
    if (!/^(audio\/|application\/octet-stream)/i.test(type)) {
      const message = 'Send the sound with its Content-Type, such as audio/wav, or a form with the field audio.'
      throw new HeedError('unsupported_media_type', message)
    }
    const mediaType = type.toLowerCase().startsWith('audio/') ? { mediaType: type } : {}
    return { text: await voice.listen(call.request.chunks(call.maxBodyBytes), { ...mediaType, abortSignal }) }
  }
  const { audio, mediaType, providerOptions } = await readForm(call, type)
  checkProviderOptions(call, providerOptions)
  return { text: await voice.listen(audio, { ...omitUndefined({ mediaType, providerOptions }), abortSignal }) }
}

interface ListenForm {
  audio: AudioInput
  mediaType?: string
  providerOptions?: SpeakOptions['providerOptions']
}

async function readForm(call: Call<never>, type: string): Promise<ListenForm> {
  const pieces: Uint8Array[] = []
  for await (const piece of call.request.chunks(call.maxBodyBytes)) pieces.push(piece)
  let fields: FormData
  try {
    fields = await new Response(Buffer.concat(pieces), { headers: { 'content-type': type } }).formData()
  } catch (cause) {
    throw new HeedError('invalid_argument', 'The body is not a form.', { cause })
  }
  const audio = fields.get('audio')
  if (!(audio instanceof Blob)) {
    throw new HeedError('invalid_argument', 'The form has no field audio with a file.', { details: { field: 'audio' } })
  }
  const unknown = [...fields.keys()].find((name) => name !== 'audio' && name !== 'options')
  if (unknown !== undefined) {
    const message = `The form has a field '${unknown.slice(0, 64)}'. Known: audio, options.`
    throw new HeedError('invalid_argument', message, { details: { field: unknown } })
  }
  return { audio: new Uint8Array(await audio.arrayBuffer()), ...readOptions(fields.get('options'), audio.type) }
}

/** The options of a form, which are JSON. `filetype` is how existing clients name the type. */
function readOptions(json: unknown, fileType: string): Omit<ListenForm, 'audio'> {
  const options: unknown = json === null ? {} : parseBody(typeof json === 'string' ? json : '')
  if (!isPlainObject(options)) throw new HeedError('invalid_argument', 'options must be a JSON object.', { details: { field: 'options' } })
  const unknown = Object.keys(options).find((name) => !['mediaType', 'filetype', 'providerOptions'].includes(name))
  if (unknown !== undefined) {
    const message = `options has no '${unknown.slice(0, 64)}'. Known: mediaType, filetype, providerOptions.`
    throw new HeedError('invalid_argument', message, { details: { field: `options.${unknown}` } })
  }
  const { mediaType, filetype, providerOptions } = options
  for (const [name, value] of Object.entries({ mediaType, filetype })) {
    if (value !== undefined && typeof value !== 'string') throw invalidField(`options.${name}`, 'must be a text')
  }
  if (mediaType !== undefined && filetype !== undefined) throw invalidField('options.filetype', 'must be left out beside mediaType')
  if (providerOptions !== undefined && !isPlainObject(providerOptions)) throw invalidField('options.providerOptions', 'must be an object')
  const byEnding = typeof filetype === 'string' ? (fileTypes[filetype] ?? `audio/${filetype}`) : undefined
  const named = typeof mediaType === 'string' ? mediaType : byEnding
  const sent = fileType.startsWith('audio/') ? fileType : undefined
  return omitUndefined({ mediaType: named ?? sent, providerOptions: providerOptions as ListenForm['providerOptions'] })
}

function invalidField(field: string, why: string): HeedError {
  return new HeedError('invalid_argument', `${field} ${why}.`, { details: { field } })
}

const fileTypes: Partial<Record<string, string>> = { mp3: 'audio/mpeg', m4a: 'audio/mp4' }

/** What a provider does beyond speaking is the choice of those who operate the server. */
function checkProviderOptions({ principal }: Pick<Call, 'principal'>, providerOptions: unknown): void {
  if (providerOptions === undefined || !isLimited(principal)) return
  throw new HeedError('forbidden', "You may not set 'providerOptions'.", { details: { option: 'providerOptions' } })
}

/** Rejects a request that can't become a WebSocket. */
function checkUpgrade(request: HttpRequest): void {
  checkHandshake(request)
  if (request.upgradable) return
  throw new HeedError('upgrade_required', 'WebSockets need a server of serve(): createHandler() answers a Request with a Response.')
}

async function openSession(call: Call<never, { resourceId?: string }>): Promise<Upgrade> {
  const threadId = threadIdOf(call)
  const resourceId = requireResource(call.principal, call.query.resourceId)
  checkUpgrade(call.request)
  const voice = await voiceOf(call)
  const open = call.voices.reserve({
    principal: call.principal,
    agentId: call.agent.id,
    threadId,
    resourceId,
    showError: (error) => call.showError(error),
    open: (options, room) => voice.open({ ...options, threadId, resourceId }, { room, send: (work) => call.sendAgain(work) }),
  })
  const isOffered = offeredProtocols(call.request).includes(voiceProtocol)
  return new Upgrade(isOffered ? voiceProtocol : undefined, open)
}
