import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { Agent, Heed, InMemoryStore, silentLogger } from '../../src/index.ts'
import { HeedClient } from '../../src/client/index.ts'
import { apiKeys, createHandler } from '../../src/http/server.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served } from './serving.ts'

const key = 'the-key-of-a-tenant'
const auth = apiKeys({ [key]: { id: 'tenant', resources: ['user-1', 'user-2'] } })
const scope = { threadId: 'trip to Bern', resourceId: 'user-1' }
const guide = () => ({ guide: new Agent({ id: 'guide', model: scriptedModel(['Take the train.'], { loop: true }) }) })

async function world() {
  const { server, ask } = await served(guide(), { auth })
  const agent = new HeedClient({ baseUrl: server.url, headers: { authorization: `Bearer ${key}` } }).getAgent('guide')
  return { agent, server, ask }
}

/** Reads a stream, without headers, until it has the text. */
async function readUntil(url: string, text: string): Promise<string> {
  const { body } = await fetch(url)
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
  let read = ''
  while (reader && !read.includes(text)) {
    const { done, value } = await reader.read()
    if (done) break
    read += value
  }
  await reader?.cancel()
  return read
}

const statusOf = async (url: string) => {
  const { status, body } = await fetch(url)
  await body?.cancel()
  return status
}

describe('tickets of streams', () => {
  it('[H3.12] open the stream of their thread without a header', async () => {
    const { agent } = await world()
    const { url, ticket, expiresAt } = await agent.streamTicket(scope)
    expect(new URL(url).searchParams.get('ticket')).toBe(ticket)
    expect(Date.parse(expiresAt)).toBeGreaterThan(Date.now())
    await agent.sendMessage({ message: 'How do I get there?', ...scope, wait: 'outcome' })
    expect(await readUntil(`${url}&snapshot=true`, 'data-thread-snapshot')).toContain('How do I get there?')
    expect(await statusOf(url.replace(/\?.*/, ''))).toBe(401)
  })

  it('[H3.12] open nothing else: no other thread, resource, agent or route', async () => {
    const { agent, server } = await world()
    const { url, ticket } = await agent.streamTicket(scope)
    expect(await statusOf(url)).toBe(200)
    expect(await statusOf(url.replace('trip%20to%20Bern', 'other'))).toBe(401)
    expect(await statusOf(url.replace('/guide/', '/other/'))).toBe(401)
    expect(await statusOf(`${url}&resourceId=user-2`)).toBe(403)
    for (const path of ['/agents', `/memory/threads?resourceId=user-1&`, '/agents/guide/threads/trip%20to%20Bern/queue']) {
      expect(await statusOf(`${server.url}/api${path}${path.includes('?') ? '' : '?'}ticket=${ticket}`)).toBe(401)
    }
    await expect(agent.streamTicket({ ...scope, resourceId: 'user-3' })).rejects.toMatchObject({ code: 'forbidden' })
  })

  it('[H3.12] are refused a minute later, changed, signed by another server, or of another form', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    onTestFinished(() => void vi.useRealTimers())
    const { agent } = await world()
    const other = await (await world()).agent.streamTicket(scope)
    const { url, ticket } = await agent.streamTicket(scope)
    const [content = '', signature = ''] = ticket.split('.')
    const claims = JSON.parse(Buffer.from(content, 'base64url').toString()) as object
    const forged = Buffer.from(JSON.stringify({ ...claims, exp: Date.now() * 2, resourceId: 'user-9' })).toString('base64url')
    for (const wrong of [other.ticket, `${forged}.${signature}`, `${content}.`, content, `${ticket}.x`, '.', '', 'x'.repeat(9_000)]) {
      expect([wrong.slice(0, 20), await statusOf(url.replace(ticket, wrong))]).toEqual([wrong.slice(0, 20), 401])
    }
    vi.setSystemTime(Date.now() + 59_000)
    expect(await statusOf(url)).toBe(200)
    vi.setSystemTime(Date.now() + 2_000)
    expect(await statusOf(url)).toBe(401)
  })

  it('[H3.12] of one process open streams of another that has the secret, also during a rotation', async () => {
    const [old, next] = ['an-old-secret-of-more-than-32-characters', 'the-next-secret-of-more-than-32-characters']
    const handlers = [{ ticketSecret: old }, { ticketSecret: [next, old] }, { ticketSecret: next }].map((options) => {
      const heed = new Heed({ agents: guide(), storage: new InMemoryStore(), logger: silentLogger })
      const handler = createHandler(heed, { auth, ...options })
      onTestFinished(async () => {
        handler.close()
        await heed.close()
      })
      return handler
    })
    const path = 'http://heed.example/api/agents/guide/threads/t1'
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const [first] = handlers
    if (!first) throw new Error('There is no handler.')
    const issued = await first(new Request(`${path}/ticket`, { method: 'POST', headers, body: '{"resourceId":"user-1"}' }))
    const { ticket } = (await issued.json()) as { ticket: string }
    const statuses = await Promise.all(handlers.map(async (handler) => {
      const { status, body } = await handler(new Request(`${path}/subscribe?ticket=${ticket}`))
      await body?.cancel()
      return status
    }))
    expect(statuses).toEqual([200, 200, 401])
    const heed = new Heed({ agents: guide(), storage: new InMemoryStore(), logger: silentLogger })
    onTestFinished(() => heed.close())
    for (const ticketSecret of ['short', [], [old, 'short']]) {
      expect(() => createHandler(heed, { auth, ticketSecret })).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
    }
  })
})
