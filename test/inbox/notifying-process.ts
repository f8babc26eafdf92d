import { Agent, Heed, silentLogger } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

// A process that notifies a thread in the file of its first argument each time its parent asks, with the words of its parent; all of them under
// the key of the second, if there is one.
const [path, dedupeKey] = process.argv.slice(2)
const agent = new Agent({ id: 'support', model: scriptedModel(() => 'Noted.'), notifications: { deliveryPolicy: { default: 'persist' } } })
const heed = new Heed({ agents: { agent }, storage: new LibSQLStore({ url: `file:${path}` }), logger: silentLogger })
await heed.start()
process.on('message', (words: string[]) => {
  const thread = { resourceId: 'user-1', threadId: 'thread-1' }
  const given = words.map((summary) => ({ source: 'github', kind: 'ci-status', summary, ...(dedupeKey === undefined ? {} : { dedupeKey }) }))
  const sent = dedupeKey === undefined ? agent.sendNotificationSignal(given, thread) : Promise.all(given.map((one) => agent.sendNotificationSignal(one, thread)))
  void sent.then(() => process.send?.('sent'))
})
process.on('disconnect', () => void heed.close())
process.send?.('ready')
