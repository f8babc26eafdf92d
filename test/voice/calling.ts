import { onTestFinished } from 'vitest'
import { HeedClient, type RemoteSessionOptions, type RemoteVoiceEvent, type RemoteVoiceSession } from '../../src/client/index.ts'
import { serve, type ServeOptions } from '../../src/http/server.ts'
import { Agent, Heed, InMemoryStore, silentLogger, type AgentConfig } from '../../src/index.ts'
import { scriptedModel, virtualClock, type Script } from '../../src/testing/index.ts'
import { CompositeVoice } from '../../src/voice/index.ts'
import { rate, silence, soundOf, textOf, toneSpeech, toneTranscription } from './voices.ts'

export const thread = { threadId: 'call', resourceId: 'user-1' }

interface Served {
  config?: Partial<AgentConfig>
  heed?: Partial<ConstructorParameters<typeof Heed>[0]>
  serve?: ServeOptions
  deltaMs?: number
  input?: ReturnType<typeof toneTranscription>
  output?: ReturnType<typeof toneSpeech>
}

/** A server on a real socket whose agent speaks, with a clock that the test moves. */
export async function calling(script: Script, given: Served = {}) {
  const { config = {}, deltaMs = 0, input = toneTranscription(), output = toneSpeech() } = given
  const clock = virtualClock()
  const model = scriptedModel(script, { clock, pace: { deltaMs } })
  const agent = new Agent({ id: 'guide', model, voice: new CompositeVoice({ input, output }), ...config })
  const heed = new Heed({ agents: { agent }, storage: new InMemoryStore({ clock }), clock, logger: silentLogger, ...given.heed })
  const server = await serve(heed, { port: 0, handleSignals: false, ...given.serve })
  onTestFinished(() => server.close())
  const client = (headers: Record<string, string> = {}) => new HeedClient({ baseUrl: server.url, headers })
  const messages = async () => (await (await agent.getMemory()).recall({ ...thread, perPage: false })).messages.map(({ role, content }) => ({
    role: role === 'signal' ? 'user' : role, text: content.parts.flatMap((part) => (part.type === 'text' ? part.text : [])).join(''), incomplete: content.metadata?.incomplete,
  }))

  /** A session of the client, and a player that plays what it is given at once. */
  const call = async (options: Partial<RemoteSessionOptions> = {}, headers?: Record<string, string>) => {
    const session = await client(headers).getAgent('guide').voice.session({ ...thread, ...options })
    onTestFinished(() => session.close())
    const player = play(session)
    const say = async (text: string) => {
      await session.write(soundOf(text))
      await session.write(silence(700))
    }
    return { session, player, say }
  }

  /** Moves the clock in small steps, with time for the network between them, until something is true. */
  const until = async (isTrue: () => boolean | Promise<boolean>, stepMs = 20) => {
    for (let step = 0; step < 5_000; step++) {
      if (await isTrue()) return
      await clock.advance(stepMs)
      await turns()
    }
    throw new Error('It never became true.')
  }
  return { clock, model, agent, heed, server, client, call, until, messages, input, output }
}

/** Lets the network work: a message needs a few turns of the event loop from one end to the other. */
export async function turns(count = 8): Promise<void> {
  for (let turn = 0; turn < count; turn++) {
    await new Promise((resolve) => {
      setImmediate(resolve)
    })
  }
}

/** The events that a player received, and its sound. */
export function play(session: RemoteVoiceSession) {
  const events: RemoteVoiceEvent[] = []
  const sound: Uint8Array[] = []
  const held: { until: Promise<void> | undefined } = { until: undefined }
  const bytes = () => sound.reduce((sum, { length }) => sum + length, 0)
  const done = (async () => {
    for await (const event of session.events) {
      await held.until
      events.push(event)
      if (event.type === 'audio') sound.push(event.audio)
    }
  })()
  return {
    events, bytes, done,
    /** It reads no more until this resolves. */
    hold: (until: Promise<void>) => {
      held.until = until
    },
    ms: () => (bytes() / 2 / rate) * 1_000,
    heard: () => textOf(Buffer.concat(sound)),
    of: <Type extends RemoteVoiceEvent['type']>(type: Type) => events.filter((event): event is Extract<RemoteVoiceEvent, { type: Type }> => event.type === type),
  }
}
