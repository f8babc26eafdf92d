import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { chromium } from 'playwright-core'
import { expect, it, onTestFinished } from 'vitest'
import { findProgram, whySkipped } from '../../scripts/programs.ts'
import { Agent, type Chunk } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { harmfulProxy } from './proxy.ts'
import { served, thread } from './serving.ts'

const found = await findProgram('chromium')

/** A page of an origin of its own. */
async function page(): Promise<string> {
  const server = createServer((_request, response) => response.setHeader('content-type', 'text/html').end('<!doctype html><title>Watching</title>'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

it.skipIf('missing' in found)(`[H2.5] EventSource in Chromium goes on from Last-Event-ID${whySkipped(found)}`, async () => {
  const origin = await page()
  const agent = new Agent({ id: 'guide', model: scriptedModel(({ index }) => `Answer ${index}.`) })
  const { server } = await served({ guide: agent }, { cors: { origin } })
  const { hostname, port } = new URL(server.url)
  // The first connection is cut after some 3,900 bytes of its answer: after the first turn, and before the last; the next ones after 40,000.
  const draws = [0.4, 0.65]
  const proxy = await harmfulProxy(() => ({ host: hostname, port: Number(port) }), () => draws.shift() ?? 0.99)
  onTestFinished(() => proxy.close())
  const truth: Chunk[] = []
  void (async () => {
    for await (const chunk of (await agent.subscribeToThread(thread)).stream) truth.push(chunk)
  })()

  const browser = await chromium.launch({ executablePath: 'path' in found ? found.path : '', args: ['--no-sandbox'] })
  onTestFinished(() => browser.close())
  const tab = await browser.newPage()
  tab.setDefaultTimeout(180_000)
  await tab.goto(origin)
  await tab.evaluate(([url]) => {
    const seen: unknown[] = []
    const opened = { count: 0 }
    const source = new EventSource(url ?? '')
    source.addEventListener('open', () => opened.count++)
    source.addEventListener('message', ({ data, lastEventId }) => seen.push([JSON.parse(data as string), lastEventId]))
    Object.assign(globalThis, { seen, opened })
  }, [`${proxy.url}/api/agents/guide/threads/${thread.threadId}/subscribe?resourceId=${thread.resourceId}`])
  const inPage = <T>(name: string) => tab.evaluate((of) => (globalThis as unknown as Record<string, unknown>)[of], name) as Promise<T>
  await expect.poll(async () => (await inPage<{ count: number }>('opened')).count).toBe(1)
  const lastSeen = async () => (await inPage<Array<[Chunk, string]>>('seen')).at(-1)?.[0]
  await agent.sendMessage('The first one.', thread).outcome
  await expect.poll(async () => (await lastSeen())?.type).toBe('finish')
  expect((await inPage<{ count: number }>('opened')).count).toBe(1)
  for (let turn = 0; turn < 10; turn++) await agent.sendMessage(`Message ${turn}.`, thread).stored
  await expect.poll(async () => (await inPage<{ count: number }>('opened')).count).toBe(2)
  await agent.sendMessage('The last one.', thread).outcome
  await expect.poll(() => agent.activeRun(thread)).toBeNull()

  await expect.poll(async () => (await lastSeen())?.cursor).toBe(truth.at(-1)?.cursor)
  const seen = await inPage<Array<[Chunk, string]>>('seen')
  expect(seen.map(([chunk]) => chunk.cursor)).toEqual(seen.map(([, id]) => id))
  const cursors = truth.map(({ cursor }) => cursor)
  const whole = (chunks: readonly Chunk[]) => chunks.filter(({ type }) => type !== 'text-delta').map(({ cursor }) => cursor)
  expect(cursors).toContain(seen[0]?.[0].cursor)
  expect(whole(seen.map(([chunk]) => chunk))).toEqual(whole(truth.slice(cursors.indexOf(seen[0]?.[0].cursor))))
  expect(seen.map(([chunk]) => (chunk.type === 'text-delta' ? chunk.payload.text : '')).join('')).toBe(truth.map((chunk) => (chunk.type === 'text-delta' ? chunk.payload.text : '')).join(''))
})
