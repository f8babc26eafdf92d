import { describe, expect, it } from 'vitest'
import { HeedClient } from '../../src/client/index.ts'
import { createHandler } from '../../src/http/server.ts'
import { encodeAudio, decodeAudio } from '../../src/voice/wire.ts'
import { calling, play, thread, turns } from './calling.ts'
import { rate, silence, soundOf, toneTranscription } from './voices.ts'
import { dialled, network } from './wire-client.ts'

describe('a session over a WebSocket', () => {
  it('[Z4.5] the words of the user are on the thread, and the answer comes as sound, sample by sample', async () => {
    const { call, until, messages } = await calling(['By train. It is fast.'])
    const { session, player, say } = await call()
    await say('How do I get there?')
    await until(() => player.of('item-end').length === 2 && session.state === 'listening')
    expect(await messages()).toMatchObject([{ role: 'user', text: 'How do I get there?' }, { role: 'assistant', text: 'By train. It is fast.' }])
    expect(player.heard()).toBe('By train.It is fast.')
    expect(player.of('transcript')).toMatchObject([{ text: 'How do I get there?' }])
    expect(player.of('sentence').map(({ text }) => text)).toEqual(['By train.', 'It is fast.'])
    expect(player.of('item-end').map(({ ms }) => ms)).toEqual([450, 550])
    expect(player.of('state').map(({ state }) => state)).toEqual(['thinking', 'speaking', 'listening'])
    const items = player.of('sentence').map(({ itemId }) => itemId)
    for (const itemId of items) {
      const places = player.of('audio').filter((event) => event.itemId === itemId)
      expect(places.map(({ atMs }) => atMs)).toEqual(places.map((_event, index) => index * 100))
    }
    await session.close()
    await player.done
  })

  it('[Z4.5] options of a session reach it, and wrong ones are refused by name', async () => {
    const { call, until, output, server } = await calling(['Hi.'])
    const { session, player } = await call({ speaker: 'ada', language: 'en', inputRate: 12_000, turn: { detect: 'caller' } })
    session.beginTurn()
    await session.write(soundOf('ab'))
    session.endTurn()
    await until(() => player.of('item-end').length === 1)
    expect(output.calls[0]).toMatchObject({ voice: 'ada', language: 'en' })
    await session.close()
    for (const [start, field] of [[{ inputRate: 1 }, 'inputRate'], [{ turn: { level: 7 } }, 'turn.level'], [{ after: -1 }, 'after']] as const) {
      const { start: begin, closed } = await dialled(server.url)
      expect(await begin(start)).toMatchObject({ type: 'error', final: true, error: { code: 'invalid_argument', details: { field } } })
      expect(await closed).toMatchObject({ code: 4400 })
    }
    const { start: begin } = await dialled(server.url)
    expect(await begin({ volume: 11 })).toMatchObject({ error: { code: 'unsupported_option', details: { option: 'volume' } } })
  })

  it('[Z4.6] speech over the agent stops the sound: within 150 ms of the signal, and nothing of it follows', async () => {
    const { call, until, clock, agent, messages } = await calling(['I would go by train. '.repeat(40), 'Ok.'], { deltaMs: 20 })
    const { session, player, say } = await call()
    await say('How do I get there?')
    await until(() => player.ms() >= 1_000)
    const [before, signalled] = [player.bytes(), clock.now()]
    await session.write(soundOf('Wait'))
    await until(() => player.of('clear').length === 1, 10)
    expect(clock.now() - signalled).toBeLessThanOrEqual(150)
    const after = player.bytes()
    expect(((after - before) / 2 / rate) * 1_000).toBeLessThanOrEqual(150)
    await until(async () => (await agent.activeRun(thread)) === null)
    for (let i = 0; i < 20; i++) {
      await clock.advance(50)
      await turns()
    }
    expect(player.bytes()).toBe(after)
    expect(player.events.at(-1)?.type).not.toBe('audio')
    await session.write(silence(700))
    await until(() => player.of('transcript').length === 2)
    expect((await messages())[1]).toMatchObject({ role: 'assistant', incomplete: 'interrupted' })
  })

  it('[Z4.7] a dropped connection goes on: no sound is lost or doubled, in either direction', async () => {
    const { until, server, messages } = await calling(['One two three four five six seven eight nine ten. Eleven twelve.', 'Yes.'])
    const net = await network(server.url)
    const session = await new HeedClient({ baseUrl: net.url }).getAgent('guide').voice.session({ ...thread, reconnect: { delayMs: 1 } })
    const player = play(session)
    await session.write(soundOf('Count, please.'))
    await session.write(silence(700))
    await until(() => player.ms() >= 600)
    net.cut()
    await expect.poll(() => player.of('connection').at(-1)?.state).toBe('lost')
    const heardOffline = player.ms()
    // The client is away: the sound waits.
    for (let i = 0; i < 40; i++) await turns()
    expect(player.ms() - heardOffline).toBe(0)
    const id = session.id
    net.mend()
    await expect.poll(() => player.of('connection').at(-1)?.state).toBe('resumed')
    expect(session.id).toBe(id)
    await until(() => player.of('item-end').length === 2 && session.state === 'listening')
    expect(player.heard()).toBe('One two three four five six seven eight nine ten.Eleven twelve.')
    // In the middle of words of the user.
    await session.write(soundOf('Was that'))
    net.cut()
    await session.write(soundOf(' all?'))
    await session.write(silence(700))
    net.mend()
    await expect.poll(() => player.of('connection').length).toBe(5)
    await until(() => player.of('transcript').length === 2)
    expect(player.of('transcript')[1]?.text).toBe('Was that all?')
    expect((await messages()).map(({ text }) => text).slice(0, 3)).toEqual(['Count, please.', 'One two three four five six seven eight nine ten. Eleven twelve.', 'Was that all?'])
    await session.close()
  })

  it('[Z4.7] how far the player was is known after a dropped connection', async () => {
    const { until, server, messages } = await calling(['One two three four. Five six.', 'Sure.'])
    const net = await network(server.url)
    const session = await new HeedClient({ baseUrl: net.url }).getAgent('guide').voice.session({ ...thread, reconnect: { delayMs: 1 } })
    const player = play(session)
    await session.write(soundOf('Count.'))
    await session.write(silence(700))
    await until(() => player.ms() >= 600)
    net.cut()
    await expect.poll(() => player.of('connection').at(-1)?.state).toBe('lost')
    // It played on, and stopped where its sound ended.
    session.played({ itemId: player.of('sentence')[0]?.itemId ?? '', ms: 300 })
    session.interrupt()
    net.mend()
    await expect.poll(() => player.of('connection').at(-1)?.state).toBe('resumed')
    await until(() => player.of('heard').length === 1)
    expect((await messages())[1]).toMatchObject({ text: 'One two', incomplete: 'interrupted' })
    await session.close()
  })

  it('[Z4.7] a session that is over goes on as another one on the same thread', async () => {
    const { until, server, messages, clock } = await calling(['One.', 'Two.'], { serve: { lingerMs: 1_000 } })
    const net = await network(server.url)
    const session = await new HeedClient({ baseUrl: net.url }).getAgent('guide').voice.session({ ...thread, reconnect: { delayMs: 1 } })
    const player = play(session)
    await session.write(soundOf('First.'))
    await session.write(silence(700))
    await until(() => player.of('item-end').length === 1)
    const { id } = session
    net.cut()
    await expect.poll(() => player.of('connection').at(-1)?.state).toBe('lost')
    await turns(50)
    await clock.advance(1_500)
    net.mend()
    await expect.poll(() => player.of('connection').at(-1)?.state).toBe('restarted')
    expect(session.id).not.toBe(id)
    await session.write(soundOf('Second.'))
    await session.write(silence(700))
    await until(() => player.of('item-end').length === 2)
    expect((await messages()).map(({ text }) => text)).toEqual(['First.', 'One.', 'Second.', 'Two.'])
    await session.close()
  })

  it('[Z4.7] a connection that takes a session over ends the one before', async () => {
    const { server } = await calling(['Hi.'])
    const first = await dialled(server.url)
    const started = await first.start()
    const second = await dialled(server.url)
    expect(await second.start({ session: started?.session, after: 0 })).toMatchObject({ type: 'started', session: started?.session, resumed: true })
    expect(await first.closed).toMatchObject({ code: 4001 })
    const third = await dialled(server.url)
    expect(await third.start({ session: 'unknown' })).toMatchObject({ error: { code: 'voice_gone' } })
    expect(await third.closed).toMatchObject({ code: 4404 })
  })
})

describe('limits of sessions', () => {
  it('[Z4.8] a client that does not acknowledge gets no more than three seconds of sound, and all of it later', async () => {
    const { until, server, clock } = await calling(['I would go by train, since it is fast and cheap. '.repeat(10)])
    const { start, socket, sound, say, of } = await dialled(server.url)
    await start()
    socket.send(soundOf('How?'))
    socket.send(silence(700))
    await until(() => sound.length === 30)
    for (let i = 0; i < 50; i++) {
      await clock.advance(100)
      await turns()
    }
    expect(sound.length).toBe(30)
    const last = decodeAudio(sound.at(-1) ?? new Uint8Array())?.seq ?? 0
    say({ type: 'ack', seq: last })
    await until(() => sound.length === 60)
    say({ type: 'interrupt' })
    // It comes at once, whatever was not acknowledged.
    await until(() => of('clear').length === 1, 0)
  })

  it('[Z4.8] a reader that stops reading stops the sound, and goes on where it was', async () => {
    const text = 'I would go by train, since it is fast and cheap. '
    const { call, until, clock } = await calling([text.repeat(4)])
    const { player, say } = await call()
    await say('How?')
    await until(() => player.ms() > 500)
    const { promise, resolve } = Promise.withResolvers<void>()
    player.hold(promise)
    for (let i = 0; i < 60; i++) {
      await clock.advance(100)
      await turns()
    }
    const stopped = player.ms()
    resolve()
    await until(() => player.of('item-end').length === 4)
    expect(stopped).toBeLessThan(text.length * 50)
    expect(player.heard()).toBe(text.trim().repeat(4))
  })

  it('[Z4.8] while turns are being read, no more sound is taken than fits, and none is lost', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const { call, until, input } = await calling(Array.from({ length: 20 }, () => 'Ok.'), { input: toneTranscription({ onCall: () => promise }) })
    const { session, player } = await call()
    let written = 0
    const speaking = (async () => {
      for (let turn = 0; turn < 12; turn++) {
        await session.write(soundOf(`Turn ${turn} of all that I have to say.`))
        await session.write(silence(700))
        written++
      }
    })()
    await until(() => input.calls.length >= 3)
    for (let i = 0; i < 20; i++) await turns()
    expect(written).toBeLessThan(12)
    resolve()
    await until(() => player.of('transcript').length === 12)
    await speaking
    expect(player.of('transcript').map(({ text }) => text)).toEqual(Array.from({ length: 12 }, (_value, turn) => `Turn ${turn} of all that I have to say.`))
    expect(player.of('error')).toEqual([])
  })

  it('[Z4.8] a client that sends faster than four times as fast as it speaks is slowed down', async () => {
    const { server, until, clock } = await calling([])
    const { start, socket, of } = await dialled(server.url)
    await start({ turn: { detect: 'caller' } })
    // 30 s are free.
    for (let second = 0; second < 60; second++) socket.send(silence(1_000))
    await until(() => of('received').length >= 30, 0)
    await turns(100)
    const received = () => Number(of('received').at(-1)?.bytes) / 2 / rate
    expect(received()).toBeLessThan(35)
    await clock.advance(4_000)
    await turns(50)
    expect(received()).toBeLessThan(50)
    await until(() => received() === 60, 500)
  })

  it('[Z4.8] messages that are too long, sessions that are silent for too long and that last too long end with a reason', async () => {
    const { server, clock } = await calling([], { serve: { limits: { voiceMessageBytes: 1_000, voiceIdleMs: 5_000, voiceMs: 20_000 } } })
    const long = await dialled(server.url)
    await long.start()
    long.socket.send(new Uint8Array(1_002))
    expect(await long.closed).toMatchObject({ code: 1009 })
    await turns()
    const idle = await dialled(server.url)
    await idle.start()
    await clock.advance(5_100)
    expect(await idle.closed).toMatchObject({ code: 4408 })
    expect(idle.of('error')).toMatchObject([{ final: true, error: { code: 'closed' } }])
    const lasting = await dialled(server.url)
    await lasting.start()
    for (let i = 0; i < 21; i++) {
      lasting.socket.send(silence(10))
      await turns()
      await clock.advance(1_000)
    }
    expect(await lasting.closed).toMatchObject({ code: 4408 })
    const mute = await dialled(server.url)
    await clock.advance(10_100)
    expect(await mute.closed).toMatchObject({ code: 4400 })
  })

  it('[Z4.8] a thread has one session; one whose client is gone makes way', async () => {
    const { server, until } = await calling([])
    const first = await dialled(server.url)
    await first.start()
    const second = await dialled(server.url)
    expect(await second.start()).toMatchObject({ error: { code: 'voice_busy' } })
    expect(await second.closed).toMatchObject({ code: 4409 })
    first.socket.close()
    await first.closed
    let third: Awaited<ReturnType<typeof dialled>> | undefined
    await until(async () => {
      third = await dialled(server.url)
      return (await third.start())?.type === 'started'
    })
    expect(third?.messages[0]).toMatchObject({ type: 'started', resumed: false })
  })

  it.each([
    ['a text that is no JSON', 'nonsense'], ['an unknown message', '{"type":"sing"}'], ['no object', '[]'], ['half a sample', new Uint8Array(3)],
    ['a position that is none', '{"type":"played","itemId":"a","ms":-1}'], ['a number that is none', '{"type":"ack","seq":-1}'],
  ])('[Z4.9] %s ends the connection with a reason; the session can be resumed', async (_what, message) => {
    const { server } = await calling([])
    const { start, socket, closed, of } = await dialled(server.url)
    const started = await start()
    socket.send(message as string)
    expect(await closed).toMatchObject({ code: 4400 })
    expect(of('error')).toMatchObject([{ final: true, error: { code: 'invalid_argument' } }])
    const again = await dialled(server.url)
    expect(await again.start({ session: started?.session })).toMatchObject({ type: 'started', resumed: true })
  })

  it('[Z4.9] the first message is a start', async () => {
    const { server } = await calling([])
    for (const first of [new Uint8Array(2), '{"type":"begin"}']) {
      const { socket, closed } = await dialled(server.url)
      socket.send(first as string)
      expect(await closed).toMatchObject({ code: 4400 })
    }
  })

  it('[Z4.9] a server that closes ends its sessions, and the client looks for another', async () => {
    const { server, call, heed } = await calling([])
    const { player } = await call({ reconnect: { maxRetries: 1, delayMs: 1 } })
    await server.close()
    await player.done
    expect(player.of('connection').map(({ state }) => state)).toEqual(['open', 'lost'])
    expect(player.of('error')).toMatchObject([{ error: { code: 'unreachable' } }])
    expect(heed.closed).toBe(true)
  })

  it('[Z4.1] the route is no ordinary one: without an upgrade it says so, also in a handler without a server', async () => {
    const { server, heed } = await calling([])
    const path = '/api/agents/guide/threads/call/voice?resourceId=user-1'
    const response = await fetch(server.url + path)
    expect([response.status, response.headers.get('sec-websocket-version'), ((await response.json()) as { code: string }).code]).toEqual([426, '13', 'upgrade_required'])
    const handler = createHandler(heed, { auth: 'local' })
    expect((await handler(new Request(`http://localhost${path}`))).status).toBe(426)
    handler.close()
    expect((await dialled(server.url, { path: '/api/agents/nobody/threads/call/voice' })).isOpen).toBe(false)
    expect((await dialled(server.url, { path: '/api/agents' })).isOpen).toBe(false)
  })
})

it('sound keeps its number, its item and its place in binary messages', () => {
  const audio = new Uint8Array([1, 2, 3, 4])
  expect(decodeAudio(encodeAudio({ seq: 4_000_000_000, item: 7, atMs: 86_400_000, audio }))).toEqual({ seq: 4_000_000_000, item: 7, atMs: 86_400_000, audio })
  expect(decodeAudio(new Uint8Array(11))).toBeUndefined()
})
