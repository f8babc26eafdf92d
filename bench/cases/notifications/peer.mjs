import { Agent } from '@mastra/core/agent'
import { Mastra } from '@mastra/core/mastra'
import { dispatchDueNotifications } from '@mastra/core/notifications'
import { LibSQLStore } from '@mastra/libsql'
import { Memory } from '@mastra/memory'
import { report } from '../../harness/side.mjs'
import { newDatabase } from '../../threads/database.mjs'
import { deliveryPolicy, inbox, model } from './inbox.mjs'

const storage = new LibSQLStore({ id: 'threads', url: newDatabase() })
const memory = new Memory({ storage })
const agent = new Agent({ id: 'listener', name: 'listener', instructions: 'You answer.', model, memory, notifications: { deliveryPolicy } })
const mastra = new Mastra({ agents: { listener: agent }, storage, logger: false, notifications: { dispatch: { enabled: false } } })
await storage.init()
const notifications = await storage.getStore('notifications')

report(await inbox({
  send: (notification, target) => agent.sendNotificationSignal(notification, target),
  dispatch: async (limit) => (await dispatchDueNotifications({ mastra, storage: notifications, limit })).delivered.length,
  async answered(targets) {
    const found = await Promise.all(targets.map(({ threadId, resourceId }) => memory.recall({ threadId, resourceId, perPage: false })))
    return found.filter(({ messages }) => messages.some(({ role }) => role === 'assistant')).length
  },
}))
