import { describe, expect, it } from 'vitest'
import { Agent, type HeedError } from '../../src/index.ts'
import { reservedIdPrefixes } from '../../src/signals/normalize.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served } from '../http/serving.ts'
import { placeKinds } from '../thread/places.ts'
import { idle } from '../thread/said.ts'
import { ci, openWorld, thread } from './world.ts'

/** One of each kind that Heed gives to the signals of notifications, schedules and watches. */
const ids = ['notification:n1', 'notification-retry:1:n1', 'notification-summary:b', 'schedule:s:1', 'watch:w', 'watch-hit:1:w']

it('[A3.8] every reserved prefix is tried below', () => {
  const prefixes = Object.values(reservedIdPrefixes)
  expect(ids.map((id) => prefixes.find((prefix) => id.startsWith(prefix)))).toEqual(prefixes)
})

describe.each(placeKinds())('ids that notifications, schedules and watches have, $name', ({ make }) => {
  it('[A3.8] cannot be used by a sender, so that what they identify is delivered', async () => {
    const { agent, history, list, heed } = await openWorld(make)
    const refused = (send: () => unknown) => {
      try {
        send()
        return 'taken'
      } catch (error) {
        const { code, details } = error as HeedError
        return [code, details?.field]
      }
    }
    for (const id of ids) {
      expect(refused(() => agent.sendSignal({ type: 'notification', id, contents: 'Other words.' }, thread)), id).toEqual(['invalid_signal', 'id'])
      expect(refused(() => agent.sendMessage({ id, contents: 'Other words.' }, thread)), id).toEqual(['invalid_signal', 'id'])
      expect(refused(() => agent.queueMessage({ id, contents: 'Other words.' }, thread)), id).toEqual(['invalid_signal', 'id'])
      await expect(agent.sendStateSignal({ id: 'lane', cacheKey: 'k', signalId: id, contents: 'Other words.' }, thread)).rejects.toMatchObject({ code: 'invalid_signal', details: { field: 'signalId' } })
    }
    await agent.sendNotificationSignal({ ...ci, id: 'n1' }, thread)
    await idle(agent, thread)
    expect(await history()).toEqual(['notification'])
    expect(await list()).toMatchObject([{ status: 'delivered', deliveredSignalId: 'notification:n1' }])
    // Only the beginning counts.
    await agent.sendMessage({ id: 'a-notification:n1', contents: 'Hello.' }, thread).outcome
    await idle(agent, thread)
    await heed.close()
  })

  it('[A3.8] a message of such an id that a call brought, or that was saved, hides nothing: the record says why it is not told', async () => {
    const { agent, clock, list } = await openWorld(make, {}, { maxAttempts: 1 })
    const memory = await agent.getMemory()
    await agent.generate([{ role: 'user', content: 'Hello.', id: 'notification:n1' }], { memory: { thread: thread.threadId, resource: thread.resourceId } })
    await memory.saveMessages({ messages: [{ id: 'notification:n2', role: 'user', content: { format: 2, parts: [{ type: 'text', text: 'Saved.' }] }, createdAt: new Date(clock.now()), ...thread }] })
    for (const id of ['n1', 'n2']) {
      await agent.sendNotificationSignal({ ...ci, id }, thread)
      expect((await list())[0]).toMatchObject({ id, status: 'failed', lastDeliveryError: expect.stringContaining(`something else under the id notification:${id}`) })
    }
  })
})

it('[A3.8] cannot be used by a sender over HTTP, neither as the id of a signal nor as the key of a request', async () => {
  const model = scriptedModel(['Noted.'], { loop: true })
  const guide = new Agent({ id: 'guide', model })
  const { ask } = await served({ guide })
  for (const id of ids) {
    const key = { headers: { 'idempotency-key': id } }
    const answers = await Promise.all([
      ...['send-message', 'queue-message'].flatMap((door) => [
        ask(`/agents/guide/${door}`, { json: { message: { id, contents: 'Other words.' }, ...thread } }),
        ask(`/agents/guide/${door}`, { json: { message: 'Other words.', ...thread }, ...key }),
      ]),
      ask('/agents/guide/signals', { json: { signal: { id, type: 'notification', contents: 'Other words.' }, ...thread } }),
      ask('/agents/guide/signals', { json: { signal: { type: 'notification', contents: 'Other words.' }, ...thread }, ...key }),
      ask('/agents/guide/state-signals', { json: { state: { id: 'lane', cacheKey: 'k', signalId: id, contents: 'Other words.' }, ...thread } }),
      ask('/agents/guide/state-signals', { json: { state: { id: 'lane', cacheKey: 'k', contents: 'Other words.' }, ...thread }, ...key }),
      ask('/agents/guide/chat', { json: { id: thread.threadId, resourceId: thread.resourceId, messages: [{ id, role: 'user', parts: [{ type: 'text', text: 'Other words.' }] }] } }),
    ])
    for (const answer of answers) expect([id, answer.url, answer.status, await answer.json()]).toMatchObject([id, answer.url, 400, { code: 'invalid_signal' }])
  }
  expect(await guide.threads().store.getThread(thread)).toBeNull()
  expect(model.callCount).toBe(0)
})
