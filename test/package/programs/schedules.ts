import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Agent, InMemoryStore } from 'heed'
import { scriptedModel, virtualClock } from 'heed/testing'
import { served, thread } from './parts/serving.ts'
import { until } from './parts/until.ts'

test('a schedule made over HTTP sends its message when it is due', async () => {
  const clock = virtualClock()
  const model = scriptedModel(['Looked.'], { loop: true })
  const { client } = await served(new Agent({ id: 'guide', model }), { heed: { clock, storage: new InMemoryStore({ clock }) } })
  const { schedules } = client.getAgent('guide')
  await schedules.create({ ...thread, id: 'often', message: 'Look around.', every: 60_000 })
  const morning = { cron: '30 7 * * *', timeZone: 'Europe/Zurich' }
  const { nextAt } = await schedules.create({ ...thread, id: 'cron', message: 'Good morning.', ...morning })
  assert.ok(nextAt)
  const { schedules: listed } = await schedules.list(thread)
  assert.deepEqual(listed.map(({ id }) => id).toSorted(), ['cron', 'often'])
  await clock.advance(60_000)
  await until(async () => {
    await clock.advance(0)
    return model.callCount
  }, 1)
  assert.equal(await schedules.remove({ id: 'often', resourceId: thread.resourceId }), true)
})
