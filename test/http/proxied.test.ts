import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/index.ts'
import { apiKeys } from '../../src/http/server.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served } from './serving.ts'

const guide = () => ({ guide: new Agent({ id: 'guide', model: scriptedModel([]) }) })
const traces = ['X-Forwarded-For', 'X-Forwarded-Host', 'X-Forwarded-Proto', 'x-forwarded-anything', 'Forwarded', 'Via', 'X-Real-IP']

describe('a server without auth', () => {
  it.each(traces)('[H3.10] refuses a request to localhost that came through a proxy: %s', async (header) => {
    const { ask } = await served(guide())
    expect((await ask('/agents')).status).toBe(200)
    const answer = await ask('/agents', { headers: { [header]: header === 'Via' ? '1.1 edge' : '203.0.113.9' } })
    expect(answer.status).toBe(401)
    const { error, code } = (await answer.json()) as { error: string; code: string }
    expect(code).toBe('unauthorized')
    expect(error).toContain(header.toLowerCase())
    expect(error).toMatch(/auth/)
  })

  it('[H3.10] answers health checks of a proxy, and with auth every request that has a principal', async () => {
    const open = await served(guide())
    expect((await open.ask('/health', { headers: { via: '1.1 edge' } })).status).toBe(200)
    const closed = await served(guide(), { auth: apiKeys({ 'a-long-random-key': { id: 'web', resources: ['user-1'] } }) })
    expect((await closed.ask('/agents', { headers: { via: '1.1 edge', 'x-forwarded-for': '203.0.113.9', 'x-api-key': 'a-long-random-key' } })).status).toBe(200)
  })
})

describe('deep JSON in a query', () => {
  const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
  it.each([
    ['metadata', '/memory/threads?resourceId=user-1', {}], ['orderBy', '/memory/threads?resourceId=user-1', {}],
    ['include', '/memory/threads/t1/messages?resourceId=user-1', {}], ['requestContext', '/agents/guide/generate?', { json: { messages: 'Hi' } }],
  ])('[H4.1] is refused by name: %s', async (name, path, init) => {
    const { ask } = await served(guide())
    const answer = await ask(`${path}&${name}=${encodeURIComponent(deep(700))}`, init)
    expect([answer.status, await answer.json()]).toMatchObject([400, { code: 'invalid_argument', error: expect.stringContaining(name) as string }])
  })
})
