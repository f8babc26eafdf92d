import { request } from 'node:http'
import { expect, onTestFinished } from 'vitest'
import type { HandlerOptions } from '../../../src/http/server.ts'
import { thread, type Probe } from '../probe.ts'
import { heed, server, testing } from '../walked.ts'

const { Agent, Heed, InMemoryStore, Memory, silentLogger } = heed

type Asked = RequestInit & { json?: unknown }
interface World {
  ask(path: string, asked?: Asked): Promise<Response>
  clock: ReturnType<typeof testing.virtualClock>
  prompts(): string
}
type Open = (options: HandlerOptions) => Promise<World>

function made() {
  const clock = testing.virtualClock()
  const model = testing.scriptedModel(() => 'Fine.')
  const guide = new Agent({ id: 'guide', model, memory: new Memory(), watches: true, instructions: ({ requestContext }) => `Plan: ${String(requestContext.get('plan'))}.` })
  const own = new Heed({ agents: { guide }, storage: new InMemoryStore({ clock }), logger: silentLogger, clock })
  return { clock, own, prompts: () => JSON.stringify(model.calls.map(({ prompt }) => prompt)) }
}

const asking = ({ json, ...init }: Asked = {}): RequestInit => ({
  ...init, ...(json === undefined ? {} : { method: 'POST', body: JSON.stringify(json) }), headers: { 'content-type': 'application/json', ...(init.headers as object) },
})

/** The two calls that serve. */
const doors: Record<string, Open> = {
  async createHandler(options) {
    const { own, ...world } = made()
    const handler = server.createHandler(own, options)
    onTestFinished(async () => {
      handler.close()
      await own.close()
    })
    return { ...world, ask: (path, asked) => handler(new Request(`http://localhost/api${path}`, asking(asked))) }
  },
  async serve(options) {
    const { own, ...world } = made()
    const serving = await server.serve(own, { port: 0, handleSignals: false, ...options })
    onTestFinished(() => serving.close())
    return { ...world, ask: (path, asked) => fetch(`${serving.url}/api${path}`, asking(asked)) }
  },
}

const auth = () => ({ id: 'ada', resources: ['user-1'] })
const status = async (response: Promise<Response>) => (await response).status
const list = '/memory/threads?resourceId=user-1'
const threads = (threadId: string) => ['/memory/threads', { json: { threadId, resourceId: 'user-1' } }] as const
const schedule = (id: string, every = 60_000) => ['/agents/guide/schedules', { json: { ...thread, id, every, message: 'x' } }] as const
const watch = (id: string) => ['/agents/guide/watches', { json: { ...thread, id, watch: { description: 'a code', expected_channels: ['sms'] } } }] as const

const shownFor: Record<string, (serve: Open) => Promise<void>> = {
  async 'its limits of what is stored'(serve) {
    for (const limits of [{ threads: 1 }, { threadsPerResource: 1 }]) {
      const { ask } = await serve({ auth, limits })
      expect([await status(ask(...threads('a'))), await status(ask(...threads('b')))]).toEqual([200, 403])
    }
    for (const limits of [{ bytes: 1 }, { bytesPerResource: 1 }]) expect(await status((await serve({ auth, limits })).ask(...threads('a')))).toBe(403)
    for (const limits of [{ schedules: 1 }, { schedulesPerResource: 1 }]) {
      const { ask } = await serve({ auth, limits })
      expect([await status(ask(...schedule('a'))), await status(ask(...schedule('b')))]).toEqual([200, 403])
    }
    for (const limits of [{ watches: 1 }, { watchesPerResource: 1 }]) {
      const { ask } = await serve({ auth, limits })
      expect([await status(ask(...watch('a'))), await status(ask(...watch('b')))]).toEqual([200, 403])
    }
    const { ask } = await serve({ auth, limits: { scheduleMs: 120_000 } })
    expect([await status(ask(...schedule('a'))), await status(ask(...schedule('b', 120_000)))]).toEqual([400, 200])
  },
  async 'its limits of requests'(serve) {
    const { ask, clock } = await serve({ auth, limits: { requests: { read: { requests: 1, perMs: 1_000 } } } })
    expect([await status(ask(list)), await status(ask(list))]).toEqual([200, 429])
    await clock.advance(1_000)
    expect(await status(ask(list))).toBe(200)
    const limited = await serve({ auth, rateLimit: { requests: 1, perMs: 1_000 } })
    expect([await status(limited.ask(list)), await status(limited.ask(list))]).toEqual([200, 429])
    await limited.clock.advance(1_000)
    expect(await status(limited.ask(list))).toBe(200)
  },
  async 'its limits of streams'(serve) {
    for (const limits of [{ streams: 1 }, { streamsPerPrincipal: 1 }]) {
      const { ask } = await serve({ auth, limits })
      const [path, asked] = ['/agents/guide/threads/subscribe', { json: thread }] as const
      const first = await ask(path, asked)
      expect([first.status, await status(ask(path, asked))]).toEqual([200, 429])
      await first.body?.cancel()
    }
  },
  async 'its context, bodies and origins'(serve) {
    const { ask, prompts } = await serve({
      auth, requestContext: ({ given }) => ({ plan: `${String(given.plan)}!` }), maxBodyBytes: 300,
      cors: { origin: 'https://a.example', allowHeaders: ['x-mine'], credentials: true, maxAge: 7 },
    })
    expect(await status(ask('/agents/guide/generate', { json: { messages: 'Hi.', requestContext: { plan: 'gold' } } }))).toBe(200)
    expect(prompts()).toContain('Plan: gold!.')
    expect(await status(ask('/agents/guide/generate', { json: { messages: 'x'.repeat(400) } }))).toBe(413)
    const preflight = await ask('/agents', { method: 'OPTIONS', headers: { origin: 'https://a.example', 'access-control-request-method': 'GET' } })
    expect(Object.fromEntries(preflight.headers)).toMatchObject({
      'access-control-allow-origin': 'https://a.example', 'access-control-allow-credentials': 'true', 'access-control-max-age': '7',
      'access-control-allow-headers': expect.stringContaining('x-mine') as string,
    })
  },
  async 'the times of its streams'(serve) {
    const { ask, clock } = await serve({ auth, heartbeatMs: 7_000 })
    const stream = await ask('/agents/guide/threads/subscribe', { json: thread })
    expect(stream.headers.get('heed-heartbeat-ms')).toBe('7000')
    await stream.body?.cancel()
    expect(clock.now()).toBeGreaterThan(0)
    for (const option of ['heartbeatMs', 'stallMs', 'lingerMs']) await expect(serve({ auth, [option]: -1 })).rejects.toMatchObject({ message: expect.stringContaining(option) as string })
  },
}

export const servings: Probe[] = [
  ...Object.entries(doors).flatMap(([name, serve]) => Object.entries(shownFor).map(([what, show]) => ({ title: `${name}: ${what}`, run: () => show(serve) }))),
  {
    title: 'serve and createHandler: failed logins',
    async run() {
      const { own, clock } = made()
      const serving = await server.serve(own, { port: 0, handleSignals: false, auth: () => null, limits: { failedLogins: { requests: 1, perMs: 1_000 } } })
      onTestFinished(() => serving.close())
      const status = () => new Promise<number | undefined>((resolve, reject) => {
        request(`${serving.url}/api/agents`, (response) => resolve(response.resume().statusCode)).on('error', reject).end()
      })
      expect([await status(), await status()]).toEqual([401, 429])
      await clock.advance(1_000)
      expect(await status()).toBe(401)
      for (const [option, value] of Object.entries({ failedLogins: { requests: 1, perMs: 1_000 }, voiceSessionsPerPrincipal: 1, voiceSessions: 1, voiceMessageBytes: 1, voiceIdleMs: 1, voiceMs: 1 }))
        expect(() => server.createHandler(own, { limits: { [option]: value } }), option).toThrow(`createHandler() can't have limits.${option}`)
    },
  },
]
