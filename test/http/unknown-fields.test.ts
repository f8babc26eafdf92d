import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ignored } from '../../src/http/schema/schemas.ts'
import { Agent, Memory } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { listed, request } from './every-route.ts'
import { serving, thread } from './serving.ts'

interface Schema {
  description?: string
  properties?: Record<string, Schema>
  additionalProperties?: unknown
  items?: Schema
  anyOf?: Schema[]
}

/** An object in a body: the names that lead to it, where `*` stands for an item of a list. */
interface Place {
  at: readonly string[]
  schema: Schema
}

/** Every object of a body whose properties are listed. */
function objectsIn(schema: Schema, at: readonly string[] = []): Place[] {
  return [
    ...(schema.properties ? [{ at, schema }] : []),
    ...Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => objectsIn(inner, [...at, name])),
    ...(schema.items ? objectsIn(schema.items, [...at, '*']) : []),
    ...(schema.anyOf ?? []).flatMap((inner) => objectsIn(inner, at)),
  ]
}

/** The body with another value at a place. */
function replaced(body: unknown, [name, ...rest]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value
  if (name === '*') return [replaced({}, rest, value)]
  const object = typeof body === 'object' ? (body as Record<string, unknown>) : {}
  return { ...object, [name]: replaced(object[name], rest, value) }
}

const world = await serving({ guide: new Agent({ id: 'guide', model: scriptedModel(['Hi.'], { loop: true }), memory: new Memory() }) })
const routes = (await listed(world.ask)).flatMap(({ path, method, operation }) => {
  const schema = operation.requestBody?.content['application/json']?.schema
  return schema ? [{ path, method, operation, places: objectsIn(schema as Schema) }] : []
})
const names = { ...thread, runId: 'run-1', scheduleId: 's', watchId: 'w', notificationId: 'n', signalId: 'm-1', toolCallId: 'c', id: 'i' }

afterAll(() => world.server.close())
beforeAll(() => expect(routes.length).toBeGreaterThan(30))

describe('a body with a name that its route does not have', () => {
  it('[H5.8] is refused by name, on every route and in every object of its body', async () => {
    const closed = routes.flatMap((route) => route.places.filter(({ schema }) => schema.additionalProperties === false).map((place) => ({ ...route, ...place })))
    expect(closed.length).toBeGreaterThan(100)
    for (const { path, method, operation, at } of closed) {
      const { url, init } = request(path, method, operation, names)
      const body = at.length === 0 ? { ...(JSON.parse(init.body ?? '{}') as object), oddName: 1 } : replaced(JSON.parse(init.body ?? '{}'), at, { oddName: 1 })
      const response = await world.ask(url, { ...init, body: JSON.stringify(body) })
      expect([response.status, await response.text()], `${method} ${path} ${at.join('.')}`).toEqual([400, expect.stringContaining('oddName') as string])
    }
  })

  it('[H5.8] is accepted only within messages and parts, whose readers know their fields', () => {
    const open = routes.flatMap(({ path, places }) => places.filter(({ schema }) => schema.additionalProperties !== false).map(({ at }) => `${path.slice('/api'.length)} ${at.join('.')}`))
    const parts = ['send-message', 'queue-message', 'schedules'].flatMap((to) => [`/agents/{agentId}/${to} message.*`, `/agents/{agentId}/${to} message.contents.*`])
    expect(open.toSorted()).toEqual([
      ...parts, '/agents/{agentId}/schedules signal.contents.*', '/agents/{agentId}/signals signal.contents.*', '/agents/{agentId}/state-signals state.contents.*',
      ...['', '.parts.*', '.parts.*.approval'].map((inner) => `/agents/{agentId}/chat messages.*${inner}`),
      '/memory/messages/delete messageIds', '/memory/messages/delete messageIds.*', '/memory/messages/update messages.*',
    ].toSorted())
  })

  it('[H5.8] except for what existing clients send and what has no effect, which docs/server.md lists', () => {
    const page = readFileSync(new URL('../../docs/server.md', import.meta.url), 'utf8')
    const without = routes.flatMap(({ places }) => places.flatMap(({ schema }) => Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => (inner.description === ignored.description ? name : []))))
    expect([...new Set(without)].toSorted()).toEqual(['entity', 'input', 'messageId', 'output', 'scorer', 'tracingOptions'])
    for (const name of without) expect(page.slice(page.indexOf('## Existing clients'))).toMatch(new RegExp(`^\\| .*\`${name}\`.* \\| ignored \\|`, 'm'))
  })
})
