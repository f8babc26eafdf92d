import * as fc from 'fast-check'
import { expect } from 'vitest'

/** The same values each time; HEED_SEED tries others. */
export const seed = Number(process.env.HEED_SEED ?? 1)

const anyJson = fc.jsonValue({ maxDepth: 1 })

interface Schema {
  type?: string | string[]
  enum?: unknown[]
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
}

const nested = (levels: number, list: boolean) => Array.from({ length: levels }).reduce<unknown>((inner) => (list ? [inner] : { a: inner }), 1)

/** What costs much to read, to validate or to store. */
const hostile = fc.oneof(
  fc.constantFrom('x'.repeat(50_000), '\u202e\ufeff\u0000\ud800', '$&', '%00', '<system-reminder>', '-0', '1e999', 'NaN'),
  fc.constantFrom<unknown>(Number.MAX_SAFE_INTEGER, -1, 0, 1e308, 5e-324, null, [], {}, [[]], Array.from({ length: 2_000 }, () => 'x')),
  fc.tuple(fc.integer({ min: 1, max: 150 }), fc.boolean()).map(([levels, list]) => nested(levels, list)),
  fc.constantFrom('__proto__', 'constructor', 'toJSON', 'then', 'hasOwnProperty').map((name) => JSON.parse(`{"${name}":{"a":1}}`) as unknown),
  fc.constantFrom<unknown>(
    { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } }, { $ref: '#' }, { allOf: [{ $ref: '#/allOf/0' }] },
    { type: 'object', properties: Object.fromEntries(Array.from({ length: 600 }, (_, index) => [`p${index}`, { type: 'string' }])) },
    { schema: { type: 'object', patternProperties: { '(x+x+)+y': {} } } }, { look: { description: 'x', inputSchema: { $ref: 'https://elsewhere.example/x' } } },
  ),
)

/** Values that fit a schema, mostly; and now and then something else in their place. */
function valueOf(schema: Schema): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 16, arbitrary: fitting(schema) }, { weight: 1, arbitrary: anyJson }, { weight: 1, arbitrary: hostile })
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
  parameters: Array<{ name: string; in: string; schema?: Schema; content?: { 'application/json': { schema: Schema } } }>
  requestBody?: { content: { 'application/json'?: { schema: Schema } } }
}

type Ask = (path: string, init?: RequestInit) => Promise<Response>

/** What is written over a piece of a body. */
const damage = fc.record({ at: fc.nat(), bytes: fc.uint8Array({ minLength: 1, maxLength: 40 }) })

/** Asks every route of the OpenAPI document so often, with values of its schemas, with others, and with bytes that are no JSON. */
export async function askEverything(ask: Ask, { runs, seed: chosen = seed }: { runs: number; seed?: number }): Promise<void> {
  const { paths } = (await (await ask('/openapi.json')).json()) as { paths: Record<string, Record<string, Operation>> }
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      await fc.assert(fc.asyncProperty(requests(path, operation), (request) => enqueueTurn(ask, method, path, request)), { seed: chosen, numRuns: runs })
    }
  }
}

interface Request {
  ids: string[]
  query: Record<string, unknown>
  body: Uint8Array<ArrayBuffer> | undefined
  contentType: string
}

function requests(path: string, { parameters, requestBody }: Operation): fc.Arbitrary<Request> {
  const schema = requestBody?.content['application/json']?.schema
  // Routes that take sound take a form or bytes.
  const isUpload = requestBody !== undefined && !schema
  const inQuery = parameters.filter((parameter) => parameter.in === 'query')
  return fc.record({
    ids: fc.tuple(...[...path.matchAll(/\{\w+\}/g)].map(() => fc.oneof(fc.constantFrom('guide', 'thread-1'), fc.string({ minLength: 1 })))) as fc.Arbitrary<string[]>,
    query: fc.record(Object.fromEntries(inQuery.map(({ name, schema: of, content }) => [name, fc.oneof(valueOf(of ?? content?.['application/json'].schema ?? {}), fc.string())])), { requiredKeys: [] }) as fc.Arbitrary<Record<string, unknown>>,
    body: schema ? bodies(schema) : isUpload ? uploads : fc.constant(undefined),
    contentType: isUpload ? fc.constantFrom(...uploadTypes) : fc.constant('application/json'),
  })
}

const uploadTypes = ['multipart/form-data; boundary=b', 'multipart/form-data', 'audio/wav', 'audio/pcm;rate=24000', 'application/octet-stream', 'text/plain']

/** Bytes, and forms with bytes as their sound. */
const uploads: fc.Arbitrary<Uint8Array<ArrayBuffer>> = fc.oneof(
  fc.uint8Array({ maxLength: 500 }).map((bytes) => new Uint8Array(bytes)),
  fc.tuple(fc.string(), anyJson).map(([sound, options]) => new TextEncoder().encode(
    `--b\r\ncontent-disposition: form-data; name="audio"; filename="a.wav"\r\n\r\n${sound}\r\n--b\r\ncontent-disposition: form-data; name="options"\r\n\r\n${JSON.stringify(options)}\r\n--b--\r\n`,
  )),
)

function bodies(schema: Schema): fc.Arbitrary<Uint8Array<ArrayBuffer>> {
  const json = fc.oneof({ weight: 8, arbitrary: valueOf(schema) }, { weight: 2, arbitrary: anyJson }).map((value) => new TextEncoder().encode(JSON.stringify(value)))
  const damaged = fc.tuple(json, damage).map(([bytes, { at, bytes: over }]) => {
    const place = at % (bytes.length + 1)
    const whole = new Uint8Array(Math.max(bytes.length, place + over.length))
    whole.set(bytes)
    whole.set(over, place)
    return whole
  })
  return fc.oneof({ weight: 8, arbitrary: json }, { weight: 1, arbitrary: damaged }, { weight: 1, arbitrary: fc.uint8Array({ maxLength: 500 }).map((bytes) => new Uint8Array(bytes)) })
}

async function enqueueTurn(ask: Ask, method: string, path: string, { ids, query, body, contentType }: Request): Promise<void> {
  let index = 0
  const url = path.slice('/api'.length).replaceAll(/\{\w+\}/g, () => encodeURIComponent(ids[index++] ?? 'x'))
  const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]))
  const response = await ask(`${url}?${search}`, { method: method.toUpperCase(), ...(body === undefined ? {} : { body, headers: { 'content-type': contentType } }) })
  if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
    await response.body?.cancel()
    return
  }
  const text = await response.text()
  // Of Node's parser: the target and the headers of a request may have 16 kB.
  if (response.status === 431) return
  expect(response.status, `${method} ${url} ${new TextDecoder().decode(body)}: ${text}`).toBeLessThan(500)
  expect(text).not.toMatch(/\bat (?:\S+ \()?(?:file:|node:|\/).*:\d+:\d+/)
  if (response.status >= 400) expect(JSON.parse(text)).toMatchObject({ error: expect.any(String) as string, code: expect.any(String) as string })
}
