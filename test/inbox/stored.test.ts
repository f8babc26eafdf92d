import { mkdtempSync, rmSync, unlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { Agent, CompositeStore, Heed, silentLogger } from '../../src/index.ts'
import { createHandler } from '../../src/http/server.ts'
import { LibSQLStore, NotificationsLibSQL } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { ci, thread } from './world.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-inbox-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('a notification that is stored', () => {
  it('[N1.9] is on the disk of its own database, or its sender receives an error', async () => {
    const path = join(folder, 'inbox.db')
    const storage = new CompositeStore({
      default: new LibSQLStore({ url: `file:${join(folder, 'threads.db')}` }),
      domains: { notifications: new NotificationsLibSQL({ url: `file:${path}` }) },
    })
    const agent = new Agent({ id: 'support', model: scriptedModel(() => 'Noted.'), notifications: { deliveryPolicy: { default: 'persist' } } })
    const heed = new Heed({ agents: { agent }, storage, logger: silentLogger })
    const { stored } = await agent.sendNotificationSignal(ci, thread)
    await stored
    // From here on nothing that is written can be found again, though writing still works.
    unlinkSync(path)
    const lost = await agent.sendNotificationSignal(ci, thread)
    await expect(lost.stored).rejects.toMatchObject({ code: 'store_gone' })
    const answer = await createHandler(heed, { auth: 'local' })(new Request('http://localhost/api/agents/support/notifications', {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ ...thread, notification: ci }),
    }))
    expect(answer.status).toBeGreaterThanOrEqual(500)
    await heed.close().catch(() => {})
  })
})
