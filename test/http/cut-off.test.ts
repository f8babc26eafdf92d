import { expect, it, onTestFinished } from 'vitest'
import { Connection } from '../../src/client/connection.ts'
import { HeedClient } from '../../src/client/index.ts'
import { Agent, type Chunk } from '../../src/index.ts'
import { isHeedError } from '../../src/base/errors.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { harmfulProxy, type Fate } from './proxy.ts'
import { served, thread } from './serving.ts'

async function behind(fates: Fate[], options: { heartbeatMs?: number } = {}) {
  const model = scriptedModel(({ index }) => `Answer ${index}.`)
  const agent = new Agent({ id: 'guide', model })
  const { server, ask } = await served({ guide: agent }, options)
  const { hostname, port } = new URL(server.url)
  const proxy = await harmfulProxy(() => ({ host: hostname, port: Number(port) }), () => 0, fates)
  proxy.heal()
  onTestFinished(() => proxy.close())
  return { agent, ask, proxy, model }
}

/** Watches, is cut off before the first chunk, and comes back when a run is over. */
async function watchedOverAGap(before: () => Promise<unknown>, world: Awaited<ReturnType<typeof behind>>) {
  const { agent, proxy } = world
  await before()
  const watched = await agent.subscribeToThread(thread)
  const truth: Chunk[] = []
  void (async () => {
    for await (const chunk of watched.stream) truth.push(chunk)
  })()
  const subscription = await new HeedClient({ baseUrl: proxy.url }).getAgent('guide').subscribeToThread(thread)
  onTestFinished(() => subscription.unsubscribe())
  proxy.cut()
  await agent.sendMessage('Said in the gap.', thread).outcome
  await expect.poll(() => truth.at(-1)?.type).toBe('finish')
  const seen: Chunk[] = []
  void subscription.processDataStream({ onChunk: (chunk) => void seen.push(chunk), reconnect: { delayMs: 1 } })
  await expect.poll(() => seen.at(-1)?.cursor).toBe(truth.at(-1)?.cursor)
  const textOf = (chunks: Chunk[]) => chunks.flatMap((chunk) => (chunk.type === 'text-delta' ? [chunk.payload.text] : [])).join('')
  expect(seen[0]?.cursor).toBe(truth[0]?.cursor)
  expect(textOf(seen)).toBe(textOf(truth))
  expect(seen.map(({ type }) => type)).not.toContain('data-thread-snapshot')
}

it('[H2.2] who is cut off before the first chunk of a new thread gets the run that happened meanwhile', async () => {
  await watchedOverAGap(async () => {}, await behind([]))
})

it('[H2.2] a client that is disconnected before the first chunk of an idle thread gets the run that happened meanwhile, and nothing older', async () => {
  const world = await behind([])
  await watchedOverAGap(async () => {
    await world.agent.sendMessage('Before.', thread).outcome
    await expect.poll(() => world.agent.activeRun(thread)).toBeNull()
  }, world)
})

it('[H2.2] EventSource receives its first cursor, and continues from there', async () => {
  const { agent, ask } = await behind([])
  const path = `/agents/guide/threads/${thread.threadId}/subscribe?resourceId=${thread.resourceId}`
  const response = await ask(path)
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  expect((await reader?.read())?.value).toBe(': connected\n\nid: 0.0\n\n')
  expect(response.headers.get('heed-cursor')).toBe('0.0')
  await reader?.cancel()
  await agent.sendMessage('Said in the gap.', thread).outcome
  const again = (await ask(path, { headers: { 'last-event-id': '0.0' } })).body?.pipeThrough(new TextDecoderStream()).getReader()
  onTestFinished(() => again?.cancel())
  let text = ''
  while (!text.includes('"type":"finish"')) text += (await again?.read())?.value
  expect(text).toContain('"type":"start"')
  expect(text).not.toContain('data-thread-snapshot')
})

it('[H1.2] an answer that never comes on a connection that stays open is asked for again, under the same key', async () => {
  const { agent, proxy, model } = await behind(['mute', 'mute'])
  const { signal } = await new HeedClient({ baseUrl: proxy.url, timeoutMs: 200, retries: 50 }).getAgent('guide').sendMessage({ message: 'Hi', ...thread, wait: 'outcome' })
  expect(proxy.counts.mute).toBeGreaterThan(0)
  const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
  expect(messages.filter(({ role }) => role === 'signal').map(({ id }) => id)).toEqual([signal.id])
  expect(model.callCount).toBe(1)
})

it('[H1.2] a server that never answers is an error with a name, for sends and for streams', async () => {
  const { proxy } = await behind(Array.from({ length: 20 }, () => 'mute' as const))
  let attempts = 0
  const counted: typeof fetch = (...asked) => {
    attempts++
    return fetch(...asked)
  }
  const remote = new HeedClient({ baseUrl: proxy.url, timeoutMs: 50, retries: 2, fetch: counted }).getAgent('guide')
  const failed = await remote.sendMessage({ message: 'Hi', ...thread }).catch((error: unknown) => error)
  expect(failed).toMatchObject({ code: 'unreachable', retryable: true, details: { timeoutMs: 50 } })
  expect(attempts).toBe(3)
  expect(await remote.subscribeToThread(thread).catch((error: unknown) => isHeedError(error) && error.code)).toBe('unreachable')
})

it('[H2.4] a stream that fell silent is an error with a name', async () => {
  const { proxy } = await behind([], { heartbeatMs: 100_000 })
  const quiet = await new HeedClient({ baseUrl: proxy.url, silenceMs: 50 }).getAgent('guide').subscribeToThread(thread)
  await expect(quiet.processDataStream({ onChunk() {} })).rejects.toMatchObject({ code: 'unreachable', details: { silenceMs: 50 } })
})

it('[H2.4] a client waits longer than the heartbeat that the server announces, unless an option says otherwise', async () => {
  const silences = async (heartbeatMs: number, silenceMs?: number) => {
    const { ask } = await behind([], { heartbeatMs })
    const response = await ask('/agents/guide/threads/subscribe', { json: thread })
    await response.body?.cancel()
    return new Connection({ baseUrl: 'http://localhost', ...(silenceMs === undefined ? {} : { silenceMs }) }).maxSilenceMs(response)
  }
  expect([await silences(25_000), await silences(90_000), await silences(90_000, 5_000)]).toEqual([60_000, 190_000, 5_000])
  expect(new Connection({ baseUrl: 'http://localhost' }).maxSilenceMs(new Response())).toBe(60_000)
})
