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
  return async (who: Who, path: string, json?: object, key?: string) => {
    const headers = { authorization: `Bearer ${keys[who]}`, ...(key === undefined ? {} : { 'idempotency-key': key }) }
    const response = await ask(path, { ...(json ? { json } : {}), headers })
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

  it('[S1.6] the id of another agent\'s schedule is 409, and nothing of it changes', async () => {
    const ask = await world()
    const made = await ask('alice', '/agents/guide/schedules', { id: 's', threadId: 't', message: 'Ring!', every: 60_000 })
    expect(await ask('alice', '/agents/other/schedules', { id: 's', threadId: 't', message: 'Mine.', every: 60_000 })).toMatchObject({ http: 409, code: 'id_taken' })
    expect(await ask('alice', '/agents/other/schedules/s')).toMatchObject({ http: 404 })
    expect(await ask('alice', '/agents/guide/schedules/s')).toEqual(made)
  })
})
