import { importHeed, report } from '../../harness/side.mjs'
import { newDatabase } from '../../threads/database.mjs'
import { deliveryPolicy, inbox, model } from './inbox.mjs'

const { Agent, Heed } = await importHeed()
const { LibSQLStore } = await importHeed('libsql')
const agent = new Agent({ id: 'listener', instructions: 'You answer.', model, notifications: { deliveryPolicy } })
const storage = new LibSQLStore({ url: newDatabase() })
const heed = new Heed({ agents: { agent }, storage, notifications: { dispatch: { enabled: false } } })
await heed.start()
const memory = await agent.getMemory()

report(await inbox({
  send: async (notification, target) => (await agent.sendNotificationSignal(notification, target)).stored,
  committed: (notification, target) => agent.sendNotificationSignal(notification, target),
  dispatch: async (limit) => (await heed.tick({ limit })).notifications,
  async answered(targets) {
    const found = await Promise.all(targets.map((target) => memory.recall({ ...target, perPage: 1 })))
    return found.filter(({ messages }) => messages[0]?.role === 'assistant').length
  },
}))
