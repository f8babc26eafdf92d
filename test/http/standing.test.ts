import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

const guide = () => new Agent({ id: 'guide', model: scriptedModel(['Noted.'], { loop: true }) })
const quiet = { ...thread, ifIdle: { behavior: 'persist' } } as const

describe('what stands on a thread, over HTTP', () => {
  it('[H1.3] schedules are made, listed, paused, resumed and removed', async () => {
    const { client } = await served({ guide: guide(), other: new Agent({ id: 'other', model: scriptedModel([]) }) })
    const { schedules } = client.getAgent('guide')
    const made = await schedules.create({ ...thread, id: 'morning', message: 'What is planned?', cron: '30 7 * * 1-5', timeZone: 'Europe/Zurich' })
    expect(made).toMatchObject({ id: 'morning', status: 'active', overlap: 'allow', timing: { cron: '30 7 * * 1-5' } })
    const once = await schedules.create({ ...thread, signal: { type: 'notification', contents: 'Now.' }, at: new Date('2999-01-01T00:00:00Z') })
    expect(once.nextAt).toBe('2999-01-01T00:00:00.000Z')
    expect((await schedules.list({ ...thread, status: 'active' })).schedules.map(({ id }) => id).toSorted()).toEqual([once.id, 'morning'].toSorted())
    expect(await schedules.pause({ id: 'morning' })).toMatchObject({ status: 'paused' })
    expect(await schedules.resume({ id: 'morning', resourceId: 'user-1' })).toMatchObject({ status: 'active' })
    await expect(schedules.get({ id: 'morning', resourceId: 'user-2' })).rejects.toMatchObject({ code: 'not_found' })
    await expect(schedules.remove({ id: 'morning', resourceId: 'user-2' })).rejects.toMatchObject({ code: 'not_found' })
    await expect(client.getAgent('other').schedules.get({ id: 'morning' })).rejects.toMatchObject({ code: 'not_found' })
    expect(await schedules.remove({ id: 'morning' })).toBe(true)
    await expect(schedules.get({ id: 'morning' })).rejects.toMatchObject({ code: 'not_found' })
    await expect(schedules.create({ ...thread, message: 'x', cron: 'nonsense' })).rejects.toMatchObject({ code: 'invalid_argument' })
  })

  it('[H1.3] lanes are read: their present state, and the signals that made it', async () => {
    const { client } = await served({ guide: guide() })
    const remote = client.getAgent('guide')
    await remote.sendStateSignal({ state: { id: 'editor', cacheKey: 'a', contents: 'a.ts is open.', value: { file: 'a.ts' } }, ...quiet })
    await remote.sendStateSignal({ state: { id: 'editor', mode: 'delta', cacheKey: 'b', contents: 'Line 7.', delta: { line: 7 } }, ...quiet })
    expect(await remote.listLanes(thread)).toMatchObject([{ id: 'editor', version: 2, mode: 'delta' }])
    expect(await remote.getLane({ ...thread, id: 'editor' })).toMatchObject({ version: 2, snapshot: { value: { file: 'a.ts' } }, deltas: [{ delta: { line: 7 } }] })
    expect(await remote.listLaneHistory({ ...thread, id: 'editor', before: 2 })).toMatchObject({ signals: [{ version: 1 }], more: false })
    await expect(remote.getLane({ ...thread, id: 'browser' })).rejects.toMatchObject({ code: 'not_found' })
    await expect(remote.listLanes({ ...thread, threadId: 'nothing' })).rejects.toMatchObject({ code: 'thread_not_found' })
  })

  it('[H1.2] a state that is repeated under its key does not come back over a newer one', async () => {
    const { ask } = await served({ guide: guide() })
    const tell = async (cacheKey: string, key: string) =>
      (await ask('/agents/guide/state-signals', { json: { state: { id: 'editor', cacheKey, contents: cacheKey }, ...quiet }, headers: { 'idempotency-key': key } })).status
    expect([await tell('a', 'key-1'), await tell('b', 'key-2'), await tell('a', 'key-1')]).toEqual([200, 200, 200])
    const lane = await ask('/agents/guide/threads/thread-1/lanes/editor?resourceId=user-1')
    expect(await lane.json()).toMatchObject({ cacheKey: 'b', version: 2 })
  })
})
