import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/index.ts'
import { apiKeys } from '../../src/http/server.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served } from './serving.ts'

const keys = { alice: 'key-of-alice-0000000000', bob: 'key-of-bob-000000000000' }
type Who = keyof typeof keys

async function world() {
  const agents = Object.fromEntries(['guide', 'other'].map((id) => [id, new Agent({ id, model: scriptedModel(() => 'Noted.'), notifications: { deliveryPolicy: { default: 'persist' } } })]))
  const { ask } = await served(agents, { auth: apiKeys({ [keys.alice]: { id: 'alice', resources: ['alice'] }, [keys.bob]: { id: 'bob', resources: ['bob'] } }) })
  return async (who: Who, path: string, json?: object, key?: string, method?: 'DELETE') => {
    const headers = { authorization: `Bearer ${keys[who]}`, ...(key === undefined ? {} : { 'idempotency-key': key }) }
    const response = await ask(path, { ...(json ? { json } : {}), ...(method && { method }), headers })
    return Object.assign((await response.json()) as Record<string, unknown>, { http: response.status })
  }
}

describe('two tenants of one server', () => {
  it('[S1.11] make schedules under the same key, and each has its own', async () => {
    const ask = await world()
    const make = (who: Who, more: object = {}, agent = 'guide') => ask(who, `/agents/${agent}/schedules`, { threadId: `thread-${who}`, message: 'Ring!', every: 60_000, ...more }, 'key-1')
    const [mine, theirs] = [await make('alice'), await make('bob')]
    expect([mine.http, theirs.http]).toEqual([200, 200])
    expect(mine.id).not.toBe(theirs.id)
    expect(await make('bob')).toMatchObject({ http: 200, id: theirs.id, duplicate: true })
    expect(await ask('bob', `/agents/guide/schedules/${String(mine.id)}`)).toMatchObject({ http: 404 })
    expect(await ask('bob', '/agents/guide/schedules')).toMatchObject({ schedules: [{ id: theirs.id }] })
    // A key is one thing, whichever agent it is for.
    expect(await make('bob', {}, 'other')).toMatchObject({ http: 409, code: 'idempotency_key_reused' })
  })

  it('[N5.2] can\'t find out each other\'s notifications by their ids', async () => {
    const ask = await world()
    const notify = (who: Who, id: string, threadId = 'new') => ask(who, '/agents/guide/notifications', { threadId, notification: { id, source: 'ci', kind: 'status', summary: `Of ${who}.` } })
    expect(await notify('alice', 'n')).toMatchObject({ http: 200 })
    const [taken, free] = [await notify('bob', 'n'), await notify('bob', 'm')]
    expect(taken).toMatchObject({ http: 403, code: 'thread_forbidden' })
    expect(free).toEqual(taken)
    // Without an id there is nothing to find out, and nothing changes by it.
    expect(await ask('bob', '/agents/guide/notifications', { threadId: 'new', notification: { source: 'ci', kind: 'status', summary: 'Of bob.' } })).toMatchObject({ http: 200 })
    for (const id of ['n', 'm']) expect(await notify('bob', id)).toEqual(taken)
    expect(await notify('bob', 'n', 'another')).toMatchObject({ http: 200, record: { id: 'n', summary: 'Of bob.' } })
    expect(await notify('alice', 'm')).toMatchObject({ http: 200, record: { id: 'm' } })
    // A thread that exists belongs to its owner, also if another principal was answered before.
    expect(await ask('bob', '/agents/guide/send-message', { threadId: 'new', message: 'Mine.' })).toMatchObject({ http: 200 })
    expect(await notify('bob', 'x', 'new')).toMatchObject({ http: 200, record: { id: 'x' } })
    expect(await notify('bob', 'n', 'new')).toMatchObject({ http: 409, code: 'id_taken' })
    expect(await ask('bob', '/agents/guide/threads/new/notifications')).toMatchObject({ notifications: [{ id: 'x' }, { summary: 'Of bob.' }] })
    expect(await notify('alice', 'y')).toMatchObject({ http: 403, code: 'thread_forbidden' })
  })

  it('[V1.44] [S1.13] can\'t keep an id of a watch or a schedule from each other, nor reach each other\'s by it', async () => {
    const ask = await world()
    const kinds = [
      ['watches', { watch: { description: 'the code', expected_channels: ['sms'] } }, { state: 'open' }],
      ['schedules', { message: 'Ring!', every: 60_000 }, { status: 'active' }],
    ] as const
    for (const [kind, what, live] of kinds) {
      const make = (who: Who, id: string) => ask(who, `/agents/guide/${kind}`, { id, threadId: `of-${who}`, ...what })
      const taken = await make('bob', 'login')
      expect(taken).toMatchObject({ http: 200, id: 'login', resourceId: 'bob' })
      const own = await make('alice', 'login')
      expect(own).toMatchObject({ http: 200, resourceId: 'alice', threadId: 'of-alice' })
      expect(await make('alice', 'login')).toMatchObject({ id: own.id })
      expect(await ask('alice', `/agents/guide/${kind}/login`)).toMatchObject({ http: 200, id: own.id, resourceId: 'alice' })
      expect(await ask('bob', `/agents/guide/${kind}/login`)).toMatchObject({ http: 200, id: 'login', resourceId: 'bob' })
      expect(await ask('bob', `/agents/guide/${kind}/${String(own.id)}`)).toMatchObject({ http: 404 })
      // Nor can the id that alice would get be taken before her.
      const suffix = String(own.id).slice('login'.length)
      expect(await make('bob', `later${suffix}`)).toMatchObject({ http: 400, code: 'invalid_argument', details: { field: 'id' } })
      expect(await ask('alice', `/agents/guide/${kind}/login`, undefined, undefined, 'DELETE')).toMatchObject({ http: 200 })
      expect(await ask('alice', `/agents/guide/${kind}/login`)).toMatchObject(kind === 'watches' ? { state: 'ended' } : { http: 404 })
      expect(await ask('bob', `/agents/guide/${kind}/login`)).toMatchObject({ http: 200, id: 'login', resourceId: 'bob', ...live })
    }
  })

  it('[N4.4] a search that is too long is 400', async () => {
    const ask = await world()
    const search = (length: number) => ask('alice', `/agents/guide/threads/t/notifications?search=${'x'.repeat(length)}`)
    expect(await search(1_000)).toMatchObject({ http: 200, notifications: [] })
    expect(await search(1_001)).toMatchObject({ http: 400, code: 'invalid_argument', details: { issues: [{ path: 'search' }] } })
  })

  it('[S1.6] the id of another agent\'s schedule is 409, and nothing of it changes', async () => {
    const ask = await world()
    const made = await ask('alice', '/agents/guide/schedules', { id: 's', threadId: 't', message: 'Ring!', every: 60_000 })
    expect(await ask('alice', '/agents/other/schedules', { id: 's', threadId: 't', message: 'Mine.', every: 60_000 })).toMatchObject({ http: 409, code: 'id_taken' })
    expect(await ask('alice', '/agents/other/schedules/s')).toMatchObject({ http: 404 })
    expect(await ask('alice', '/agents/guide/schedules/s')).toEqual(made)
  })
})
