import { createOpenAI } from '@ai-sdk/openai'
import { expect, onTestFinished } from 'vitest'
import { served } from '../../http/serving.ts'
import { calling, thread, turns } from '../../voice/calling.ts'
import { silence, soundOf, textOf, toneSpeech, toneTranscription } from '../../voice/voices.ts'
import { dialled, network } from '../../voice/wire-client.ts'
import { rejects, type Probe } from '../probe.ts'
import { client, heed, server, testing, voice } from '../walked.ts'

const { Agent, Heed, InMemoryStore, silentLogger } = heed
const { CompositeVoice } = voice

const settings = { speaker: 'ada', language: 'en', speed: 1.5, instructions: 'softly', providerOptions: { tone: { a: 1 } } }

/** An agent with a voice, on a server. */
async function speaking() {
  const [input, output] = [toneTranscription(), toneSpeech()]
  const agent = new Agent({ id: 'guide', model: testing.scriptedModel([]), voice: new CompositeVoice({ input, output }) })
  const { client: asked } = await served({ guide: agent })
  return { input, output, remote: asked.getAgent('guide').voice }
}

/** A server with limits of voice sessions, and a clock. */
async function limited(limits: object) {
  const clock = testing.virtualClock()
  const agent = new Agent({ id: 'guide', model: testing.scriptedModel([]), voice: new CompositeVoice({ input: toneTranscription(), output: toneSpeech() }) })
  const own = new Heed({ agents: { agent }, storage: new InMemoryStore({ clock }), logger: silentLogger, clock })
  const auth = () => ({ id: 'ada', resources: [thread.resourceId] })
  const serving = await server.serve(own, { port: 0, handleSignals: false, auth, limits })
  onTestFinished(() => serving.close())
  const dial = async (threadId = thread.threadId) => {
    const one = await dialled(serving.url, { path: `/api/agents/guide/threads/${threadId}/voice?resourceId=${thread.resourceId}` })
    return { ...one, answer: one.isOpen ? await one.start() : undefined }
  }
  return { clock, dial }
}

export const voices: Probe[] = [
  {
    title: 'VoiceClient: how it speaks and listens',
    async run() {
      const { input, output, remote } = await speaking()
      const format = { type: 'audio/pcm', rate: 24_000 }
      const response = await remote.speak('By train.', { ...settings, format })
      const { speaker, ...asked } = settings
      expect(output.calls[0]).toMatchObject({ ...asked, voice: speaker })
      expect(response.headers.get('content-type')).toBe('audio/pcm;rate=24000')
      await response.body?.cancel()
      await rejects(() => remote.speak('x', { format: { rate: 1 } as never }), 'type')
      const sound = soundOf('Hello.')
      expect(await remote.listen(sound, { mediaType: 'audio/pcm;rate=24000', providerOptions: { tone: { b: 2 } } })).toEqual({ text: 'Hello.' })
      expect(input.calls[0]).toMatchObject({ providerOptions: { tone: { b: 2 } } })
      await remote.listen(sound, { filetype: 'm4a' })
      expect(input.calls[1]?.mediaType).toBe('audio/mp4')
      const stream = () => new Blob([sound]).stream()
      for (const option of ['filetype', 'providerOptions']) await rejects(() => remote.listen(stream(), { [option]: 'x' }), option)
    },
  },
  {
    title: 'VoiceClient.session: its thread, its turns and its voice',
    async run() {
      const { call, output, until } = await calling(['Yes.'])
      const { session, player } = await call({ speaker: 'ada', language: 'en', inputRate: 12_000, turn: { detect: 'caller' } })
      session.beginTurn()
      const half = soundOf('Go.')
      await session.write(half.filter((_, index) => index % 4 < 2))
      session.endTurn()
      await until(() => output.calls.length > 0)
      expect(player.of('transcript')).toHaveLength(1)
      expect(output.calls[0]).toMatchObject({ voice: 'ada', language: 'en' })
      for (const [name, value] of Object.entries({ level: 7, speechMs: -1, silenceMs: -1, maxMs: -1 }))
        await rejects(() => call({ threadId: `t-${name}`, turn: { [name]: value } }), name)
      await rejects(() => call({ threadId: 't-rate', inputRate: 1 }), 'inputRate')
      await rejects(() => call({ threadId: 't-detect', turn: { detect: 'never' as never } }), 'detect')
      await rejects(() => call({ threadId: '' }), 'threadId')
      await rejects(() => call({ resourceId: '' }), 'resourceId')
    },
  },
  {
    title: 'VoiceClient.session: how it connects again, and what was played',
    async run() {
      const { until, server: serving, messages } = await calling(['One two three four. Five six.', 'Yes.'])
      const net = await network(serving.url)
      const heard: string[] = []
      const remote = new client.HeedClient({ baseUrl: net.url, retries: 0 }).getAgent('guide').voice
      const session = await remote.session({ ...thread, reconnect: { maxRetries: 5, delayMs: 1, onLost: () => void heard.push('lost'), onOpen: () => void heard.push('open') } })
      onTestFinished(() => session.close())
      const items: string[] = []
      const ended = Promise.withResolvers<void>()
      void (async () => {
        for await (const event of session.events) if (event.type === 'audio' && !items.includes(event.itemId)) items.push(event.itemId)
        ended.resolve()
      })()
      await session.write(soundOf('Count.'))
      await session.write(silence(700))
      await until(() => items.length > 0)
      session.played({ itemId: items[0] ?? '', ms: 20 })
      await turns()
      session.interrupt()
      await until(async () => (await messages()).some(({ incomplete }) => incomplete === 'interrupted'))
      expect((await messages()).find(({ role }) => role === 'assistant')?.text).toBe('One')
      const began = performance.now()
      net.cut()
      await ended.promise
      expect([heard, performance.now() - began < 5_000]).toEqual([['open', 'lost'], true])
    },
  },
  {
    title: 'serve: its limits of voice sessions',
    async run() {
      for (const limits of [{ voiceSessionsPerPrincipal: 1 }, { voiceSessions: 1 }]) {
        const { dial } = await limited(limits)
        await dial('a')
        expect((await dial('b')).answer).not.toMatchObject({ type: 'started' })
      }
      const small = await limited({ voiceMessageBytes: 1_000 })
      const long = await small.dial()
      long.socket.send(new Uint8Array(1_002))
      expect(await long.closed).toMatchObject({ code: 1009 })
      for (const limits of [{ voiceIdleMs: 5_000 }, { voiceMs: 5_000 }]) {
        const { clock, dial } = await limited(limits)
        const one = await dial()
        await clock.advance(5_100)
        expect(await one.closed).toMatchObject({ code: 4408 })
      }
    },
  },
  {
    title: 'CompositeVoice: a model that converses, and its settings',
    async run() {
      const provider = await testing.providerServer({ script: ['Yes.'], speech: { listen: () => 'Three dice.', speak: () => soundOf('no') } })
      const openai = createOpenAI(provider.openai)
      const own = new CompositeVoice({
        realtime: openai.experimental_realtime('gpt-realtime'),
        realtimeOptions: { transcription: { model: 'gpt-4o-transcribe', prompt: 'dice' }, providerOptions: { max_output_tokens: 77 } },
      })
      const agent = new Agent({ id: 'guide', model: testing.scriptedModel([]), voice: own })
      const opened = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
      const session = await agent.voice.session({ ...thread, turn: { detect: 'caller' } })
      onTestFinished(async () => {
        await session.close()
        await opened.close()
        await provider.close()
      })
      await expect.poll(() => JSON.stringify(provider.realtime[0]?.session)).toContain('gpt-4o-transcribe')
      expect(JSON.stringify(provider.realtime[0]?.session)).toMatch(/dice[^]*77|77[^]*dice/)
      session.beginTurn()
      await session.write(soundOf('Hello there.'))
      session.endTurn()
      const said: string[] = []
      const spoken: Uint8Array[] = []
      for await (const event of session.events) {
        if (event.type === 'transcript') said.push(event.text)
        if (said.length > 0) break
      }
      for await (const piece of await new CompositeVoice({ output: openai.speech('tts-1'), format: { type: 'audio/pcm', rate: 24_000 } }).speak('Yes.')) spoken.push(piece)
      expect([said, textOf(Buffer.concat(spoken))]).toEqual([['Three dice.'], 'no'])
    },
  },
]

