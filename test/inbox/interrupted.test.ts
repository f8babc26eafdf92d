import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { Agent, systemClock, type Clock, type NotificationStore } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { notificationStoreOf } from '../../src/store/contract/storage.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed } from '../thread/places.ts'
import { gate, idle, soon } from '../thread/said.ts'
import { thread } from './world.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-inbox-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The file that a process left which was killed at this instant, and a clock by which it is known to be dead. */
async function killed(instant: 'queue' | 'guardrail') {
  const path = join(folder, `${instant}.db`)
  const child = spawn(process.execPath, [join(import.meta.dirname, 'interrupted-process.ts'), path, instant], { stdio: ['ignore', 'inherit', 'inherit'] })
  expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
  let ahead = 120_000
  const clock: Clock = { ...systemClock, now: () => Date.now() + ahead }
  const storage = new LibSQLStore({ url: `file:${path}`, clock })
  const inbox = (await notificationStoreOf(storage)) as NotificationStore
  return { clock, storage, pass: (ms: number) => (ahead += ms), record: async () => (await inbox.listNotifications({ ...thread, limit: 5 })).notifications[0] }
}

describe('a process that is killed', () => {
  it('[N2.8] having decided to queue: the next one queues, behind what is active there', async () => {
    const { clock, storage, record } = await killed('queue')
    expect(await record()).toMatchObject({ status: 'pending', deliveryAction: 'queue' })
    const hold = gate()
    const model = scriptedModel(({ index }) => (index === 0 ? { text: 'Working.', gate: hold.promise } : 'Noted.'))
    const agent = new Agent({ id: 'support', model })
    const heed = openHeed({ agent }, storage, { clock, notifications: { dispatch: { enabled: false } } })
    agent.sendMessage('Work.', thread)
    await soon(() => model.callCount).toBe(1)
    expect(await heed.tick()).toMatchObject({ notifications: 1 })
    agent.sendMessage('And this.', thread)
    await soon(async () => (await agent.listQueued(thread)).length).toBe(2)
    hold.open()
    await soon(() => model.callCount).toBe(3)
    await idle(agent, thread)
    // What was delivered joins the run; what was queued has one of its own.
    expect(JSON.stringify(model.calls[1]?.prompt)).not.toContain('CI failed')
    expect(JSON.stringify(model.calls[2]?.prompt)).toContain('CI failed')
    expect(await record()).toMatchObject({ status: 'delivered' })
  })

  it('[N2.9] before its guardrail spoke: the guardrail of the next one refuses, and the record is failed', async () => {
    const { clock, storage, record, pass } = await killed('guardrail')
    expect(await record()).toMatchObject({ status: 'delivered' })
    const model = scriptedModel(() => 'Noted.')
    const agent = new Agent({ id: 'support', model, inputProcessors: [{ id: 'guardrail', processInput: ({ abort }) => abort('not in here') }] })
    const heed = openHeed({ agent }, storage, { clock })
    await heed.start()
    await idle(agent, thread)
    // It may have been looked at while the run went on; then it is looked at again.
    pass(60_000)
    await heed.tick()
    expect(await record()).toMatchObject({ status: 'failed' })
    expect(await record()).toMatchObject({ lastDeliveryError: expect.stringContaining('not in here') as string })
    expect(model.callCount).toBe(0)
  })
})
