import type { Experimental_StreamingSpeechModelV4, TranscriptionModelV4 } from '@ai-sdk/provider'
import { expect, it } from 'vitest'
import { HeedClient } from '../../src/client/index.ts'
import { apiKeys, createHandler } from '../../src/http/server.ts'
import { Agent } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { CompositeVoice, type Voice } from '../../src/voice/index.ts'
import { toWav } from '../../src/voice/sound/wav.ts'
import { served } from '../http/serving.ts'
import { soundOf, textOf, toneSpeech, toneTranscription } from './voices.ts'

const format = { type: 'audio/pcm', rate: 24_000 }
const wav = (text: string) => new Blob([toWav({ pcm: soundOf(text), rate: 24_000 }) as Uint8Array<ArrayBuffer>], { type: 'audio/wav' })

async function speaking(voice?: Voice, options: Parameters<typeof served>[1] = {}) {
  const [input, output] = [toneTranscription(), toneSpeech()]
  const agent = new Agent({ id: 'guide', model: scriptedModel([]), voice: voice ?? new CompositeVoice({ input, output, format }) })
  const mute = new Agent({ id: 'mute', model: scriptedModel([]) })
  const { server, ask, client, heed } = await served({ guide: agent, mute }, options)
  return { server, ask, voice: client.getAgent('guide').voice, client, heed, input, output }
}

const bytesOf = async (response: Response) => new Uint8Array(await response.arrayBuffer())

it('[Z5.8] the client speaks and listens, with the speaker that it asked for and the true type of the sound', async () => {
  const { voice, output, input } = await speaking()
  const response = await voice.speak('By train.', { speaker: 'ada', language: 'en', speed: 1.5, instructions: 'softly', format, providerOptions: { tone: { a: 1 } } })
  expect(response.headers.get('content-type')).toBe('audio/pcm;rate=24000')
  expect(textOf(await bytesOf(response))).toBe('By train.')
  expect(output.calls[0]).toMatchObject({ voice: 'ada', language: 'en', speed: 1.5, instructions: 'softly', providerOptions: { tone: { a: 1 } } })
  expect(await voice.listen(wav('Hello.'))).toEqual({ text: 'Hello.' })
  expect(await voice.listen(soundOf('Raw.'), { mediaType: 'audio/pcm;rate=24000', providerOptions: { tone: { b: 2 } } })).toEqual({ text: 'Raw.' })
  expect(await voice.listen(new Blob([wav('Named.')]), { filetype: 'wav' })).toEqual({ text: 'Named.' })
  expect(input.calls[1]).toMatchObject({ providerOptions: { tone: { b: 2 } } })
  expect([await voice.getSpeakers(), await voice.getListener()]).toEqual([[], { enabled: true }])
})

it('[Z5.8] requests as existing clients write them work, on their paths', async () => {
  const { ask, output } = await speaking()
  for (const [path, json] of [
    ['/agents/guide/voice/speak', { text: 'One.', speakerId: 'ada' }], ['/agents/guide/speak', { text: 'One.', options: { speaker: 'ada' } }],
    ['/agents/guide/voice/speak', { input: 'One.', speaker: 'ada' }],
  ] as const) {
    const response = await ask(path, { json })
    expect([response.status, textOf(await bytesOf(response)), output.calls.at(-1)?.voice]).toEqual([200, 'One.', 'ada'])
  }
  for (const path of ['/agents/guide/voice/listen', '/agents/guide/listen']) {
    const form = new FormData()
    form.set('audio', wav('Two.'))
    form.set('options', '{"filetype":"wav"}')
    const response = await ask(path, { method: 'POST', body: form })
    expect([response.status, await response.json()]).toEqual([200, { text: 'Two.' }])
  }
  for (const path of ['/agents/guide/voice/speakers', '/agents/guide/speakers']) expect(await (await ask(path)).json()).toEqual([])
})

it('[Z5.9] sound streams both ways: the first bytes are there before the last are made, and before the last are sent', async () => {
  const { promise: more, resolve: goOn } = Promise.withResolvers<void>()
  const heard: string[] = []
  const output: Experimental_StreamingSpeechModelV4 = {
    ...toneSpeech(),
    doGenerate: async () => {
      throw new Error('A model that streams is asked to.')
    },
    async doStream() {
      return { stream: new ReadableStream({ async start(to) {
        to.enqueue({ type: 'audio', audio: soundOf('One.'), audioFormat: format })
        await more
        to.enqueue({ type: 'audio', audio: soundOf('Two.'), audioFormat: format })
        to.close()
      } }) }
    },
  }
  const first = Promise.withResolvers<void>()
  const input: TranscriptionModelV4 = {
    ...toneTranscription(),
    async doStream({ audio }) {
      return { stream: new ReadableStream({ async start(to) {
        for await (const piece of audio) {
          heard.push(textOf(piece as Uint8Array))
          first.resolve()
        }
        to.enqueue({ type: 'finish', text: heard.join(''), segments: [] })
        to.close()
      } }) }
    },
  }
  const { voice: remote } = await speaking(new CompositeVoice({ input, output }))
  const response = await remote.speak('One. Two.')
  const reader = response.body?.getReader()
  expect(textOf((await reader?.read())?.value ?? new Uint8Array())).toBe('One.')
  goOn()
  let rest = new Uint8Array()
  for (let next = await reader?.read(); next && !next.done; next = await reader?.read()) rest = Buffer.concat([rest, next.value])
  expect(textOf(rest)).toBe('Two.')

  const spoken = new ReadableStream<Uint8Array>({ async start(to) {
    to.enqueue(soundOf('Three'))
    await first.promise
    to.enqueue(soundOf(' four.'))
    to.close()
  } })
  expect(await remote.listen(spoken, { mediaType: 'audio/pcm;rate=24000' })).toEqual({ text: 'Three four.' })
  expect(heard[0]).toBe('Three')
})

it('[Z5.9] a client that goes away ends the call of the model', async () => {
  const aborted = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  const output = toneSpeech({ onCall: ({ abortSignal }) => {
    asked.resolve()
    abortSignal?.addEventListener('abort', () => aborted.resolve())
    return aborted.promise
  } })
  const { server } = await speaking(new CompositeVoice({ output, format }))
  const stop = new AbortController()
  const answer = new HeedClient({ baseUrl: server.url }).withSignal(stop.signal).getAgent('guide').voice.speak('Never.').catch((error: unknown) => error)
  await asked.promise
  stop.abort()
  await aborted.promise
  await answer
})

it('[Z5.10] bodies that cannot work are refused by name, and large ones before they are read', async () => {
  const { ask, server, client } = await speaking(undefined, { maxBodyBytes: 100_000 })
  const code = async (response: Response) => [response.status, ((await response.json()) as { code: string }).code]
  const listen = (body: BodyInit, type?: string) => ask('/agents/guide/voice/listen', { method: 'POST', body, ...(type === undefined ? {} : { headers: { 'content-type': type } }) })
  expect(await code(await ask('/agents/guide/voice/speak', { json: {} }))).toEqual([400, 'invalid_argument'])
  expect(await code(await ask('/agents/guide/voice/speak', { json: { text: 'a', volume: 1 } }))).toEqual([400, 'invalid_argument'])
  expect(await code(await ask('/agents/mute/voice/speak', { json: { text: 'a' } }))).toEqual([400, 'voice_missing'])
  expect(await code(await listen('{}', 'application/json'))).toEqual([415, 'unsupported_media_type'])
  expect(await code(await listen('nonsense', 'multipart/form-data; boundary=x'))).toEqual([400, 'invalid_argument'])
  expect(await code(await listen(new Uint8Array(10), 'application/octet-stream'))).toEqual([400, 'invalid_audio'])
  expect(await code(await listen(new Uint8Array(200_000), 'audio/wav'))).toEqual([413, 'too_large'])
  const form = new FormData()
  form.set('audio', wav('a'))
  form.set('more', 'b')
  expect(await code(await listen(form))).toEqual([400, 'invalid_argument'])
  form.delete('more')
  for (const options of ['[]', '{"loud":true}', '{']) {
    form.set('options', options)
    expect(await code(await listen(form))).toEqual([400, 'invalid_argument'])
  }
  form.delete('audio')
  expect(await code(await listen(form))).toEqual([400, 'invalid_argument'])
  await expect(client.getAgent('mute').voice.getSpeakers()).rejects.toMatchObject({ code: 'voice_missing' })
  expect(await client.getAgent('mute').voice.getListener()).toEqual({ enabled: false })
  await expect(client.getAgent('guide').voice.speak('a', { volume: 1 } as never)).rejects.toMatchObject({ code: 'unsupported_option' })
  await expect(client.getAgent('guide').voice.listen(new Uint8Array(2), { volume: 1 } as never)).rejects.toMatchObject({ code: 'unsupported_option' })
  await expect(client.getAgent('guide').voice.session({ threadId: '' })).rejects.toMatchObject({ code: 'invalid_argument' })
  expect(server.url).toContain('http')
})

it('[Z5.10] what is given twice, or with a value of another type, is refused by name', async () => {
  const { ask } = await speaking()
  for (const [json, field] of [
    [{ text: 'a', input: 'b' }, 'input'], [{ text: 'a', speaker: 'x', speakerId: 'y' }, 'speakerId'], [{ text: 'a', speed: 1, options: { speed: 2 } }, 'options.speed'],
    [{ text: 'a', speakerId: 'y', options: { speaker: 'x' } }, 'speakerId'],
  ] as const) expect(await (await ask('/agents/guide/voice/speak', { json })).json()).toMatchObject({ code: 'invalid_argument', details: { field } })
  for (const [options, field] of [[{ mediaType: 7 }, 'options.mediaType'], [{ filetype: {} }, 'options.filetype'], [{ providerOptions: 'x' }, 'options.providerOptions'], [{ mediaType: 'audio/wav', filetype: 'wav' }, 'options.filetype']] as const) {
    const form = new FormData()
    form.set('audio', wav('Two.'))
    form.set('options', JSON.stringify(options))
    expect(await (await ask('/agents/guide/voice/listen', { method: 'POST', body: form })).json()).toMatchObject({ code: 'invalid_argument', details: { field } })
  }
})

it('[Z5.10] a principal that is limited may not pass options to a provider', async () => {
  const auth = apiKeys({ 'key-of-the-user-00': { id: 'user', resources: ['user-1'] } })
  const { server } = await speaking(undefined, { auth })
  const { voice } = new HeedClient({ baseUrl: server.url, headers: { authorization: 'Bearer key-of-the-user-00' } }).getAgent('guide')
  await expect(voice.speak('a', { providerOptions: { tone: { a: 1 } } })).rejects.toMatchObject({ code: 'forbidden', details: { option: 'providerOptions' } })
  await expect(voice.listen(wav('a'), { providerOptions: { tone: { a: 1 } } })).rejects.toMatchObject({ code: 'forbidden' })
  expect((await voice.speak('a')).status).toBe(200)
})

it('[Z5.8] the handler without a server speaks and listens too, and the voice may depend on the request', async () => {
  const voices = { ada: toneSpeech(), bob: toneSpeech() }
  const agent = new Agent({ id: 'guide', model: scriptedModel([]), voice: ({ requestContext }) => new CompositeVoice({ output: voices[requestContext.get('who') as 'ada'], input: toneTranscription(), format }) })
  const { heed } = await served({ guide: agent })
  const handler = createHandler(heed, { auth: 'local', requestContext: () => ({ who: 'ada' }) })
  const speak = await handler(new Request('http://localhost/api/agents/guide/voice/speak', { method: 'POST', body: '{"text":"Hi."}', headers: { 'content-type': 'application/json' } }))
  expect(textOf(await bytesOf(speak))).toBe('Hi.')
  const listen = await handler(new Request('http://localhost/api/agents/guide/voice/listen', { method: 'POST', body: wav('Ho.'), headers: { 'content-type': 'audio/wav' } }))
  expect(await listen.json()).toEqual({ text: 'Ho.' })
  expect([voices.ada.calls.length, voices.bob.calls.length]).toEqual([1, 0])
  handler.close()
})
