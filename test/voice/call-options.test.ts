import { afterEach, describe, expect, it, vi } from 'vitest'
import { openVoiceCall, type RemoteSessionOptions, type RemoteVoiceEvent, type RemoteVoiceSession, type VoiceCallOptions } from '../../src/client/call/index.ts'

/** The parts of a browser that a call uses, as far as a test without one needs them. Chromium itself is in `page-call.campaign.ts`. */
function browser({ state = 'running' }: { state?: string } = {}) {
  const seen = { asked: [] as unknown[], modules: [] as string[], closed: 0, stopped: 0 }
  class Port extends EventTarget {
    said: unknown[] = []
    postMessage(message: unknown) {
      this.said.push(message)
    }
    start() {}
    close() {}
  }
  const nodes: FakeNode[] = []
  class FakeNode {
    readonly port = new Port()
    readonly name: string
    constructor(_context: unknown, name: string) {
      this.name = name
      nodes.push(this)
    }
    connect() {}
    disconnect() {}
  }
  class Stream {
    readonly tracks = [Object.assign(new EventTarget(), { stop: () => seen.stopped++ })]
    getAudioTracks() {
      return this.tracks
    }
    getTracks() {
      return this.tracks
    }
  }
  class Context {
    readonly sampleRate = 48_000
    readonly outputLatency = 0
    readonly destination = {}
    state = state
    readonly audioWorklet = { addModule: async (url: string) => void seen.modules.push(url) }
    resume = async () => {}
    createGain() {
      return { connect() {}, context: this }
    }
    createMediaStreamSource() {
      return { connect() {} }
    }
    async close() {
      this.state = 'closed'
      seen.closed++
    }
  }
  vi.stubGlobal('AudioContext', Context)
  vi.stubGlobal('AudioWorkletNode', FakeNode)
  vi.stubGlobal('MediaStream', Stream)
  vi.stubGlobal('reportError', (error: unknown) => reported.push(error))
  const reported: unknown[] = []
  const given = new Stream()
  vi.stubGlobal('navigator', { mediaDevices: { getUserMedia: async (asked: { audio: unknown }) => {
    seen.asked.push(asked.audio)
    return given
  } } })
  return { seen, nodes, Stream, given, reported }
}

/** A session that a test speaks for. */
function fakeVoice() {
  const opened: RemoteSessionOptions[] = []
  const written: number[] = []
  const played: unknown[] = []
  const events: RemoteVoiceEvent[] = []
  let [wake, closed] = [() => {}, false]
  const session = {
    state: 'listening',
    write: async (samples: Uint8Array) => void written.push(samples.length),
    played: (report: unknown) => void played.push(report),
    async close() {
      closed = true
      wake()
    },
    events: (async function* () {
      for (;;) {
        const next = events.shift()
        if (next) yield next
        else if (closed) return
        else await new Promise<void>((resolve) => void (wake = resolve))
      }
    })(),
  }
  const say = (event: RemoteVoiceEvent) => {
    events.push(event)
    wake()
  }
  const voice = { session: async (options: RemoteSessionOptions) => (opened.push(options), session as unknown as RemoteVoiceSession) }
  return { voice, opened, written, played, say, close: () => session.close() }
}

afterEach(() => vi.unstubAllGlobals())

describe('a call of a page', () => {
  it('passes the options of its session on, and sets the rate', async () => {
    browser()
    const { voice, opened } = fakeVoice()
    const options: VoiceCallOptions = {
      threadId: 'a', resourceId: 'r', speaker: 's', language: 'de', turn: { detect: 'energy', level: 0.1, speechMs: 90, silenceMs: 300, maxMs: 9_000 },
      reconnect: { maxRetries: 2, delayMs: 10, onLost: () => {}, onOpen: () => {} },
    }
    const call = await openVoiceCall(voice, options)
    expect(opened).toEqual([{ ...options, inputRate: 24_000 }])
    await call.close()
  })

  it('[Z7.5] closes what it opened, also where no session could be opened; a microphone of the page stays open', async () => {
    const { seen, Stream } = browser()
    const { voice } = fakeVoice()
    const call = await openVoiceCall(voice, { threadId: 'a', microphone: { deviceId: 'desk' } })
    expect(seen.asked).toEqual([{ echoCancellation: true, noiseSuppression: true, channelCount: 1, deviceId: 'desk' }])
    await call.close()
    expect([seen.closed, seen.stopped]).toEqual([1, 1])
    const own = await openVoiceCall(fakeVoice().voice, { threadId: 'a', microphone: new Stream() as unknown as MediaStream })
    await own.close()
    expect([seen.closed, seen.stopped, seen.asked.length]).toEqual([2, 1, 1])
    await expect(openVoiceCall({ session: async () => { throw new Error('busy') } }, { threadId: 'a' })).rejects.toThrow('busy')
    expect([seen.closed, seen.stopped]).toEqual([3, 2])
  })

  it('[Z7.5] a page that may not make sound gets an error that says so, and nothing stays open', async () => {
    const { seen } = browser({ state: 'suspended' })
    const { voice, opened } = fakeVoice()
    await expect(openVoiceCall(voice, { threadId: 'a' })).rejects.toMatchObject({ code: 'audio_unavailable', message: expect.stringContaining('click') as string })
    expect([opened, seen.closed, seen.stopped]).toEqual([[], 1, 1])
  })

  it('[Z7.4] loads its worklet from an address where the page names one', async () => {
    const { seen } = browser()
    const call = await openVoiceCall(fakeVoice().voice, { threadId: 'a', workletUrl: '/voice.js' })
    expect(seen.modules).toEqual(['/voice.js'])
    await call.close()
  })

  it('[Z7.1] [Z7.3] gives items to the player, clears it, and reports what was played; events of a page that throws do not end it', async () => {
    const { nodes, given, reported } = browser()
    const { voice, say, played, close } = fakeVoice()
    const seen: string[] = []
    const call = await openVoiceCall(voice, { threadId: 'a', onEvent: (event) => {
      seen.push(event.type)
      if (event.type === 'clear') throw new Error('The page fails.')
    } })
    const player = nodes.find(({ name }) => name === 'heed-player')
    say({ type: 'sentence', itemId: 'one', messageId: 'm', text: 'Hi.', rate: 24_000 })
    say({ type: 'audio', itemId: 'one', atMs: 0, audio: new Uint8Array(4_800) })
    say({ type: 'audio', itemId: 'gone', atMs: 0, audio: new Uint8Array(4_800) })
    say({ type: 'item-end', itemId: 'one', ms: 100 })
    await expect.poll(() => seen).toHaveLength(4)
    const samples = player?.port.said.filter((message) => (message as { type: string }).type === 'samples') as Array<{ itemId: string; ms: number; samples: Float32Array }>
    expect(samples.reduce((sum, one) => sum + one.samples.length, 0)).toBe(4_800)
    expect(new Set(samples.map(({ itemId }) => itemId))).toEqual(new Set(['one']))
    player?.port.dispatchEvent(new MessageEvent('message', { data: { itemId: 'one', ms: 40 } }))
    await expect.poll(() => played).toEqual([{ itemId: 'one', ms: 40 }])
    say({ type: 'clear' })
    await expect.poll(() => reported).toHaveLength(1)
    player?.port.dispatchEvent(new MessageEvent('message', { data: { itemId: 'one', ms: 60, cleared: 1 } }))
    expect(played).toEqual([{ itemId: 'one', ms: 40 }, { itemId: 'one', ms: 60 }])
    // Of a cleared item nothing is played.
    const count = player?.port.said.length
    say({ type: 'audio', itemId: 'one', atMs: 100, audio: new Uint8Array(4_800) })
    await expect.poll(() => seen).toHaveLength(6)
    expect(player?.port.said.length).toBe(count)
    given.tracks[0]?.dispatchEvent(new Event('ended'))
    expect(seen.at(-1)).toBe('error')
    await close()
    await call.ended
  })

  it('[Z7.4] sends silence while it is muted', async () => {
    const { nodes } = browser()
    const { voice, written } = fakeVoice()
    const call = await openVoiceCall(voice, { threadId: 'a' })
    const microphone = nodes.find(({ name }) => name === 'heed-microphone')
    call.muted = true
    for (let block = 0; block < 10; block++) microphone?.port.dispatchEvent(new MessageEvent('message', { data: new Float32Array(960).fill(0.5) }))
    // 24,000 samples a second of 16 bits, but for what the filter holds back.
    expect(written.reduce((sum, length) => sum + length, 0)).toBeGreaterThan(9_400)
    await call.close()
  })

  it('refuses what it does not take by name', async () => {
    browser()
    const { voice } = fakeVoice()
    for (const wrong of [{ inputRate: 8_000 }, { microphone: 'desk' }, { workletUrl: 1 }, { onEvent: 'log' }]) {
      await expect(openVoiceCall(voice, { threadId: 'a', ...wrong } as never)).rejects.toThrow(Object.keys(wrong)[0])
    }
  })
})
