import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { HeedClient } from '../../src/client/index.ts'
import { reduceChunk } from '../../src/client/view/reduce.ts'
import { emptyView, type ThreadView } from '../../src/client/view/thread-view.ts'
import { Agent, Heed, toUIMessages, type Chunk, type UIMessage } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/libsql/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { ServerProcess } from './killable.ts'
import { seeded } from './proxy.ts'

const kills = 10
const threads = ['a', 'b', 'c']

/** What a client that follows this log has shown: a snapshot takes the place of what it holds, and of nothing older. */
function shown(chunks: readonly Chunk[]): { older: readonly UIMessage[]; view: ThreadView } {
  let older: readonly UIMessage[] = []
  let view = emptyView
  for (const chunk of chunks) {
    const before = view
    view = reduceChunk(view, chunk)
    if (chunk.type !== 'data-thread-snapshot') continue
    const at = before.messages.findIndex(({ id }) => id === view.messages[0]?.id)
    if (at > 0) older = [...older, ...before.messages.slice(0, at)]
  }
  return { older, view }
}

/** What both have: times and marks of steps are history's own. */
function plain(messages: readonly UIMessage[]): unknown[] {
  return messages.map(({ id, role, parts }) => ({ id, role, parts: parts.filter(({ type }) => type !== 'step-start') }))
}

it('[H1.1] [H1.2] [H2.2] loses and doubles nothing when the server is killed and started again under load', { timeout: 180_000 }, async () => {
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
    const cursors = chunks.flatMap(({ cursor }) => cursor ?? [])
    expect(new Set(cursors).size).toBe(cursors.length)
  }
  expect(await server.kill('SIGTERM')).toEqual([0, null])

  const agent = new Agent({ id: 'guide', model: scriptedModel([]) })
  const heed = new Heed({ agents: { agent }, storage: new LibSQLStore({ url: `file:${file}` }) })
  const memory = await agent.getMemory()
  for (const [index, scope] of scopes.entries()) {
    const { messages } = await memory.recall({ ...scope, perPage: false })
    expect(messages.filter(({ role }) => role === 'signal').map(({ id }) => id)).toEqual([...(sent[index] ?? []), last[index]?.signal.id])
    expect(messages.at(-1)?.role).toBe('assistant')
    const { older, view } = shown(watchers[index]?.chunks ?? [])
    expect(plain([...older, ...view.messages])).toEqual(plain(toUIMessages(messages)))
  }
  await heed.close()
})
