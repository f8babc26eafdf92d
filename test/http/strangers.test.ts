import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@libsql/client'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Agent, Heed, InMemoryStore, silentLogger } from '../../src/index.ts'
import { createHandler } from '../../src/http/server.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

const guide = () => new Agent({ id: 'guide', model: scriptedModel(['Hello.'], { loop: true }) })

describe('those who watch over a server', () => {
  it('[H3.8] are answered, whatever unauthenticated clients request', async () => {
    const { ask } = await served({ guide: guide() }, { rateLimit: { requests: 2, perMs: 3_600_000 } })
    const statuses = async (path: string, times: number) => {
      const all: number[] = []
      for (let index = 0; index < times; index++) all.push((await ask(path)).status)
      return all
    }
    expect(await statuses('/openapi.json', 3)).toEqual([200, 200, 429])
    expect(await statuses('/health', 4)).toEqual([200, 200, 200, 200])
    expect(await statuses('/ready', 4)).toEqual([200, 200, 200, 200])
    expect(await statuses('/agents', 1)).toEqual([200])
  })

  it('[H3.8] report that the storage no longer answers', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'heed-ready-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const url = `file:${join(folder, 'heed.db')}`
    const heed = new Heed({ agents: { guide: guide() }, storage: new LibSQLStore({ url }), logger: silentLogger })
    onTestFinished(() => heed.close().catch(() => {}))
    const handler = createHandler(heed, { auth: 'local' })
    const ready = async () => (await handler(new Request('http://localhost/api/ready'))).status
    expect(await ready()).toBe(200)
    const other = createClient({ url })
    const { rows } = await other.execute("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'")
    for (const { name } of rows) await other.execute(`drop table "${String(name)}"`)
    other.close()
    expect(await ready()).toBe(503)
  })
})

describe('a request of the platform', () => {
  const url = 'http://localhost/api/agents/guide/send-message'
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ message: 'Hi', ...thread })
  const handling = () => {
    const heed = new Heed({ agents: { guide: guide() }, storage: new InMemoryStore(), logger: silentLogger })
    onTestFinished(() => heed.close())
    const handler = createHandler(heed, { auth: 'local', maxBodyBytes: 10_000 })
    return async (request: Request) => {
      const answer = await handler(request)
      const text = await answer.text()
      return [answer.status, text === '' ? '' : ((JSON.parse(text) as { code?: string }).code ?? 'none')]
    }
  }
  const post = (content: BodyInit, more: Record<string, string> = {}) => new Request(url, { method: 'POST', headers: { ...headers, ...more }, body: content, duplex: 'half' } as RequestInit)

  it('[H4.1] whose body was read, or breaks off, is refused by name', async () => {
    const handle = handling()
    for (const more of [undefined, { 'content-length': String(body.length) }]) {
      const used = post(body, more)
      await used.text()
      expect(await handle(used)).toEqual([400, 'invalid_argument'])
    }
    const broken = new ReadableStream<Uint8Array>({ pull: (controller) => controller.error(new Error('reset')) })
    expect(await handle(post(broken))).toEqual([400, 'invalid_argument'])
    expect(await handle(post(`\uFEFF${body}`))).toEqual([200, 'none'])
  })

  it('[H3.6] is held to the bytes that it brings, not to those that it names', async () => {
    const handle = handling()
    expect(await handle(post(JSON.stringify({ message: 'x'.repeat(10_000), ...thread }), { 'content-length': '10' }))).toEqual([413, 'too_large'])
    expect(await handle(post(JSON.stringify({ message: 'ü'.repeat(5_000), ...thread })))).toEqual([413, 'too_large'])
  })

  it('[H4.1] of the head alone is answered without a body, and nothing is left open', async () => {
    const handle = handling()
    expect(await handle(new Request('http://localhost/api/agents', { method: 'HEAD' }))).toEqual([200, ''])
    expect(await handle(new Request('http://localhost/api/agents/guide/threads/t/subscribe?resourceId=r', { method: 'HEAD' }))).toEqual([200, ''])
  })
})
