import { describe, expect, it, onTestFinished } from 'vitest'
import { Agent, createConsoleLogger, Heed, InMemoryStore } from '../../src/index.ts'
import { apiKeys, createHandler, type Principal } from '../../src/http/server.ts'
import { principalFlaw, mayAccess, resolveResource } from '../../src/http/auth/principal.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { listed, request } from './every-route.ts'
import { thread } from './serving.ts'

/** What hooks that were written without types may answer. Each would open another principal's threads if it were believed. */
const malformed: Record<string, unknown> = {
  'true': true,
  'a text': 'user-1',
  'a number': 42,
  'a list': ['user-1'],
  'a function': () => ({ id: 'u', resources: '*' }),
  'nothing in it': {},
  'no resources': { id: 'u' },
  'resources that are undefined': { id: 'u', resources: undefined },
  'resources that are null': { id: 'u', resources: null },
  'resources that are true': { id: 'u', resources: true },
  'resources that are one text': { id: 'u', resources: 'user-1' },
  'resources that are a longer text': { id: 'u', resources: 'user-12' },
  'resources that are a set': { id: 'u', resources: new Set(['user-1']) },
  'resources that are an object': { id: 'u', resources: { 0: 'user-1', length: 1 } },
  'a resource that is undefined': { id: 'u', resources: [undefined] },
  'a resource that is null': { id: 'u', resources: [null] },
  'a resource that is a number': { id: 'u', resources: [42] },
  'a resource that is empty': { id: 'u', resources: [''] },
  'a resource that is a list': { id: 'u', resources: [['user-1']] },
  'a resource that is left out': { id: 'u', resources: [, 'user-1'] }, // eslint-disable-line no-sparse-arrays
  'one of two that is undefined': { id: 'u', resources: ['user-1', undefined] },
  'no id': { resources: ['user-1'] },
  'an empty id': { id: '', resources: ['user-1'] },
  'an id that is a number': { id: 7, resources: ['user-1'] },
  'an operator that is a text': { id: 'u', resources: ['user-1'], operator: 'no' },
}

function world() {
  let answer: unknown = { id: 'owner', resources: '*' }
  const lines: string[] = []
  const agent = new Agent({ id: 'guide', model: scriptedModel(['Hello.'], { loop: true }) })
  const heed = new Heed({ agents: { guide: agent }, storage: new InMemoryStore(), logger: createConsoleLogger({ level: 'error', write: (line) => void lines.push(line) }) })
  const handler = createHandler(heed, { auth: () => answer as Principal })
  onTestFinished(async () => {
    handler.close()
    await heed.close()
  })
  const ask = (path: string, init: RequestInit = {}) => handler(new Request(`http://localhost/api${path}`, init))
  return { ask, lines, become: (given: unknown) => void (answer = given) }
}

describe('what auth answers', () => {
  it.each(Object.keys(malformed))('[H6.1] %s: refused on every route, and logged without its values', async (name) => {
    const { ask, lines, become } = world()
    const sent = await ask('/agents/guide/send-message?wait=outcome', { method: 'POST', body: JSON.stringify({ message: 'Secret', ...thread }), headers: { 'content-type': 'application/json' } })
    expect(sent.status).toBe(200)
    become(malformed[name])
    const routes = (await listed(ask)).filter(({ operation }) => operation.security.length > 0)
    expect(routes.length).toBeGreaterThan(60)
    for (const { path, method, operation } of routes) {
      for (const resourceId of ['user-1', undefined]) {
        const { url, init } = request(path, method, operation, { threadId: 'thread-1', runId: 'run-1', ...(resourceId === undefined ? {} : { resourceId }) })
        const response = await ask(url, init)
        expect([response.status, await response.json()], `${method} ${path}`).toMatchObject([401, { code: 'unauthorized' }])
      }
    }
    expect(lines.length).toBe(routes.length * 2)
    expect(lines.filter((line) => line.includes('user-1'))).toEqual([])
    expect(lines.filter((line) => !line.includes(' must be '))).toEqual([])
  })

  it('[H6.1] a list without resources reaches nothing', async () => {
    const { ask, become } = world()
    await ask('/agents/guide/send-message?wait=outcome', { method: 'POST', body: JSON.stringify({ message: 'Secret', ...thread }), headers: { 'content-type': 'application/json' } })
    become({ id: 'nobody', resources: [] })
    for (const path of ['/memory/threads', '/memory/threads?resourceId=user-1', '/memory/threads/thread-1', '/agents/guide/schedules', '/agents/guide/active-threads']) {
      expect((await ask(path)).status, path).toBe(403)
    }
    expect((await ask('/agents')).status).toBe(200)
  })

  it('[H6.1] API keys whose principal is none are refused at start, by their place and not by their key', () => {
    const good: Principal = { id: 'one', resources: ['user-1'] }
    for (const [name, principal] of Object.entries(malformed)) {
      const make = () => apiKeys({ 'a-long-random-key-1': good, 'a-long-random-key-2': principal as Principal })
      expect(make, name).toThrow(/^The principal of API key number 2 is invalid: /)
    }
    expect(() => apiKeys({ 'a-long-random-key-2': {} as Principal })).not.toThrow(/a-long/)
  })

  it('[H6.1] what was not checked reaches nothing either', () => {
    for (const resources of [undefined, true, {}, 'user-12', new Set(['user-1'])]) expect(mayAccess({ id: 'u', resources } as Principal, 'user-1')).toBe(false)
    for (const resources of [[], [undefined], 'user-12'] as unknown[]) {
      const principal = { id: 'u', resources } as Principal
      expect(() => resolveResource(principal, 'user-1')).toThrow("You may not access the resource 'user-1'.")
      if (resources !== 'user-12') expect(() => resolveResource(principal, undefined)).toThrow('You may not access any resource.')
    }
    expect(principalFlaw({ id: 'u', resources: ['*'] })).toBeUndefined()
    expect(mayAccess({ id: 'u', resources: ['*'] }, 'user-1')).toBe(false)
  })
})
