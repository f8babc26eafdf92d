import { describe, expect, it, onTestFinished } from 'vitest'
import { HeedClient, type ThreadChange } from '../../src/client/index.ts'
import { apiKeys } from '../../src/http/server.ts'
import { Agent, Heed, silentLogger } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { changesBetween } from '../../src/thread/stream/thread-changes.ts'
import { serving } from '../http/serving.ts'
import { newFile } from '../new-file.ts'

const keys = { operator: 'a-long-random-key-of-op', user: 'a-long-random-key-of-user', blind: 'a-long-random-key-of-blind' }
const auth = apiKeys({
  [keys.operator]: { id: 'ops', resources: '*' },
  [keys.user]: { id: 'ada', resources: ['user-1'] },
  [keys.blind]: { id: 'eve', resources: ['user-1'], scopes: ['send'] },
})
const newAgent = () => new Agent({ id: 'guide', model: scriptedModel(() => 'Done.') })

/** A server, and another process on its file as far as the store knows. */
async function opened() {
  const url = `file:${newFile()}`
  const { server } = await serving({ guide: newAgent() }, { auth, storage: new LibSQLStore({ url }) })
  const other = new Heed({ agents: { guide: newAgent() }, storage: new LibSQLStore({ url }), logger: silentLogger })
  onTestFinished(async () => {
    await other.close()
    await server.close()
  })
  const as = (who: keyof typeof keys) => new HeedClient({ baseUrl: server.url, headers: { authorization: `Bearer ${keys[who]}` } })
  return { other, as }
}

/** Notes what a subscription reports until the test is over. */
async function listening(client: HeedClient) {
  const subscription = await client.subscribeToThreads({ agentId: 'guide' })
  const seen: Array<Record<string, unknown>> = []
  const over = (async () => {
    for await (const change of subscription.changes(false)) seen.push({ ...change })
  })()
  onTestFinished(async () => {
    subscription.unsubscribe()
    await over.catch(() => {})
  })
  return seen
}

describe('GET /events', () => {
  it('[I2.7] reports threads that change in any process, to those who may read them', async () => {
    const { other, as } = await opened()
    const [own, all] = await Promise.all([listening(as('user')), listening(as('operator'))])
    await as('user').getAgent('guide').sendMessage({ message: 'Hi', threadId: 'here', resourceId: 'user-1', wait: 'outcome' })
    await other.getAgent('guide').sendMessage('Hi', { threadId: 'elsewhere', resourceId: 'user-1' }).outcome
    await other.getAgent('guide').sendMessage('Hi', { threadId: 'secret', resourceId: 'user-2' }).outcome
    const idle = (seen: typeof own) => new Set(seen.filter(({ status }) => status === 'idle').map(({ id }) => id))
    await expect.poll(() => idle(all)).toEqual(new Set(['here', 'elsewhere', 'secret']))
    await expect.poll(() => idle(own)).toEqual(new Set(['here', 'elsewhere']))
    expect(own.find(({ id }) => id === 'here')).toMatchObject({ resourceId: 'user-1', title: '', epoch: expect.any(Number), updatedAt: expect.stringMatching(/Z$/) })
    expect(JSON.stringify(own)).not.toContain('secret')
    await as('user').memory({ agentId: 'guide' }).deleteThread('here')
    await expect.poll(() => own.at(-1)).toEqual({ id: 'here', resourceId: 'user-1', deleted: true })
    await expect(as('blind').subscribeToThreads()).rejects.toMatchObject({ code: 'forbidden', details: { scope: 'read' } })
    await expect(as('user').subscribeToThreads({ resourceId: 'user-2' })).rejects.toMatchObject({ code: 'forbidden' })
  })

  it('[I2.7] compares a page of threads, and asks for the list where more changed', () => {
    const row = (id: string, at: number, status: 'idle' | 'running' = 'idle') =>
      ({ id, resourceId: 'r', title: '', metadata: {}, createdAt: new Date(0), updatedAt: new Date(at), status, epoch: 1 })
    const ids = (changes: ThreadChange[]) => changes.map((change) => ('more' in change ? 'more' : `${change.deleted ? '-' : ''}${change.id}`))
    const many = Array.from({ length: 100 }, (_, index) => row(`t${index}`, 1_000 - index))
    expect(ids(changesBetween(many, many))).toEqual([])
    expect(ids(changesBetween(many.slice(0, 3), [row('t2', 998, 'running'), ...many.slice(0, 2)]))).toEqual(['t2'])
    expect(ids(changesBetween(many.slice(0, 3), many.slice(1, 3)))).toEqual(['-t0'])
    // The last one of a full page is below it now, and not deleted.
    expect(ids(changesBetween(many, [row('new', 2_000), ...many.slice(0, 99)]))).toEqual(['new'])
    expect(ids(changesBetween(many, Array.from({ length: 100 }, (_, index) => row(`n${index}`, 5_000 - index))))).toEqual(['more'])
  })
})
