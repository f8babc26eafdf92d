import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { HeedClient } from '../../src/client/index.ts'
import { emptyView, reduceChunk, type ThreadView } from '../../src/client/view/thread-view.ts'
import { Agent, Heed, toUIMessages, type Chunk, type UIMessage } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { ServerProcess } from './killable.ts'
import { seeded } from './proxy.ts'

/** HEED_KILLS=10 is the campaign, `npm run test:network`. */
const kills = Number(process.env.HEED_KILLS ?? 4)
const threads = ['a', 'b', 'c']

/**
 * What a client that follows this log has shown. A snapshot takes the place of what it holds and not of older messages; where it holds nothing that is known, so
 * much happened meanwhile that a client reads history for what lies between: that is another piece.
 */
function shown(chunks: readonly Chunk[]): { pieces: UIMessage[][]; view: ThreadView } {
  const pieces: UIMessage[][] = []
  let older: UIMessage[] = []
  let view = emptyView
  for (const chunk of chunks) {
    const { messages, writing } = view
    view = reduceChunk(view, chunk)
    if (chunk.type !== 'data-thread-snapshot' || messages.length === 0) continue
    const at = messages.findIndex(({ id }) => id === view.messages[0]?.id)
    if (at < 0) pieces.push([...older, ...messages.filter(({ id }) => id !== writing)])
    older = at < 0 ? [] : [...older, ...messages.slice(0, at)]
  }
  return { pieces: [...pieces, [...older, ...view.messages]], view }
}

/** What both have: times and marks of steps are history's own. */
function plain(messages: readonly UIMessage[]): unknown[] {
  return messages.map(({ id, role, parts }) => ({ id, role, parts: parts.filter(({ type }) => type !== 'step-start') }))
}

it('[H1.1] [H1.2] [H2.2] loses and doubles nothing when the server is killed and started again under load', { timeout: 600_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'heed-'))
  const file = join(folder, 'heed.db')
  const server = new ServerProcess(file)
  onTestFinished(async () => {
    await server.kill()
    rmSync(folder, { recursive: true, force: true })
  })
  const url = await server.start()
  const remote = new HeedClient({ baseUrl: url, retries: 100 }).getAgent('guide')
  const scopes = threads.map((threadId) => ({ threadId, resourceId: 'user-1' }))
  const watchers = await Promise.all(scopes.map(async (scope) => {
    const subscription = await remote.subscribeToThread(scope)
    const chunks: Chunk[] = []
    void (async () => {
      for await (const chunk of subscription.chunks({ delayMs: 10 })) chunks.push(chunk)
    })()
    return { subscription, chunks }
  }))

  const sent = scopes.map(() => [] as string[])
  let loading = true
  const load = Promise.all(scopes.map(async (scope, index) => {
    for (let round = 0; loading; round++) sent[index]?.push((await remote.sendMessage({ message: `message ${round}`, ...scope })).signal.id)
  }))
  const chance = seeded(11)
  for (let kill = 0; kill < kills; kill++) {
    const before = sent.reduce((sum, ids) => sum + ids.length, 0)
    await expect.poll(() => sent.reduce((sum, ids) => sum + ids.length, 0)).toBeGreaterThan(before + Math.floor(chance() * 40))
    await server.kill()
    expect(await server.start()).toBe(url)
  }
  loading = false
  await load
  const last = await Promise.all(scopes.map((scope) => remote.sendMessage({ message: 'the last word', ...scope, wait: 'outcome' })))
  await expect.poll(() => Promise.all(scopes.map((scope) => remote.activeRun(scope)))).toEqual(scopes.map(() => null))
  for (const [index, { chunks, subscription }] of watchers.entries()) {
    const asked = last[index]?.signal.id
    await expect.poll(() => {
      const { messages, status } = shown(chunks).view
      return status === 'idle' && messages.some(({ id }) => id === asked)
    }).toBe(true)
    subscription.unsubscribe()
    // A snapshot has the cursor of the place that it describes, where a chunk may be known already.
    const told = chunks.filter(({ type, cursor }) => type !== 'data-thread-snapshot' && cursor !== undefined)
    expect(told.filter(({ cursor }, at) => told.findIndex((other) => other.cursor === cursor) !== at)).toEqual([])
  }
  expect(await server.kill('SIGTERM')).toEqual([0, null])

  const agent = new Agent({ id: 'guide', model: scriptedModel([]) })
  const heed = new Heed({ agents: { agent }, storage: new LibSQLStore({ url: `file:${file}` }) })
  const memory = await agent.getMemory()
  for (const [index, scope] of scopes.entries()) {
    const { messages } = await memory.recall({ ...scope, perPage: false })
    expect(messages.filter(({ role }) => role === 'signal').map(({ id }) => id)).toEqual([...(sent[index] ?? []), last[index]?.signal.id])
    expect(messages.at(-1)?.role).toBe('assistant')
    const history = toUIMessages(messages)
    const { pieces } = shown(watchers[index]?.chunks ?? [])
    const places = pieces.map((piece) => history.findIndex(({ id }) => id === piece[0]?.id))
    for (const [nth, piece] of pieces.entries()) expect(plain(piece)).toEqual(plain(history.slice(places[nth], (places[nth] ?? 0) + piece.length)))
    expect(places).toEqual(places.toSorted((one, other) => one - other))
    expect([places[0], pieces.at(-1)?.at(-1)?.id]).toEqual([0, history.at(-1)?.id])
  }
  await heed.close()
})
