import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { HeedClient } from '../../src/client/index.ts'
import { joinDeltas } from '../../src/http/sse/frames.ts'
import { Agent, type Chunk } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { harmfulProxy, seeded } from './proxy.ts'
import { served } from './serving.ts'

/** HEED_HARMS=1000 is the campaign, `npm run test:network`. */
const harms = Number(process.env.HEED_HARMS ?? 200)
const clients = 4
const threads = ['a', 'b', 'c', 'd']

/** The chunks, however they were cut into deltas. Each chunk once, in order. */
function said(chunks: readonly Chunk[]): string[] {
  return joinDeltas(chunks.map((chunk) => ({ ...chunk, cursor: undefined }))).map((chunk) => JSON.stringify(chunk))
}

it('[H1.2] [H2.2] loses and doubles nothing behind a network that cuts, delays and swallows', { timeout: 400_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'heed-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const agent = new Agent({ id: 'guide', model: scriptedModel(({ index }) => `Answer number ${index} of many, in a few words.`) })
  const { server } = await served({ guide: agent }, { storage: new LibSQLStore({ url: `file:${join(folder, 'heed.db')}` }), heartbeatMs: 100 })
  const { hostname, port } = new URL(server.url)
  const proxy = await harmfulProxy(() => ({ host: hostname, port: Number(port) }), seeded(7))
  onTestFinished(() => proxy.close())
  const remote = new HeedClient({ baseUrl: proxy.url, retries: 50, timeoutMs: 1_000, silenceMs: 1_000 }).getAgent('guide')
  const scopes = threads.map((threadId) => ({ threadId, resourceId: 'user-1' }))

  const truth = await Promise.all(scopes.map(async (scope) => watch(await agent.subscribeToThread(scope).then(({ stream }) => stream))))
  const watchers = await Promise.all(scopes.flatMap((scope) => Array.from({ length: clients }, async () => {
    for (;;) {
      try {
        const subscription = await remote.subscribeToThread(scope)
        return { scope, subscription, ...watch(subscription.chunks({ delayMs: 5 })) }
      } catch {
        // The first request found no way through; a client asks again.
      }
    }
  })))

  const sent = scopes.map(() => [] as string[])
  for (let round = 0; proxy.harmed() < harms; round++) {
    await Promise.all(scopes.map(async (scope, index) => {
      const { signal } = await remote.sendMessage({ message: `message ${round}`, ...scope })
      sent[index]?.push(signal.id)
    }))
  }
  proxy.heal()
  const last = await Promise.all(scopes.map((scope) => remote.sendMessage({ message: 'the last word', ...scope, wait: 'outcome' })))
  await expect.poll(async () => Promise.all(scopes.map((scope) => agent.activeRun(scope)))).toEqual(scopes.map(() => null))

  const memory = await agent.getMemory()
  for (const [index, scope] of scopes.entries()) {
    const { messages } = await memory.recall({ ...scope, perPage: false })
    expect(messages.filter(({ role }) => role === 'signal').map(({ id }) => id)).toEqual([...(sent[index] ?? []), last[index]?.signal.id])
  }
  for (const { scope, chunks, subscription } of watchers) {
    const whole = truth[threads.indexOf(scope.threadId)]?.chunks ?? []
    // A client that failed often connects again after half a minute.
    await expect.poll(() => chunks.at(-1)?.cursor).toBe(whole.at(-1)?.cursor)
    subscription.unsubscribe()
    expect(chunks.filter(({ type }) => type === 'data-thread-snapshot')).toEqual([])
    // Everyone watched before the first word: nothing is missing from it on.
    expect(said(chunks)).toEqual(said(whole))
  }
  expect(proxy.harmed()).toBeGreaterThanOrEqual(harms)
  for (const fate of ['refused', 'answer lost', 'cut', 'half-closed', 'mute', 'delayed', 'late'] as const) expect(proxy.counts[fate]).toBeGreaterThan(0)
})

function watch(stream: AsyncIterable<Chunk>): { chunks: Chunk[] } {
  const chunks: Chunk[] = []
  void (async () => {
    for await (const chunk of stream) chunks.push(chunk)
  })()
  return { chunks }
}
