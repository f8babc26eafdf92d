import { connect } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Agent } from '../../src/index.ts'
import { apiKeys } from '../../src/http/server.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

const keys = { one: 'a-long-random-key-1', two: 'a-long-random-key-2' }
const auth = apiKeys({ [keys.one]: { id: 'one', resources: ['user-1'] }, [keys.two]: { id: 'two', resources: ['user-2'] } })
const as = (name: keyof typeof keys) => ({ authorization: `Bearer ${keys[name]}` })
const guide = () => new Agent({ id: 'guide', model: scriptedModel(['Hello.'], { loop: true }) })

describe('what one caller may do to a server', () => {
  it('[H3.6] so many requests, each caller for itself, told when to come back', async () => {
    const { ask } = await served({ guide: guide() }, { auth, rateLimit: { requests: 3, perMs: 3_600_000 } })
    const answer = (name: keyof typeof keys) => ask('/agents', { headers: as(name) })
    for (let index = 0; index < 3; index++) expect((await answer('one')).status).toBe(200)
    const refused = await answer('one')
    expect([refused.status, refused.headers.get('retry-after'), await refused.json()]).toMatchObject([429, '1200', { code: 'rate_limited', retryable: true }])
    expect((await answer('two')).status).toBe(200)
    // Also for what is a send or a stream.
    expect((await ask('/agents/guide/send-message', { json: { message: 'Hi', ...thread }, headers: as('one') })).status).toBe(429)
    expect((await ask('/agents/guide/threads/subscribe', { json: thread, headers: as('one') })).status).toBe(429)
  })

  it('[H3.6] so much at once, by its length or as it comes, and nothing of it is kept', async () => {
    const { ask, server } = await served({ guide: guide() }, { maxBodyBytes: 10_000 })
    const large = JSON.stringify({ message: 'x'.repeat(10_000), ...thread })
    const headers = { 'content-type': 'application/json' }
    const whole = await ask('/agents/guide/send-message', { method: 'POST', headers, body: large })
    expect([whole.status, await whole.json()]).toMatchObject([413, { code: 'too_large', details: { maxBytes: 10_000 } }])
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => {})
    let heard = ''
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    socket.on('data', (data: Buffer) => (heard += data.toString()))
    socket.write('POST /api/agents/guide/send-message HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n')
    for (let index = 0; index < 3; index++) socket.write(`1388\r\n${'x'.repeat(5_000)}\r\n`)
    await closed
    expect(heard).toMatch(/^HTTP\/1\.1 413 [^]*connection: close/i)
    expect((await ask('/memory/threads/thread-1?resourceId=user-1')).status).toBe(404)
    expect((await ask('/agents/guide/send-message', { json: { message: 'x'.repeat(9_000), ...thread } })).status).toBe(200)
  })

  it('[H3.6] pages of other origins may ask where they are named, and nowhere else', async () => {
    const { ask } = await served({ guide: guide() }, { cors: { origin: ['https://app.example'], credentials: true, maxAge: 60 } })
    const from = async (origin: string, path = '/agents') => {
      const { headers } = await ask(path, { headers: { origin } })
      return [headers.get('access-control-allow-origin'), headers.get('access-control-allow-credentials'), headers.get('vary')]
    }
    expect(await from('https://app.example')).toEqual(['https://app.example', 'true', 'origin'])
    expect(await from('https://app.example', '/nothing')).toEqual(['https://app.example', 'true', 'origin'])
    for (const origin of ['https://evil.example', 'https://app.example.evil.example', 'http://app.example', 'null']) expect(await from(origin)).toEqual([null, null, 'origin'])
    const preflight = async (origin: string) => {
      const { status, headers } = await ask('/agents/guide/send-message', { method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'POST' } })
      return [status, ...['origin', 'methods', 'headers'].map((name) => headers.get(`access-control-allow-${name}`)), headers.get('access-control-max-age')]
    }
    expect(await preflight('https://app.example')).toEqual([204, 'https://app.example', 'GET, POST, PATCH, DELETE', 'content-type, authorization, x-api-key, idempotency-key, last-event-id, traceparent, tracestate', '60'])
    expect(await preflight('https://evil.example')).toEqual([204, null, null, null, null])
    // A page that may not ask can still send what browsers send without asking: it is no JSON.
    expect((await ask('/agents/guide/send-message', { method: 'POST', headers: { 'content-type': 'text/plain', origin: 'https://evil.example' }, body: JSON.stringify({ message: 'Hi', ...thread }) })).status).toBe(415)
  })

  it('[H3.6] a wildcard never goes with cookies; without cors no origin is named', async () => {
    await expect(served({ guide: guide() }, { cors: { origin: '*', credentials: true } })).rejects.toMatchObject({ code: 'invalid_argument', details: { field: 'cors.origin' } })
    const { ask } = await served({ guide: guide() }, { cors: { origin: '*' } })
    const open = await ask('/agents', { headers: { origin: 'https://any.example' } })
    expect([open.headers.get('access-control-allow-origin'), open.headers.get('access-control-allow-credentials')]).toEqual(['https://any.example', null])
    const { ask: closed } = await served({ guide: guide() })
    const { headers } = await closed('/agents', { headers: { origin: 'https://any.example' } })
    expect([headers.get('access-control-allow-origin'), headers.get('vary')]).toEqual([null, null])
  })

  it('[H3.6] every answer tells browsers to take it for what it says it is, and for nothing to show', async () => {
    const { ask } = await served({ guide: guide() })
    const stream = await ask('/agents/guide/threads/subscribe', { json: thread })
    await stream.body?.cancel()
    for (const { headers } of [await ask('/agents'), await ask('/nothing'), await ask('/agents', { method: 'DELETE' }), await ask('/metrics'), stream]) {
      expect(Object.fromEntries(['x-content-type-options', 'x-frame-options', 'referrer-policy', 'content-security-policy'].map((name) => [name, headers.get(name)]))).toEqual({
        'x-content-type-options': 'nosniff', 'x-frame-options': 'DENY', 'referrer-policy': 'no-referrer', 'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      })
    }
    expect((await ask('/agents')).headers.get('cache-control')).toBe('no-store')
    expect([(await ask('/agents', { method: 'HEAD' })).status, await (await ask('/agents', { method: 'HEAD' })).text()]).toEqual([200, ''])
  })
})
