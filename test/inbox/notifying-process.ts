import { Agent, Heed, silentLogger } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/libsql/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

// A process that notifies a thread in the file of its first argument each time it is told to, with the words that it is told.
const agent = new Agent({ id: 'support', model: scriptedModel(() => 'Noted.'), notifications: { deliveryPolicy: { default: 'persist' } } })
const heed = new Heed({ agents: { agent }, storage: new LibSQLStore({ url: `file:${process.argv[2]}` }), logger: silentLogger })
await heed.start()
process.on('message', (words: string[]) => {
  const given = words.map((summary) => ({ source: 'github', kind: 'ci-status', summary }))
  void agent.sendNotificationSignal(given, { resourceId: 'user-1', threadId: 'thread-1' }).then(() => process.send?.('sent'))
})
process.on('disconnect', () => void heed.close())
process.send?.('ready')
