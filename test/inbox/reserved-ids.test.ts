import { describe, expect, it } from 'vitest'
import type { HeedError } from '../../src/index.ts'
import { placeKinds } from '../thread/places.ts'
import { idle } from '../thread/said.ts'
import { ci, openWorld, thread } from './world.ts'

describe.each(placeKinds())('ids that notifications and schedules have, $name', ({ make }) => {
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
    for (const id of ['notification:n1', 'notification-retry:1:n1', 'notification-summary:b', 'schedule:s:1']) {
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
