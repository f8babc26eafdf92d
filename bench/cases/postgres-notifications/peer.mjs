import { Mastra } from '@mastra/core/mastra'
import { dispatchDueNotifications } from '@mastra/core/notifications'
import { report } from '../../harness/side.mjs'
import { peerOnPostgres } from '../../postgres/peer.mjs'
import { deliveryPolicy, inbox, model } from '../notifications/inbox.mjs'

const { agent, memory, storage } = await peerOnPostgres(model, { notifications: { deliveryPolicy } })
const mastra = new Mastra({ agents: { listener: agent }, storage, logger: false, notifications: { dispatch: { enabled: false } } })
const notifications = await storage.getStore('notifications')

report(await inbox({
  send: (notification, target) => agent.sendNotificationSignal(notification, target),
  dispatch: async (limit) => (await dispatchDueNotifications({ mastra, storage: notifications, limit })).delivered.length,
  async answered(targets) {
    const found = await Promise.all(targets.map(({ threadId, resourceId }) => memory.recall({ threadId, resourceId, perPage: false })))
    return found.filter(({ messages }) => messages.some(({ role }) => role === 'assistant')).length
  },
}))
