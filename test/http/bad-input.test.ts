import { createConnection } from 'node:net'
import * as fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createHandler } from '../../src/http/server.ts'
import { Agent, Heed, InMemoryStore, silentLogger } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served } from './serving.ts'

/** The same values each time; HEED_SEED tries others. */
const seed = Number(process.env.HEED_SEED ?? 1)

const anyJson = fc.jsonValue({ maxDepth: 1 })

interface Schema {
  type?: string | string[]
  enum?: unknown[]
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
}

/** Values that fit a schema, mostly; and now and then something else in their place. */
function valueOf(schema: Schema): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 9, arbitrary: fitting(schema) }, { weight: 1, arbitrary: anyJson })
}

function fitting({ type, enum: values, anyOf, properties, required = [], items }: Schema): fc.Arbitrary<unknown> {
  if (values) return fc.constantFrom(...values)
  if (anyOf) return fc.oneof(...anyOf.map(valueOf))
  if (properties) {
    return fc.record(Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, valueOf(property)])), { requiredKeys: required })
  }
  if (type === 'array') return fc.array(valueOf(items ?? {}), { maxLength: 3 })
  if (type === 'integer') return fc.integer()
  if (type === 'boolean') return fc.boolean()
  if (type === 'object') return fc.dictionary(fc.string(), anyJson, { maxKeys: 3 })
  if (type === 'string') return fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom('guide', 'thread-1', '../..', '\u0000', '__proto__'))
  return anyJson
}

interface Operation {
  parameters: Array<{ name: string; in: string; schema: Schema }>
  requestBody?: { content: { 'application/json': { schema: Schema } } }
}

const agent = () => new Agent({ id: 'guide', model: scriptedModel(['Hello.'], { loop: true }) })

describe('bad input over HTTP', () => {
  it('[H4.1] is refused by name on every route, whatever its shape', { timeout: 120_000 }, async () => {
    // What is asked here is the handler itself: that costs a third of what it costs over sockets, which the next test tries.
    const heed = new Heed({ agents: { guide: agent() }, storage: new InMemoryStore(), logger: silentLogger })
    const handler = createHandler(heed, { auth: 'local' })
    onTestFinished(async () => {
      handler.close()
      await heed.close()
    })
    const ask = (path: string, init?: RequestInit) => handler(new Request(`http://localhost/api${path}`, init))
    const { paths } = (await (await ask('/openapi.json')).json()) as { paths: Record<string, Record<string, Operation>> }
    for (const [path, operations] of Object.entries(paths)) {
      for (const [method, { parameters, requestBody }] of Object.entries(operations)) {
        const schema = requestBody?.content['application/json'].schema
        const inQuery = parameters.filter((parameter) => parameter.in === 'query')
        const request = fc.record({
          ids: fc.tuple(...[...path.matchAll(/\{\w+\}/g)].map(() => fc.oneof(fc.constantFrom('guide', 'thread-1'), fc.string({ minLength: 1 })))),
          query: fc.record(Object.fromEntries(inQuery.map(({ name, schema: of }) => [name, fc.oneof(valueOf(of), fc.string())])), { requiredKeys: [] }),
          body: schema ? fc.oneof({ weight: 8, arbitrary: valueOf(schema) }, { weight: 2, arbitrary: anyJson }) : fc.constant(undefined),
        })
        await fc.assert(
          fc.asyncProperty(request, async ({ ids, query, body }) => {
            let index = 0
            const url = path.slice('/api'.length).replaceAll(/\{\w+\}/g, () => encodeURIComponent((ids as string[])[index++] ?? 'x'))
            const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]))
            const response = await ask(`${url}?${search}`, {
              method: method.toUpperCase(),
              ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
            })
            if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
              await response.body?.cancel()
              return
            }
            const text = await response.text()
            expect(response.status, `${method} ${url} ${JSON.stringify(body)}: ${text}`).toBeLessThan(500)
            expect(text).not.toMatch(/\bat (?:\S+ \()?(?:file:|node:|\/).*:\d+:\d+/)
            if (response.status >= 400) expect(JSON.parse(text)).toMatchObject({ error: expect.any(String) as string, code: expect.any(String) as string })
          }),
          { seed, numRuns: 40 },
        )
      }
    }
  })

  it('[H4.1] survives bytes that are no HTTP, and bodies that are too large, too deep or no JSON', async () => {
    const { ask, server } = await served({ guide: agent() }, { maxBodyBytes: 10_000 })
    const post = (body: BodyInit, headers: Record<string, string> = {}) =>
      ask('/agents/guide/send-message', { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers }, ...({ duplex: 'half' } as object) })
    const code = async (response: Response) => [response.status, ((await response.json()) as { code: string }).code]
    expect(await code(await post('x'.repeat(20_000)))).toEqual([413, 'too_large'])
    const endless = new ReadableStream<Uint8Array>({ pull: (controller) => controller.enqueue(new Uint8Array(4_096).fill(32)) })
    expect(await code(await post(endless))).toEqual([413, 'too_large'])
    expect(await code(await post('['.repeat(5_000)))).toEqual([400, 'invalid_argument'])
    expect(await code(await post('{"message":'))).toEqual([400, 'invalid_argument'])
    expect(await code(await post('{"message":"x","threadId":"t","resourceId":"r"}', { 'idempotency-key': 'a b' }))).toEqual([400, 'invalid_argument'])

    const { port } = new URL(server.url)
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 2_000 }), async (bytes) => {
        const socket = createConnection(Number(port), '127.0.0.1')
        socket.on('error', () => {})
        const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
        socket.end(bytes)
        socket.resume()
        await closed
      }),
      { seed, numRuns: 50 },
    )
    expect((await ask('/health')).status).toBe(200)
  })
})
