import { describe, expect, it, onTestFinished } from 'vitest'
import { Agent, createTool, Heed, InMemoryStore, RequestContext, silentLogger, type AgentConfig } from '../../src/index.ts'
import { scriptedModel, virtualClock, type Script } from '../../src/testing/index.ts'
import { CompositeVoice, type VoiceSession, type VoiceSessionEvent, type VoiceSessionOptions } from '../../src/voice/index.ts'
import { characterMs, rate, silence, soundOf, textOf, toneSpeech, toneTranscription } from './voices.ts'

const thread = { threadId: 'call', resourceId: 'user-1' }

interface Setup {
  config?: Partial<AgentConfig>
  session?: Partial<VoiceSessionOptions>
  deltaMs?: number
  input?: ReturnType<typeof toneTranscription>
  output?: ReturnType<typeof toneSpeech>
}

/** An agent with a session on a virtual clock, and a player that plays what it is given as it comes, and stops at `clear`. */
async function call(script: Script, { config = {}, session: options = {}, deltaMs = 0, input = toneTranscription(), output = toneSpeech() }: Setup = {}) {
  const clock = virtualClock()
  const model = scriptedModel(script, { clock, pace: { deltaMs } })
  const agent = new Agent({ id: 'guide', model, voice: new CompositeVoice({ input, output }), ...config })
  const heed = new Heed({ agents: { agent }, storage: new InMemoryStore({ clock }), clock, logger: silentLogger })
  onTestFinished(() => heed.close())
  const session = await agent.voice.session({ ...thread, ...options })
  onTestFinished(() => session.close())
  const player = play(session, clock)
  const say = async (text: string) => {
    await session.write(soundOf(text))
    await session.write(silence(700))
    await clock.advance(0)
  }
  const messages = async () => (await (await agent.getMemory()).recall({ ...thread, perPage: false })).messages.map(({ id, role, content }) => ({
    id, role: role === 'signal' ? 'user' : role, metadata: (content.metadata?.signal as { metadata?: object } | undefined)?.metadata ?? content.metadata, text: content.parts.flatMap((part) => (part.type === 'text' ? part.text : [])).join(''),
  }))
  return { clock, model, agent, heed, session, player, say, messages, input, output }
}

/** What a player did: the events, the text whose sound it played, and until when it made a sound. */
function play(session: VoiceSession, clock: { now(): number }) {
  const events: VoiceSessionEvent[] = []
  let pcm: Uint8Array[] = []
  let soundsUntil = 0
  let cleared = 0
  const player = {
    events,
    states: () => events.flatMap((event) => (event.type === 'state' ? event.state : [])),
    heard: () => textOf(Buffer.concat(pcm)),
    /** The time until which it makes a sound, as far as it knows now. */
    get soundsUntil() {
      return soundsUntil
    },
    get cleared() {
      return cleared
    },
    reset() {
      pcm = []
    },
    done: (async () => {
      for await (const event of session.events) {
        events.push(event)
        if (event.type === 'audio') {
          pcm.push(event.audio)
          soundsUntil = Math.max(clock.now(), soundsUntil) + (event.audio.length / 2 / rate) * 1_000
        }
        if (event.type === 'clear') [soundsUntil, cleared] = [Math.min(soundsUntil, clock.now()), cleared + 1]
      }
    })(),
  }
  return player
}

describe('a session', () => {
  it('[Z2.1] sends what the user says as a message of theirs, and speaks the answer', async () => {
    const { clock, say, player, messages, session } = await call(['By train. It is fast.'])
    await say('How do I get there?')
    await clock.advance(3_000)
    expect(await messages()).toMatchObject([
      { id: `${session.id}:1`, role: 'user', text: 'How do I get there?', metadata: { voice: { interrupted: false } } }, { role: 'assistant', text: 'By train. It is fast.' },
    ])
    expect(player.heard()).toBe('By train.It is fast.')
    expect(player.states()).toEqual(['thinking', 'speaking', 'listening'])
    expect(player.events.flatMap((event) => (event.type === 'transcript' ? event.text : []))).toEqual(['How do I get there?'])
  })

  it('[Z2.2] speaks the first sentence while the second is being written', async () => {
    const { clock, say, player, session } = await call([{ text: ['By train. ', 'It ', 'is ', 'fast.'] }], { deltaMs: 200 })
    await say('How?')
    await clock.advance(450)
    expect(player.heard()).toMatch(/^By/)
    expect(session.state).toBe('speaking')
    await clock.advance(3_000)
    expect(player.heard()).toBe('By train.It is fast.')
  })

  it('[Z2.3] makes sound for one sentence in advance, and gives a player little more than it plays', async () => {
    const sentences = ['First sentence here. ', 'Second sentence here. ', 'Third sentence here. ', 'Fourth.']
    const { clock, say, player, output } = await call([sentences.join('')])
    await say('Go.')
    await clock.advance(100)
    expect(output.calls.map(({ text }) => text)).toEqual(['First sentence here.', 'Second sentence here.'])
    expect(player.soundsUntil - clock.now()).toBeLessThanOrEqual(400)
    await clock.advance(5_000)
    expect(player.heard()).toBe(sentences.join('').replaceAll('. ', '.'))
  })

  it('[Z3.2] speech over the agent stops its sound within 150 ms and aborts the model, before a word is understood', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const input = toneTranscription({ onCall: ({ audio }) => (audio.length > 30_000 ? undefined : promise) })
    const long = 'I would go by train. '.repeat(40)
    const { clock, say, player, session, model, agent } = await call([{ text: long }, 'Ok.'], { deltaMs: 20, input })
    await say('How do I get there?')
    await clock.advance(2_000)
    expect(session.state).toBe('speaking')
    const run = await agent.activeRun(thread)
    expect(run).not.toBeNull()
    const signal = clock.now()
    session.beginTurn()
    await clock.advance(0)
    const before = player.heard()
    expect(player.soundsUntil - signal).toBeLessThanOrEqual(150)
    expect(session.state).toBe('interrupted')
    await clock.advance(1_000)
    expect([player.heard(), player.cleared]).toEqual([before, 1])
    expect(await agent.activeRun(thread)).toBeNull()
    expect(model.callCount).toBe(1)
    resolve()
  })

  it('[Z3.2] finds by itself that the user speaks, by the loudness; a shorter noise changes nothing', async () => {
    const { clock, say, player, session } = await call(['I would go by train, since it is fast and cheap.', 'Fine.'])
    await say('How?')
    await clock.advance(500)
    // A noise of 100 ms.
    await session.write(soundOf('ab'))
    await session.write(silence(200))
    expect([session.state, player.cleared]).toEqual(['speaking', 0])
    await session.write(soundOf('abcdefgh'))
    expect(session.state).toBe('interrupted')
    await clock.advance(0)
    expect(player.cleared).toBe(1)
  })

  it('[Z3.3] history has what the user heard, marked as interrupted, and so does the next prompt', async () => {
    const { clock, say, player, model, messages } = await call(['One two three four. Five six seven eight nine ten.', 'Sure.'])
    await say('Count.')
    // 19 characters of the first sentence, then half of the second.
    await clock.advance(19 * characterMs + 14 * characterMs)
    await say('Stop, please.')
    await clock.advance(2_000)
    const stored = await messages()
    expect(stored.map(({ role, text }) => [role, text])).toEqual([
      ['user', 'Count.'], ['assistant', 'One two three four. Five six seven'], ['user', 'Stop, please.'], ['assistant', 'Sure.'],
    ])
    expect(stored[1]?.metadata).toMatchObject({ incomplete: 'interrupted', voice: { heardMs: expect.any(Number) as number } })
    expect(stored[2]?.metadata).toEqual({ voice: { interrupted: true } })
    expect(JSON.stringify(model.calls[1]?.prompt)).toContain('Five six seven"')
    expect(JSON.stringify(model.calls[1]?.prompt)).not.toContain('eight')
    expect(player.events.flatMap((event) => (event.type === 'heard' ? event.text : []))).toEqual(['One two three four. Five six seven'])
    expect(player.states()).toEqual(['thinking', 'speaking', 'interrupted', 'thinking', 'speaking', 'listening'])
  })

  it('[Z3.3] trusts the reports of the player more than the clock, also those that come after the cut', async () => {
    const { clock, say, session, player, messages } = await call(['One two three four. Five six.', 'Sure.'])
    await say('Count.')
    await clock.advance(900)
    const itemId = player.events.flatMap((event) => (event.type === 'sentence' ? event.itemId : []))[0] ?? ''
    session.played({ itemId, ms: 100 })
    session.beginTurn()
    session.played({ itemId, ms: 300 })
    await session.write(soundOf('No.'))
    session.endTurn()
    await clock.advance(1_000)
    expect((await messages())[1]?.text).toBe('One two')
    expect(() => session.played({ itemId, ms: -1 })).toThrow('ms')
  })

  it('[Z3.3] an answer of which nothing was played leaves no text, and the model reads none of it', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const output = toneSpeech({ onCall: () => promise })
    const { clock, say, model, messages } = await call([{ text: 'Never heard. Not at all.' }, 'Now.'], { output })
    await say('Hi.')
    await clock.advance(100)
    await say('Wait, no.')
    await clock.advance(100)
    expect(JSON.stringify(model.calls[1]?.prompt)).not.toContain('heard')
    expect((await messages()).map(({ text }) => text)).toEqual(['Hi.', '', 'Wait, no.', 'Now.'])
    resolve()
  })

  it('[Z3.4] a sound without words while the agent thinks does not cost its answer', async () => {
    const { clock, say, session, messages } = await call([{ text: 'Here it is.', delayMs: 2_000 }])
    await say('Find it.')
    session.beginTurn()
    session.endTurn()
    await clock.advance(4_000)
    expect((await messages()).map(({ text }) => text)).toEqual(['Find it.', 'Here it is.'])
  })

  it('[Z3.5] a tool that works is not aborted: the run is cut after it, or the words enter it', async () => {
    const { promise, resolve } = Promise.withResolvers<string>()
    let aborted = false
    const book = createTool({ id: 'book', description: 'Books.', execute: async (_, { abortSignal }) => {
      abortSignal?.addEventListener('abort', () => (aborted = true))
      return promise
    } })
    const script: Script = [{ text: 'I will book it for you now, one moment please.', toolCalls: [{ toolName: 'book' }] }, 'Booked.', 'You are welcome.']
    const { clock, say, session, messages } = await call(script, { config: { tools: { book } } })
    await say('Book it.')
    await clock.advance(500)
    expect(session.state).toBe('speaking')
    await say('Thanks.')
    await clock.advance(100)
    expect(aborted).toBe(false)
    resolve('done')
    await clock.advance(3_000)
    const stored = await messages()
    expect(stored.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant'])
    expect(stored[1]?.text).toBe('I will book')
  })

  it('[Z3.6] input of another sender that interrupts the run stops the sound of the answer that it cut', async () => {
    const long = 'I would go by train since it is fast. '.repeat(10)
    const { clock, say, agent, player, messages } = await call([{ text: long, hang: true }, 'By bus.'], { deltaMs: 1 })
    await say('How?')
    await clock.advance(600)
    agent.sendMessage('The train is cancelled.', { ...thread, ifActive: { behavior: 'interrupt' } })
    await clock.advance(2_000)
    expect(player.cleared).toBe(1)
    const stored = await messages()
    expect(stored.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant'])
    expect(long.startsWith(stored[1]?.text ?? 'nothing')).toBe(true)
    expect(stored[1]?.text.length).toBeLessThan(40)
    expect(player.heard().endsWith('By bus.')).toBe(true)
  })

  it('interrupt() cuts the sound and the model without words', async () => {
    const { clock, say, session, agent, player, messages } = await call([{ text: 'One two three four five six seven.', hang: true }])
    await say('Count.')
    await clock.advance(300)
    session.interrupt()
    await clock.advance(200)
    expect([session.state, player.cleared, await agent.activeRun(thread)]).toEqual(['listening', 1, null])
    expect((await messages())[1]?.text).toBe('One two')
  })

  it('[Z2.4] a model that fails is an event of the session, which goes on', async () => {
    let fails = true
    const input = toneTranscription({ onCall: () => {
      if (fails) throw new Error('no ears')
    } })
    const { clock, say, player, messages } = await call(['Yes. No.'], { input, output: toneSpeech({ onCall: ({ text }) => {
      if (text === 'Yes.') throw new Error('no mouth')
    } }) })
    await say('Hello?')
    fails = false
    await say('Hello again?')
    await clock.advance(2_000)
    expect(player.events.flatMap((event) => (event.type === 'error' ? event.error.message : []))).toEqual([
      'tone/tone-transcription failed: no ears', 'tone/tone-speech failed: no mouth',
    ])
    expect(player.heard()).toBe('No.')
    expect((await messages()).map(({ text }) => text)).toEqual(['Hello again?', 'Yes. No.'])
  })

  it('[Z2.3] without a reader of its events it gives out a bounded amount of sound', async () => {
    const clock = virtualClock()
    const output = toneSpeech()
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Twenty characters.. '.repeat(60)]), voice: new CompositeVoice({ input: toneTranscription(), output }) })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore({ clock }), clock, logger: silentLogger })
    onTestFinished(() => heed.close())
    const session = await agent.voice.session(thread)
    await session.write(soundOf('Read it all.'))
    await session.write(silence(700))
    await clock.advance(60_000)
    expect(output.calls.length).toBeLessThan(12)
    let given = 0
    await session.close()
    for await (const event of session.events) given += event.type === 'audio' ? 1 : 0
    expect(given).toBe(64)
  })

  it('[Z2.5] ends with close() and with its Heed, without a timer left', async () => {
    const { clock, say, session, heed, player } = await call(['One two three four five six seven.'])
    await say('Count.')
    await clock.advance(300)
    await session.close()
    await player.done
    await expect(session.write(silence(20))).rejects.toMatchObject({ code: 'closed' })
    await heed.close()
    expect(clock.pending).toBe(0)
    const other = await call(['One two three four five six seven.'])
    await other.say('Count.')
    await other.heed.close()
    await other.player.done
    expect(other.clock.pending).toBe(0)
  })

  it('takes the speaker, the language, the rate and the times of a turn', async () => {
    const session = { speaker: 'ada', language: 'en', inputRate: 48_000, turn: { detect: 'energy', level: 0.1, speechMs: 40, silenceMs: 100, maxMs: 10_000 } as const }
    const { clock, session: open, output, input } = await call(['Hi.'], { session })
    // Twice the rate: half as long.
    await open.write(soundOf('abcd'))
    await open.write(silence(200))
    await clock.advance(500)
    expect(output.calls[0]).toMatchObject({ voice: 'ada', language: 'en', outputFormat: 'pcm' })
    expect(input.calls[0]?.mediaType).toBe('audio/wav')
    const quiet = await call(['Hi.'], { session: { turn: { level: 0.5 } } })
    await quiet.say('Not loud enough.')
    expect(quiet.player.events).toEqual([])
    const caller = await call(['Hi.'], { session: { turn: { detect: 'caller' } } })
    await caller.say('Not a turn.')
    expect(caller.player.events).toEqual([])
    const short = await call(['Hi.', 'Ho.', 'Hu.'], { session: { turn: { maxMs: 500 } } })
    await short.session.write(soundOf('abcdefghijkl'))
    await short.clock.advance(0)
    expect(short.input.calls.length).toBe(1)
  })
})

it('[Z2.6] rejects what cannot work by name', async () => {
  const { agent } = await call([])
  const bad: Array<[object, string]> = [
    [{ ...thread, threadId: '' }, 'threadId'], [{ threadId: 'x' }, 'resourceId'], [{ ...thread, inputRate: 1 }, 'inputRate'],
    [{ ...thread, turn: { detect: 'luck' } }, 'turn.detect'], [{ ...thread, turn: { level: 2 } }, 'turn.level'], [{ ...thread, turn: { speechMs: 0 } }, 'turn.speechMs'],
    [{ ...thread, turn: { silenceMs: 0 } }, 'turn.silenceMs'], [{ ...thread, turn: { maxMs: 0 } }, 'turn.maxMs'],
  ]
  for (const [options, field] of bad) {
    await expect(agent.voice.session(options as VoiceSessionOptions)).rejects.toMatchObject({ code: 'invalid_argument', details: { field } })
  }
  expect(() => new Agent({ id: 'a', voice: {} as never })).toThrow(expect.objectContaining({ code: 'invalid_agent', details: { field: 'voice' } }) as Error)
  const mute = new Agent({ id: 'mute', model: scriptedModel([]) })
  await expect(mute.voice.speak('Hi.')).rejects.toMatchObject({ code: 'voice_missing' })
  expect(await mute.voice.getListener()).toEqual({ enabled: false })
})

it('[Z1.1] an agent passes the options of a call to its voice', async () => {
  const { agent, output, input } = await call([])
  const format = { type: 'audio/pcm', rate: 24_000 }
  const shared = { providerOptions: { tone: { a: 1 } }, headers: { 'x-a': '1' } }
  const audio = await agent.voice.speak('Hi.', { ...shared, speaker: 'ada', language: 'en', format, speed: 2, instructions: 'softly' })
  expect(audio.mediaType).toBe('audio/pcm;rate=24000')
  expect(output.calls[0]).toMatchObject({ ...shared, voice: 'ada', language: 'en', outputFormat: 'pcm', speed: 2, instructions: 'softly' })
  audio.destroy()
  const partial: string[] = []
  const mediaType = 'audio/pcm;rate=24000'
  expect(await agent.voice.listen(soundOf('Hi.'), { ...shared, mediaType, onPartial: (text) => partial.push(text) })).toBe('Hi.')
  expect(input.calls[0]).toMatchObject({ ...shared, mediaType: 'audio/wav' })
  const abortSignal = AbortSignal.abort(new Error('not now'))
  await expect(agent.voice.listen(soundOf('Hi.'), { mediaType, abortSignal })).rejects.toThrow('not now')
  await expect(agent.voice.speak('Hi.', { abortSignal })).rejects.toThrow('not now')
  expect([input.calls.length, output.calls.length, partial]).toEqual([1, 1, []])
})

it('[Z1.8] a voice may depend on the request', async () => {
  const voices = { ada: toneSpeech(), bob: toneSpeech() }
  const voice: AgentConfig['voice'] = ({ requestContext }) => new CompositeVoice({ output: requestContext.get('who') === 'ada' ? voices.ada : voices.bob })
  const agent = new Agent({ id: 'guide', model: scriptedModel([]), voice })
  const audio = await agent.getVoice({ requestContext: new RequestContext({ who: 'ada' }) }).speak('Hi.')
  audio.destroy()
  expect([voices.ada.calls.length, voices.bob.calls.length]).toEqual([1, 0])
  ;(await agent.voice.speak('Hi.')).destroy()
  expect([voices.ada.calls.length, voices.bob.calls.length]).toEqual([1, 1])
  expect(await agent.voice.getSpeakers()).toEqual([])
  const wrong = new Agent({ id: 'wrong', model: scriptedModel([]), voice: () => ({}) as never })
  await expect(wrong.voice.speak('Hi.')).rejects.toMatchObject({ code: 'invalid_agent' })
})
