import { createSign, generateKeyPairSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { Agent, Heed, InMemoryStore } from '../../src/index.ts'
import { apiKeys, createHandler, jwt, serve, type Principal } from '../../src/http/server.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

const key = { one: 'a-long-random-key-1', two: 'a-long-random-key-2' }
const auth = apiKeys({ [key.one]: { id: 'one', resources: ['user-1'] }, [key.two]: { id: 'two', resources: ['user-2'] } })
const as = (name: keyof typeof key) => ({ authorization: `Bearer ${key[name]}` })
const guide = () => new Agent({ id: 'guide', model: scriptedModel(['Hello.'], { loop: true }) })

describe('who may ask', () => {
  it('[H3.1] refuses to serve beyond this machine without auth', async () => {
    const heed = new Heed({ agents: { guide: guide() }, storage: new InMemoryStore() })
    await expect(serve(heed, { hostname: '0.0.0.0', port: 0 })).rejects.toMatchObject({ code: 'invalid_argument' })
    await heed.close()
  })

  it('[H3.1] closes a handler that has no auth, and an open one to other names than this machine', async () => {
    const heed = new Heed({ agents: { guide: guide() }, storage: new InMemoryStore() })
    const status = async (handler: (request: Request) => Promise<Response>, url: string) => (await handler(new Request(url))).status
    expect(await status(createHandler(heed), 'http://localhost/api/agents')).toBe(401)
    expect(await status(createHandler(heed, { auth: 'local' }), 'http://localhost/api/agents')).toBe(200)
    expect(await status(createHandler(heed, { auth: 'local' }), 'http://evil.example/api/agents')).toBe(401)
    expect(await status(createHandler(heed, { auth: () => null }), 'http://localhost/api/agents')).toBe(401)
    expect(await status(createHandler(heed), 'http://anywhere/api/health')).toBe(200)
    await heed.close()
  })

  it('knows callers by a signed token, and nobody by a forged, old or unsigned one', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const check = jwt({ jwks: { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k1' }] }, issuer: 'https://issuer.example', audience: 'heed' })
    const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const token = (claims: object, header: object = { alg: 'RS256', kid: 'k1' }) => {
      const data = `${part(header)}.${part({ iss: 'https://issuer.example', aud: 'heed', sub: 'user-1', exp: Date.now() / 1000 + 60, ...claims })}`
      return `${data}.${createSign('RSA-SHA256').update(data).sign(privateKey).toString('base64url')}`
    }
    const who = async (value: string) => (await check(new Request('http://localhost/', { headers: { authorization: `Bearer ${value}` } })))?.id ?? null
    expect(await who(token({}))).toBe('user-1')
    expect(await who(token({ exp: 1 }))).toBeNull()
    expect(await who(token({ aud: 'other' }))).toBeNull()
    expect(await who(token({ iss: 'https://other.example' }))).toBeNull()
    expect(await who(token({}, { alg: 'none', kid: 'k1' }))).toBeNull()
    expect(await who(token({}, { alg: 'HS256', kid: 'k1' }))).toBeNull()
    expect(await who(token({}, { alg: 'RS256', kid: 'other' }))).toBeNull()
    expect(await who(`${token({}).slice(0, -4)}AAAA`)).toBeNull()
    expect(await who('rubbish')).toBeNull()
  })

  it('[H3.2] refuses another resource on every route that names one, and tells nothing on reads', async () => {
    const { ask } = await served({ guide: guide() }, { auth })
    await ask('/agents/guide/send-message?wait=outcome', { json: { message: { contents: 'Secret', id: 'sig-1' }, ...thread }, headers: as('one') })
    const { paths } = (await (await ask('/openapi.json')).json()) as { paths: Record<string, Record<string, Operation>> }
    const tried: string[] = []
    for (const [path, operations] of Object.entries(paths)) {
      for (const [method, operation] of Object.entries(operations)) {
        if (!namesThread(path, operation)) continue
        const at = (threadId: string, resourceId: string) => request(path, method, operation, { threadId, resourceId })
        for (const [resourceId, headers] of [['user-1', as('two')], ['user-2', as('two')]] as const) {
          const { url, init } = at('thread-1', resourceId)
          const response = await ask(url, { ...init, headers: { ...init.headers, ...headers } })
          const text = response.headers.get('content-type')?.startsWith('text/event-stream') ? '' : await response.text()
          expect(text, `${method} ${path}`).not.toContain('Secret')
          if (method === 'get' && resourceId === 'user-2') {
            const absent = at('thread-none', resourceId)
            const other = await ask(absent.url, { ...absent.init, headers: { ...absent.init.headers, ...headers } })
            if (path.endsWith('/subscribe')) {
              await other.body?.cancel()
              expect(response.status).toBe(404)
            } else expect([response.status, text.replaceAll('thread-1', 'thread-none')], path).toEqual([other.status, await other.text()])
          } else if (!path.endsWith('suspended-runs')) expect(response.status, `${method} ${path} as ${resourceId}`).toBeGreaterThanOrEqual(400)
          await response.body?.cancel().catch(() => {})
          tried.push(`${method} ${path}`)
        }
      }
    }
    expect(tried.length).toBeGreaterThan(20)
  })

  it('limits what one caller may ask, and not the others', async () => {
    const { ask } = await served({ guide: guide() }, { auth, rateLimit: { requests: 3, perMs: 3_600_000 } })
    const status = async (name: keyof typeof key) => (await ask('/agents', { headers: as(name) })).status
    expect([await status('one'), await status('one'), await status('one'), await status('one')]).toEqual([200, 200, 200, 429])
    expect(await status('two')).toBe(200)
  })

  it('answers browsers of named origins only', async () => {
    const { ask } = await served({ guide: guide() }, { cors: { origin: ['https://app.example'] } })
    const allowed = async (origin: string) => (await ask('/agents', { headers: { origin } })).headers.get('access-control-allow-origin')
    expect([await allowed('https://app.example'), await allowed('https://evil.example')]).toEqual(['https://app.example', null])
    const preflight = await ask('/agents/guide/send-message', { method: 'OPTIONS', headers: { origin: 'https://app.example', 'access-control-request-method': 'POST' } })
    expect([preflight.status, preflight.headers.get('access-control-allow-headers')]).toEqual([204, 'content-type, authorization, idempotency-key, last-event-id'])
  })

  it('keeps what concerns everybody for operators', async () => {
    const operator: Principal = { id: 'ops', resources: [], operator: true }
    const both = apiKeys({ [key.one]: operator, [key.two]: { id: 'two', resources: ['user-2'] } })
    const { ask } = await served({ guide: guide() }, { auth: both })
    expect((await ask('/metrics', { headers: as('two') })).status).toBe(403)
    const metrics = await ask('/metrics', { headers: as('one') })
    expect(await metrics.text()).toMatch(/heed_http_requests_total\{method="GET",status="403"\} 1/)
    expect((await ask('/tick', { json: {}, headers: as('two') })).status).toBe(403)
    expect(await (await ask('/tick', { json: {}, headers: as('one') })).json()).toMatchObject({ threads: 0 })
  })
})

interface Operation {
  parameters: Array<{ name: string; in: string }>
  requestBody?: { content: { 'application/json': { schema: { properties: Record<string, unknown>; required?: string[] } } } }
}

function namesThread(path: string, { parameters, requestBody }: Operation): boolean {
  return path.includes('{threadId}') || parameters.some(({ name }) => name === 'threadId') || 'threadId' in (requestBody?.content['application/json'].schema.properties ?? {})
}

/** A request that is right in everything but whose thread it is about. */
function request(path: string, method: string, { parameters, requestBody }: Operation, scope: { threadId: string; resourceId: string }) {
  const url = path.slice('/api'.length).replace('{agentId}', 'guide').replace('{threadId}', scope.threadId).replace('{signalId}', 'sig-1').replace(/\{\w+\}/g, 'x')
  const inQuery = parameters.filter(({ in: place, name }) => place === 'query' && name in scope)
  const search = new URLSearchParams(inQuery.map(({ name }) => [name, scope[name as keyof typeof scope]]))
  const schema = requestBody?.content['application/json'].schema
  const body = schema && {
    ...Object.fromEntries((schema.required ?? []).map((name) => [name, samples[name] ?? 'x'])),
    ...('threadId' in schema.properties ? { threadId: scope.threadId } : {}),
    ...('resourceId' in schema.properties ? { resourceId: scope.resourceId } : {}),
  }
  return {
    url: search.size > 0 ? `${url}?${search}` : url,
    init: { method: method.toUpperCase(), ...(body ? { body: JSON.stringify(body) } : {}), headers: body ? { 'content-type': 'application/json' } : ({} as Record<string, string>) },
  }
}

const samples: Record<string, unknown> = {
  message: 'Hi', messages: 'Hi', signal: { type: 'notification', contents: 'x' }, state: { id: 'lane', cacheKey: 'k', contents: 'x' }, approved: true, resumeData: {}, signalIds: ['sig-1'], messageIds: ['sig-1'], workingMemory: 'x',
}
