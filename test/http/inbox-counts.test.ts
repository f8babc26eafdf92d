import { expect, it } from 'vitest'
import { Agent, type NotificationPriority } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

const persist: Record<NotificationPriority, 'persist'> = { low: 'persist', medium: 'persist', high: 'persist', urgent: 'persist' }

it('[U1.4] a subscription that requests it receives the counts of its own inbox, the last alone; others receive none', async () => {
  const agent = new Agent({ id: 'guide', model: scriptedModel(['Hi.'], { loop: true }), notifications: { deliveryPolicy: { default: 'persist', priorities: persist } } })
  const { client } = await served({ guide: agent })
  const remote = client.getAgent('guide')
  const watch = (params: { resourceId: string; inbox?: boolean; threadId?: string }) => {
    const subscription = remote.watchThread({ threadId: thread.threadId, ...params })
    const told: unknown[] = []
    const types = new Set<string>()
    const over = (async () => {
      for await (const chunk of subscription.chunks(false)) {
        types.add(chunk.type)
        if (chunk.type === 'data-inbox' && 'data' in chunk) told.push(chunk.data)
      }
    })()
    return { told, types, end: () => (subscription.unsubscribe(), over) }
  }
  const mine = watch({ resourceId: thread.resourceId, inbox: true })
  const plain = watch({ resourceId: thread.resourceId })
  await expect.poll(() => mine.told).toEqual([{ pending: 0, unread: 0, counts: {} }])
  const count = 500
  await agent.sendNotificationSignal(Array.from({ length: count }, (_, index) => ({ source: 'ci', kind: 'status', summary: `build ${index}` })), thread)
  await agent.sendNotificationSignal({ source: 'ci', kind: 'status', summary: 'of another thread' }, { ...thread, threadId: 'thread-2' })
  await expect.poll(() => mine.told.at(-1)).toMatchObject({ pending: count, unread: count, counts: { pending: count } })
  // However many come, it is counted now and then, not once for each.
  expect(mine.told.length).toBeLessThan(count / 2)
  const other = watch({ resourceId: 'user-2', threadId: 'thread-3', inbox: true })
  await expect.poll(() => other.told).toEqual([{ pending: 0, unread: 0, counts: {} }])
  agent.sendMessage('Hello.', thread)
  await expect.poll(() => plain.types.has('finish')).toBe(true)
  expect(plain.types.has('data-inbox')).toBe(false)
  await Promise.all([mine.end(), plain.end(), other.end()])
})
