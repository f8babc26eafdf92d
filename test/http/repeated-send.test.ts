import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

const guide = () => new Agent({ id: 'guide', model: scriptedModel(['Hello.'], { loop: true }) })

interface Told {
  runId: string
  signal: { id: string; contents: string; acceptedAt: string }
  outcome: { action: string; runId?: string }
  code?: string
}

async function serving() {
  const { ask, heed } = await served({ guide: guide() })
  const send = async (route: string, json: object, key: string): Promise<Told> =>
    (await ask(`/agents/guide/${route}`, { json: { ...thread, ...json }, headers: { 'idempotency-key': key } })).json() as Promise<Told>
  return { heed, send }
}

describe('a send that is made again under its key', () => {
  it.each([
    ['send-message', { message: 'one' }, { message: 'two' }],
    ['queue-message', { message: 'one' }, { message: { contents: 'one', metadata: { a: 1 } } }],
    ['signals', { signal: { type: 'reactive', contents: 'one' } }, { signal: { type: 'notification', contents: 'one' } }],
  ] as const)('[H1.2] %s: is answered with the first signal and its run, and refused when it says something else', async (route, same, other) => {
    const { heed, send } = await serving()
    const first = await send(`${route}?wait=outcome`, same, 'key-1')
    const again = await send(`${route}?wait=outcome`, same, 'key-1')
    expect([again.runId, again.signal]).toEqual([first.runId, first.signal])
    const explained = await heed.getAgentById('guide').explain({ ...thread, signalId: 'key-1' })
    expect(explained).toMatchObject({ runId: first.runId })
    expect(await send(route, other, 'key-1')).toMatchObject({ code: 'idempotency_key_reused' })
    expect((await send(route, other, 'key-2')).runId).not.toBe(first.runId)
  })

  it('[H1.2] many at once: one run, and it is the one that runs', async () => {
    const { send } = await serving()
    const told = await Promise.all(Array.from({ length: 5 }, () => send('send-message?wait=outcome', { message: 'Hi' }, 'key-1')))
    const [first] = told
    expect(new Set(told.map(({ runId }) => runId)).size).toBe(1)
    expect(new Set(told.map(({ outcome }) => outcome.runId))).toEqual(new Set([first?.runId]))
  })

  it('[H1.2] the order of keys says nothing, nor does what the thread did at the time', async () => {
    const { send } = await serving()
    const message = (metadata: object) => ({ message: { contents: 'Hi', metadata, attributes: { by: 'me' } }, ifIdle: { attributes: { when: 'idle' } }, ifActive: { attributes: { when: 'active' } } })
    const first = await send('send-message', message({ a: 1, b: 2 }), 'key-1')
    expect(await send('send-message', message({ b: 2, a: 1 }), 'key-1')).toMatchObject({ runId: first.runId })
  })

  it('[H1.2] what starts no run is answered with its own id, each time', async () => {
    const { send } = await serving()
    const quiet = { message: 'Hi', ifIdle: { behavior: 'persist' } }
    expect([(await send('send-message', quiet, 'key-1')).runId, (await send('send-message', quiet, 'key-1')).runId]).toEqual(['key-1', 'key-1'])
    const state = (contents: string) => send('state-signals', { state: { id: 'editor', cacheKey: contents, contents }, ifIdle: { behavior: 'persist' } }, 'key-2')
    expect([(await state('a')).runId, (await state('a')).runId, (await state('b')).code]).toEqual(['key-2', 'key-2', 'idempotency_key_reused'])
  })
})
