import { expect, it, onTestFinished } from 'vitest'
import { createHandler, apiKeys } from '../../src/http/server.ts'
import { Agent, Heed, InMemoryStore, type Logger } from '../../src/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { soon } from '../thread/said.ts'

const planted = ['sk-proj-planted-0123456789abcdef', 'db.internal.example']
const words = `connect ECONNREFUSED ${planted[1]}:5432 with ${planted[0]}`
const keys = { tenant: 'the-key-of-a-tenant', operator: 'the-key-of-an-operator' }
const thread = { threadId: 't1', resourceId: 'user-1' }
const hasPlanted = (text: string) => planted.filter((word) => text.includes(word))

it('[H3.15] the errors that schedules and notifications store reach no tenant by any route: it gets a code and the id of the record', async () => {
  const clock = virtualClock()
  const lines: string[] = []
  const log = (message: string, fields?: object) => void lines.push(`${message} ${JSON.stringify(fields)}`)
  const logger: Logger = { debug: log, info: log, warn: log, error: log }
  const agent = new Agent({ id: 'guide', model: scriptedModel(['Noted.'], { loop: true }) })
  const storage = new InMemoryStore({ clock })
  const heed = new Heed({ agents: { guide: agent }, storage, logger, clock })
  const handler = createHandler(heed, { auth: apiKeys({ [keys.tenant]: { id: 'tenant', resources: ['user-1'] }, [keys.operator]: { id: 'admin', resources: '*' } }) })
  onTestFinished(async () => {
    handler.close()
    await heed.close()
  })
  const as = async (who: keyof typeof keys, path: string, json?: object) => {
    const headers = { authorization: `Bearer ${keys[who]}`, 'content-type': 'application/json' }
    return (await handler(new Request(`http://localhost/api${path}`, { headers, ...(json && { method: 'POST', body: JSON.stringify(json) }) }))).text()
  }
  await agent.schedule({ ...thread, id: 's-1', message: 'Tick.', every: 3_600_000 })
  // The disk rejects every send from now on, with words of the driver.
  Object.defineProperty(storage, 'accept', { configurable: true, value: () => Promise.reject(new Error(words)) })
  await agent.sendNotificationSignal({ id: 'n-1', source: 'ci', kind: 'build', summary: 'Failed.', priority: 'urgent' }, thread).catch(() => {})
  await clock.advance(3_600_000)
  await soon(async () => (await agent.schedules.get({ id: 's-1' }))?.lastError).toContain(planted[1])
  const inbox = `/agents/guide/threads/t1/notifications`
  await soon(() => as('operator', `${inbox}?resourceId=user-1`)).toContain('lastDeliveryError')

  const doors: Record<string, [string, object?]> = {
    schedules: ['/agents/guide/schedules'], 'one schedule': ['/agents/guide/schedules/s-1'],
    'a pause': ['/agents/guide/schedules/s-1/pause', {}], 'a resume': ['/agents/guide/schedules/s-1/resume', {}],
    notifications: [inbox], 'one notification': [`${inbox}/n-1`],
  }
  for (const [door, [path, json]] of Object.entries(doors)) {
    const text = await as('tenant', path, json)
    const id = path.includes('schedules') ? 's-1' : 'n-1'
    expect([door, hasPlanted(text), text]).toEqual([door, [], expect.stringContaining(`The server failed (failed). The operator finds the reason in the log, under ${id}.`) as string])
    expect([door, hasPlanted(await as('operator', path, json))]).toEqual([door, expect.arrayContaining([planted[1]])])
  }
  for (const id of ['s-1', 'n-1']) {
    const logged = lines.filter((line) => line.includes('hidden from its caller') && line.includes(`"${id}"`))
    expect([id, logged.length, hasPlanted(logged.join())]).toEqual([id, 1, [planted[1]]])
  }
})
