import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Agent } from 'heed'
import { LibSQLStore } from 'heed/libsql'
import { scriptedModel } from 'heed/testing'
import { newFile } from './parts/folder.ts'
import { served, thread } from './parts/serving.ts'

const ci = { source: 'github', kind: 'ci-status', summary: 'CI failed on main.', payload: { tests: 3 } }
const notifications = { deliveryPolicy: { default: 'persist' } } as const
const guide = () => new Agent({ id: 'guide', model: scriptedModel(['Noted.'], { loop: true }), notifications })

for (const [where, storage] of [['in memory', undefined], ['in a file', newFile()]] as const) {
  test(`the inbox over HTTP sends, lists, reads and marks notifications, ${where}`, async () => {
    const { client } = await served(guide(), storage === undefined ? {} : { heed: { storage: new LibSQLStore({ url: storage }) } })
    const { notifications } = client.getAgent('guide')
    const { record, decision } = await notifications.send({ ...thread, notification: ci })
    assert.equal(decision.action, 'persist')
    const { notifications: listed, counts } = await notifications.list({ ...thread, search: 'ci failed' })
    assert.deepEqual([listed.map(({ id }) => id), counts], [[record.id], { pending: 1 }])
    assert.deepEqual((await notifications.get({ ...thread, id: record.id })).payload, ci.payload)
    const [marked] = await notifications.mark({ ...thread, ids: [record.id], status: 'dismissed' })
    assert.equal(marked?.status, 'dismissed')
  })
}

test('a watcher over HTTP gets the counts of the inbox', async () => {
  const { client } = await served(guide())
  const remote = client.getAgent('guide')
  await remote.sendMessage({ message: 'Hi.', ...thread, wait: 'outcome' })
  const watching = await remote.subscribeToThread({ ...thread, inbox: true })
  const counts: unknown[] = []
  const seen = watching.processDataStream({
    async onChunk(chunk) {
      if ((chunk.type as string) !== 'data-inbox') return
      counts.push(chunk)
      if (counts.length === 1) await remote.notifications.send({ ...thread, notification: ci })
      else watching.unsubscribe()
    },
  })
  await seen
  assert.match(JSON.stringify(counts.at(-1)), /"pending":1/)
})
