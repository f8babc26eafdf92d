import { createOpenAI } from '@ai-sdk/openai'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { Agent, createTool, Heed, InMemoryStore, silentLogger, type AgentConfig, type Logger } from '../../src/index.ts'
import { providerServer, scriptedModel, virtualClock, type Script, type RecordedRequest } from '../../src/testing/index.ts'
import { CompositeVoice, type CompositeVoiceOptions, type VoiceSession, type VoiceSessionEvent, type VoiceSessionOptions } from '../../src/voice/index.ts'
import { HeedClient } from '../../src/client/index.ts'
import { serve } from '../../src/http/server.ts'
import { play as playRemote, turns } from './calling.ts'
import { silence, soundOf, textOf } from './voices.ts'

const thread = { threadId: 'call', resourceId: 'user-1' }

interface Setup {
  config?: Partial<AgentConfig>
  voice?: Partial<CompositeVoiceOptions>
  session?: Partial<VoiceSessionOptions>
  deltaMs?: number
  listen?: (pcm: Uint8Array) => string
}

/** An agent whose sessions are those of OpenAI's realtime protocol, on a server of this machine. The clock is moved by the test. */
async function calling(script: Script<RecordedRequest>, { config = {}, voice = {}, session: options = {}, deltaMs = 0, listen }: Setup = {}) {
  const clock = virtualClock()
  const server = await providerServer({ script, clock, pace: { deltaMs }, ...(listen ? { speech: { listen } } : {}) })
  const openai = createOpenAI(server.openai)
  const model = scriptedModel(['As text.', 'As text again.'])
  const logger = { ...silentLogger, warn: vi.fn<Logger['warn']>() }
  const agent = new Agent({
    id: 'guide', instructions: 'You answer in a few words.', model,
    voice: new CompositeVoice({ realtime: openai.experimental_realtime('gpt-realtime'), speaker: 'marin', ...voice }), ...config,
  })
  const heed = new Heed({ agents: { agent }, storage: new InMemoryStore({ clock }), clock, logger })
  const session = await agent.voice.session({ ...thread, ...options })
  onTestFinished(async () => {
    await session.close()
    await heed.close()
    await server.close()
  })
  const player = play(session)
  const until = async (isTrue: () => boolean | Promise<boolean>, stepMs = 20) => {
    for (let step = 0; step < 3_000; step++) {
      if (await isTrue()) return
      await clock.advance(stepMs)
      await turns(4)
    }
    throw new Error('It never became true.')
  }
  const say = async (text: string) => {
    await session.write(soundOf(text))
    await session.write(silence(700))
  }
  const messages = async () => (await (await agent.getMemory()).recall({ ...thread, perPage: false })).messages.map(({ id, role, content }) => ({
    id, role: role === 'signal' ? 'user' : role, metadata: content.metadata, text: content.parts.flatMap((part) => (part.type === 'text' ? part.text : [])).join(''),
  }))
  const idle = () => until(() => session.state === 'listening')
  return { clock, server, agent, heed, logger, session, player, until, idle, say, messages, model, openai }
}

function play(session: VoiceSession) {
  const events: VoiceSessionEvent[] = []
  const sound: Uint8Array[] = []
  const done = (async () => {
    for await (const event of session.events) {
      events.push(event)
      if (event.type === 'audio') sound.push(event.audio)
    }
  })()
  return {
    events, done, heard: () => textOf(Buffer.concat(sound)),
    of: <Type extends VoiceSessionEvent['type']>(type: Type) => events.filter((event): event is Extract<VoiceSessionEvent, { type: Type }> => event.type === type),
  }
}

const sent = (server: { realtime: readonly { events: readonly object[] }[] }, index = 0) => (server.realtime[index]?.events ?? []) as ReadonlyArray<Record<string, unknown> & { type: string }>

describe('a realtime model', () => {
  it('[Z6.1] answers on the thread: the words of both are messages in order, and its own sound is played', async () => {
    const { session, player, say, until, idle, messages, server, model } = await calling(['By train. It is fast.', 'At ten.'])
    await say('How do I get there?')
    await until(() => player.of('item-end').length === 1)
    await idle()
    await say('When?')
    await until(() => player.of('item-end').length === 2)
    await idle()
    expect(player.heard()).toBe('By train. It is fast.At ten.')
    expect((await messages()).map(({ id, role, text }) => [role === 'user' ? id : role, text])).toEqual([
      [`${session.id}:1`, 'How do I get there?'], ['assistant', 'By train. It is fast.'], [`${session.id}:2`, 'When?'], ['assistant', 'At ten.'],
    ])
    expect(player.of('sentence').map(({ text, itemId }) => text + player.of('caption').filter((event) => event.itemId === itemId).map((event) => event.text).join(''))).toEqual(['By train. It is fast.', 'At ten.'])
    expect(player.of('state').map(({ state }) => state)).toEqual(['thinking', 'speaking', 'listening', 'thinking', 'speaking', 'listening'])
    expect(model.callCount).toBe(0)
    // The model has heard the words itself: nothing of them is sent as text.
    expect(sent(server).filter(({ type }) => type === 'conversation.item.create')).toEqual([])
    expect(server.realtime[0]?.session).toMatchObject({ instructions: 'You answer in a few words.', audio: { input: { turn_detection: null, transcription: {} }, output: { voice: 'marin' } } })
    expect(server.realtime.length).toBe(1)
  })

  it('[Z6.2] its tools are run as those of any run: stored, with their results in the conversation', async () => {
    const asked: unknown[] = []
    const weather = createTool({ id: 'weather', description: 'The weather.', inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }, execute: async (input) => (asked.push(input), { degrees: 21 }) })
    const script: Script<RecordedRequest> = [{ text: 'One moment.', toolCalls: [{ toolName: 'weather', input: { city: 'Sintra' } }] }, 'It is 21 degrees.']
    const { player, say, until, idle, messages, server, agent } = await calling(script, { config: { tools: { weather } } })
    await say('How warm is it?')
    await until(() => player.of('item-end').length === 2)
    await idle()
    expect(asked).toEqual([{ city: 'Sintra' }])
    expect(player.heard()).toBe('One moment.It is 21 degrees.')
    expect(player.of('tool').map(({ toolName, state }) => [toolName, state])).toEqual([['weather', 'running'], ['weather', 'done']])
    expect(server.realtime[0]?.items.map(({ type, text }) => [type, text])).toEqual([
      ['message', 'How warm is it?'], ['message', 'One moment.'], ['function_call', '{"city":"Sintra"}'], ['function_call_output', '{"degrees":21}'], ['message', 'It is 21 degrees.'],
    ])
    expect((await messages()).map(({ text }) => text)).toEqual(['How warm is it?', 'One moment.It is 21 degrees.'])
    const [, answer] = (await (await agent.getMemory()).recall({ ...thread, perPage: false })).messages
    const calls = answer?.content.parts.flatMap((part) => (part.type === 'tool-invocation' ? part.toolInvocation : []))
    expect(calls).toMatchObject([{ toolName: 'weather', state: 'result', args: { city: 'Sintra' }, result: { degrees: 21 } }])
  })

  it('[Z6.3] a tool that needs an approval waits for it on the thread, and is answered in the call', async () => {
    let ran = 0
    const pay = createTool({ id: 'pay', description: 'Pays.', requireApproval: true, execute: async () => ({ paid: ++ran }) })
    const { player, say, until, idle, agent, session } = await calling([{ text: 'Shall I?', toolCalls: [{ toolName: 'pay', toolCallId: 'call_pay' }] }, 'It is paid.'], { config: { tools: { pay } } })
    await say('Pay it.')
    await until(() => player.of('tool').some(({ state }) => state === 'waiting'))
    await idle()
    // A yes by voice is no approval.
    expect(ran).toBe(0)
    expect(session.state).toBe('listening')
    await agent.sendToolApproval({ ...thread, toolCallId: 'call_pay', approved: true })
    await until(() => player.heard().endsWith('It is paid.'))
    await idle()
    expect(ran).toBe(1)
    expect(player.heard()).toBe('Shall I?It is paid.')
  })

  it('[Z6.4] speech over it stops its sound and its answer; model and history have what the user heard', async () => {
    const long = 'One two three four five six seven eight nine ten eleven twelve thirteen fourteen. '.repeat(4)
    const { player, say, until, idle, server, messages, clock, session, agent } = await calling([long, 'Sure.'], { deltaMs: 20 })
    await say('Count.')
    await until(() => player.heard().length > 20)
    const signalled = clock.now()
    session.beginTurn()
    await until(() => player.of('clear').length === 1, 0)
    expect(clock.now() - signalled).toBeLessThanOrEqual(150)
    const heard = player.heard()
    await until(async () => (await agent.activeRun(thread)) === null)
    await session.write(soundOf('Stop, please.'))
    session.endTurn()
    await until(() => player.heard().endsWith('Sure.'))
    await idle()
    const stored = await messages()
    expect(stored.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant'])
    expect(stored[1]?.metadata).toMatchObject({ incomplete: 'interrupted', voice: { heardMs: expect.any(Number) as number } })
    const cut = stored[1]?.text ?? ''
    expect(long.startsWith(cut)).toBe(true)
    expect(cut.length).toBeGreaterThan(5)
    expect(cut.length).toBeLessThanOrEqual(heard.length + 15)
    const truncated = sent(server).find(({ type }) => type === 'conversation.item.truncate')
    expect(Number(truncated?.audio_end_ms)).toBeGreaterThan(0)
    expect(server.realtime[0]?.items.find(({ role }) => role === 'assistant')?.audioMs).toBe(truncated?.audio_end_ms)
    expect(sent(server).some(({ type }) => type === 'response.cancel')).toBe(true)
    // The same connection goes on: the next prompt begins with what the model has.
    expect([server.realtime.length, player.heard()]).toEqual([1, `${heard}Sure.`])
  })

  it('[Z6.4] an answer that is written and still sounds is cut in the same way, without an abort', async () => {
    const { player, say, until, idle, server, messages } = await calling(['One two three four. Five six seven eight nine ten.', 'Sure.'])
    await say('Count.')
    await until(() => player.heard().length > 10)
    await say('Stop, please.')
    await until(() => player.heard().endsWith('Sure.'))
    await idle()
    const cut = (await messages())[1]?.text ?? ''
    expect('One two three four. Five six seven eight nine ten.'.startsWith(cut) && cut.length < 50).toBe(true)
    expect(sent(server).some(({ type }) => type === 'response.cancel')).toBe(false)
    expect(sent(server).some(({ type }) => type === 'conversation.item.truncate')).toBe(true)
    expect(server.realtime.length).toBe(1)
  })

  it('[Z6.5] messages of others on the thread reach it as text, and interrupt it as any run', async () => {
    const { player, say, until, idle, server, agent, messages } = await calling([{ text: 'I would go by train since it is fast. '.repeat(5), hang: true }, 'By bus.', 'Yes.'], { deltaMs: 5 })
    await say('How?')
    await until(() => player.heard().length > 10)
    agent.sendMessage('The train is cancelled.', { ...thread, ifActive: { behavior: 'interrupt' } })
    await until(() => player.heard().endsWith('By bus.'))
    await idle()
    expect(sent(server).filter(({ type }) => type === 'conversation.item.create')).toMatchObject([{ item: { role: 'user', content: [{ text: 'The train is cancelled.' }] } }])
    // A message while it is silent is answered aloud too.
    agent.sendMessage('Is that sure?', thread)
    await until(() => player.heard().endsWith('Yes.'))
    await idle()
    expect((await messages()).map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant', 'user', 'assistant'])
    expect(server.realtime.length).toBe(1)
  })

  it('[Z6.6] a session on a thread with history begins with it, as a record that is no message', async () => {
    const first = await calling([])
    await first.agent.generate('My name is Ada.', { memory: { thread: 'old', resource: 'user-1' } })
    await first.session.close()
    const session = await first.agent.voice.session({ threadId: 'old', resourceId: 'user-1' })
    onTestFinished(() => session.close())
    const player = play(session)
    first.server.script(['Ada.'])
    await session.write(soundOf('Who am I?'))
    await session.write(silence(700))
    await first.until(() => player.heard() === 'Ada.')
    const [record, ...more] = sent(first.server, 1).filter(({ type }) => type === 'conversation.item.create')
    const item = record?.item as { content: Array<{ text: string }> } | undefined
    const text = item?.content[0]?.text ?? ''
    expect(text.split('\n').slice(1).map((line) => JSON.parse(line) as object)).toEqual([{ role: 'user', text: 'My name is Ada.' }, { role: 'assistant', text: 'As text.' }])
    expect(more).toEqual([])
  })

  it('[Z6.6] words that a processor changed are what the model has: it begins again without their sound', async () => {
    const hide = { id: 'hide', processInput: ({ messages }: { messages: Array<{ content: { parts: Array<{ type: string; text?: string }> } }> }) => {
      for (const { content } of messages) for (const part of content.parts) if (part.text?.includes('1234')) part.text = part.text.replaceAll('1234', '****')
      return messages
    } }
    const { player, say, until, idle, server, messages } = await calling(['Hello.', 'Noted.'], { config: { inputProcessors: [hide as never] } })
    await say('Hi there.')
    await until(() => player.heard() === 'Hello.')
    await idle()
    await say('My pin is 1234.')
    await until(() => player.heard().endsWith('Noted.'))
    await idle()
    expect((await messages()).map(({ text }) => text)).toEqual(['Hi there.', 'Hello.', 'My pin is ****.', 'Noted.'])
    expect(server.realtime.length).toBe(2)
    expect(JSON.stringify(server.realtime[1]?.items)).not.toContain('1234')
    expect(server.realtime[1]?.items.map(({ text }) => text).join('\n')).toContain('My pin is ****.')
  })

  it('[Z6.7] a connection that is lost in an answer is opened again, and the run goes on', async () => {
    const { player, say, until, idle, server, messages } = await calling(['Hello.', { text: ['I am ', 'going ', 'by train.'], errorAfter: { parts: 2 } }, 'going by train.'])
    await say('Hi.')
    await until(() => player.heard() === 'Hello.')
    await idle()
    await say('How?')
    await until(async () => (await messages()).at(-1)?.text.includes('going by train.') === true, 100)
    await until(() => player.heard().endsWith('going by train.'))
    await idle()
    expect(server.realtime.length).toBe(2)
    expect((await messages()).map(({ role }) => role).slice(0, 3)).toEqual(['user', 'assistant', 'user'])
  })

  it('[Z6.7] a connection that is lost in a turn of the user loses nothing of it', async () => {
    const { player, session, until, server, messages } = await calling(['Yes.'], { session: { turn: { detect: 'caller' } } })
    session.beginTurn()
    await session.write(soundOf('Do you '))
    server.realtime[0]?.drop()
    await until(() => server.realtime.length === 1)
    await turns(50)
    await session.write(soundOf('hear me?'))
    session.endTurn()
    await until(() => player.heard() === 'Yes.')
    expect((await messages())[0]?.text).toBe('Do you hear me?')
    expect(server.realtime.length).toBe(2)
  })

  it('[Z6.7] a connection that is lost after the last sound of a turn loses nothing of it either', async () => {
    const { player, session, until, server, messages, logger } = await calling(['Yes.'], { session: { turn: { detect: 'caller' } } })
    session.beginTurn()
    await session.write(soundOf('Do you hear me??'))
    await turns(50)
    server.realtime[0]?.drop()
    // The client of the platform learns it when its socket is closed.
    await expect.poll(() => logger.warn).toHaveBeenCalledWith(expect.stringContaining('was lost'), expect.anything())
    session.endTurn()
    await until(() => player.heard() === 'Yes.')
    expect((await messages())[0]?.text).toBe('Do you hear me??')
    expect(server.realtime.length).toBe(2)
  })

  it('[Z6.8] a turn that is too long is an error, and keeps no more sound than it may', async () => {
    const { player, session, until, say, messages } = await calling(['Yes.'], { session: { turn: { detect: 'caller', maxMs: 1_000_000 } } })
    session.beginTurn()
    for (let second = 0; second < 220; second++) await session.write(new Uint8Array(48_000))
    session.endTurn()
    await until(() => player.of('error').length > 0)
    expect(player.of('error')[0]?.error).toMatchObject({ code: 'too_large' })
    session.beginTurn()
    await say('Hi.')
    session.endTurn()
    await until(() => player.heard() === 'Yes.')
    expect((await messages())[0]?.text).toBe('Hi.')
  })

  it('[Z6.8] a turn without words, one that cannot be written down, and a key that is wrong are errors or nothing, and the session goes on', async () => {
    let failing = false
    const listen = (pcm: Uint8Array) => {
      if (failing) throw new Error('no words today')
      return textOf(pcm)
    }
    const { player, say, session, until, idle, server, agent } = await calling(['Hello.'], { listen })
    session.beginTurn()
    await session.write(silence(40))
    session.endTurn()
    session.beginTurn()
    await session.write(silence(400))
    session.endTurn()
    await until(() => server.realtime[0]?.events.filter(({ type }) => type === 'input_audio_buffer.commit').length === 2)
    failing = true
    await say('Lost.')
    await until(() => player.of('error').length === 1)
    expect(player.of('error')[0]?.error).toMatchObject({ code: 'provider_error', message: expect.stringContaining('no words today') as string })
    failing = false
    await say('Hi.')
    await until(() => player.heard() === 'Hello.')
    await idle()
    const nowhere = new CompositeVoice({ realtime: createOpenAI({ baseURL: `${server.url}/none`, apiKey: 'x' }).experimental_realtime('gpt-realtime') })
    const other = new Agent({ id: 'other', model: scriptedModel([]), voice: nowhere })
    const heed = new Heed({ agents: { other }, storage: new InMemoryStore(), logger: silentLogger })
    onTestFinished(() => heed.close())
    await expect(other.voice.session({ threadId: 'x', resourceId: 'y' })).rejects.toMatchObject({ code: 'stream_broken' })
    expect(agent.id).toBe('guide')
  })

  it('[Z6.9] an answer that processors check is played when they have passed it on, and not at all where they changed it', async () => {
    const censor = { id: 'censor', processOutputStream: async ({ part }: { part: { type: string; payload: { text?: string } } }) => {
      return part.type === 'text-delta' && part.payload.text?.includes('secret') ? { ...part, payload: { ...part.payload, text: '[…] ' } } : part
    } }
    const { player, say, until, idle, messages } = await calling(['This is fine.', 'The secret is out.', 'Good.'], { config: { outputProcessors: [censor as never] }, deltaMs: 50 })
    await say('One.')
    await until(() => player.heard() === 'This is fine.')
    await idle()
    await say('Two.')
    await until(async () => (await messages()).length === 4 && (await messages())[3]?.text !== '')
    await idle()
    await say('Three.')
    await until(() => player.heard().endsWith('Good.'))
    await idle()
    expect(player.heard()).toBe('This is fine.Good.')
    expect((await messages())[3]?.text).toBe('The […] is out.')
  })

  it('[Z6.10] a session that ends lets its run go on, as text', async () => {
    const { promise, resolve } = Promise.withResolvers<string>()
    const look = createTool({ id: 'look', description: 'Looks.', execute: () => promise })
    const { say, until, session, agent, messages, server } = await calling([{ toolCalls: [{ toolName: 'look' }] }, 'Found it.', 'never'], { config: { tools: { look } } })
    await say('Look.')
    await until(async () => (await agent.activeRun(thread)) !== null && server.requests.length === 1)
    await until(() => server.realtime[0]?.items.some(({ type }) => type === 'function_call') === true)
    await session.close()
    resolve('there')
    await until(async () => (await agent.activeRun(thread)) === null)
    expect((await messages()).at(-1)?.text).toBe('Found it.')
    // Later runs have the model of the agent.
    await agent.generate('And now?', { memory: { thread: thread.threadId, resource: thread.resourceId } })
    expect((await messages()).at(-1)?.text).toBe('As text.')
  })

  it('[Z6.11] instructions, tools and settings can be added, and one thread has one such session', async () => {
    const { player, say, until, idle, session, server, agent } = await calling([{ toolCalls: [{ toolName: 'dice' }] }, 'Four.'])
    const dice = createTool({ id: 'dice', description: 'Throws dice.', execute: async () => 4 })
    session.realtime?.addInstructions('Be brief.')
    session.realtime?.addTools({ dice })
    session.realtime?.updateConfig({ language: 'pt', transcription: { prompt: 'dice' } })
    await say('Throw.')
    await until(() => player.heard() === 'Four.')
    await idle()
    expect(server.realtime[0]?.session).toMatchObject({
      instructions: 'You answer in a few words.\n\nBe brief.', tools: [{ name: 'dice' }], audio: { input: { transcription: { language: 'pt', prompt: 'dice' } } },
    })
    await expect(agent.voice.session(thread)).rejects.toMatchObject({ code: 'voice_busy' })
    expect(() => session.realtime?.updateConfig({ volume: 3 } as never)).toThrow('volume')
    expect(() => session.realtime?.addInstructions('')).toThrow('text')
  })

  it('[Z6.1] over a WebSocket it is the same session', async () => {
    const { heed, until, server: provider, session: own } = await calling(['By train.', 'At ten. Or at eleven, or at twelve, as you like it best.', 'Ok.'])
    await own.close()
    const server = await serve(heed, { port: 0, handleSignals: false })
    const session = await new HeedClient({ baseUrl: server.url }).getAgent('guide').voice.session(thread)
    const player = playRemote(session)
    await session.write(soundOf('How?'))
    await session.write(silence(700))
    await until(() => player.heard() === 'By train.' && session.state === 'listening')
    await session.write(soundOf('When?'))
    await session.write(silence(700))
    await until(() => player.heard().length > 20)
    session.interrupt()
    await until(() => player.of('heard').length === 1)
    expect(provider.realtime[1]?.events.some(({ type }) => type === 'conversation.item.truncate')).toBe(true)
    await session.close()
    await until(() => true)
    await server.close()
  })

  it('[Z6.12] speak and listen stay those of input and output, and texts of other models are spoken by output', async () => {
    const { openai, agent, player, until, idle, server } = await calling(['Aloud.'])
    await expect(agent.voice.speak('Hi.')).rejects.toMatchObject({ code: 'voice_missing' })
    const voice = new CompositeVoice({ realtime: openai.experimental_realtime('gpt-realtime'), input: openai.transcription('gpt-4o-transcribe'), output: openai.speech('gpt-4o-mini-tts'), format: { type: 'audio/pcm', rate: 24_000 } })
    const audio = await voice.speak('Hi.')
    const pieces: Uint8Array[] = []
    for await (const piece of audio) pieces.push(piece)
    expect(textOf(Buffer.concat(pieces))).toBe('Hi.')
    expect(await voice.listen(Buffer.concat(pieces), { mediaType: 'audio/pcm;rate=24000' })).toBe('Hi.')
    expect([player.heard(), server.requests.map(({ protocol }) => protocol)]).toEqual(['', ['openai-speech', 'openai-transcription']])
    await until(() => true)
    await idle()
  })

  it('[Z6.12] what cannot converse is refused by name', () => {
    const openai = createOpenAI({ apiKey: 'x' })
    const bad: Array<[object, string]> = [
      [{ realtime: {} }, 'realtime'], [{ realtime: scriptedModel([]) }, 'realtime'], [{ realtime: openai.experimental_realtime('gpt-live-1', { api: 'live' }) }, 'realtime'],
      [{ output: openai.speech('tts-1'), realtimeOptions: {} }, 'realtimeOptions'],
    ]
    for (const [options, field] of bad) expect(() => new CompositeVoice(options)).toThrow(expect.objectContaining({ details: { field } }) as Error)
    expect(() => new CompositeVoice({ realtime: openai.experimental_realtime('gpt-realtime'), realtimeOptions: { volume: 1 } as never })).toThrow('volume')
  })
})
