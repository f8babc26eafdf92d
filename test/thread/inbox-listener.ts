import { Agent, Heed } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

// A program that only listens to an inbox. It does nothing else to stay alive.
const [, , url = '', how = 'forever'] = process.argv
const agent = new Agent({ id: 'guide', model: scriptedModel(() => 'Said.'), notifications: { deliveryPolicy: { default: 'persist' } } })
const heed = new Heed({ agents: { agent }, storage: new LibSQLStore({ url }) })
const thread = { resourceId: 'user-7', threadId: 'trip-1' }
const watching = await agent.subscribeToInbox({ resourceId: thread.resourceId })
await agent.sendNotificationSignal({ source: 'ci', kind: 'status', summary: 'One.' }, thread)

for await (const { record } of watching.stream) {
  process.stdout.write(`${record.summary}\n`)
  // Fires only in a process that something else keeps alive.
  setTimeout(() => process.stdout.write('waits\n'), 200).unref()
  // What ends the waiting comes while the loop waits for the next change.
  if (how === 'close') setImmediate(() => void heed.close())
  if (how === 'unsubscribe') setImmediate(() => watching.unsubscribe())
  if (how === 'break') break
}
