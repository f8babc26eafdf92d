import { report } from '../../harness/side.mjs'
import { heedOnPostgres } from '../../postgres/heed.mjs'
import { deliveryPolicy, inbox, model } from '../notifications/inbox.mjs'

const options = { agent: { notifications: { deliveryPolicy } }, heed: { notifications: { dispatch: { enabled: false } } } }
const { agent, memory, heed } = await heedOnPostgres(model, options)

report(await inbox({
  send: async (notification, target) => (await agent.sendNotificationSignal(notification, target)).stored,
  committed: (notification, target) => agent.sendNotificationSignal(notification, target),
  dispatch: async (limit) => (await heed.tick({ limit })).notifications,
  async answered(targets) {
    const found = await Promise.all(targets.map((target) => memory.recall({ ...target, perPage: 1 })))
    return found.filter(({ messages }) => messages[0]?.role === 'assistant').length
  },
}))
