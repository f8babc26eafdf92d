import { Agent, Heed } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

// A program that sends and then only listens. It does nothing else to stay alive.
const [, , url = '', how = 'forever'] = process.argv
const agent = new Agent({ id: 'guide', model: scriptedModel(() => 'Said.') })
const heed = new Heed({ agents: { agent }, storage: new LibSQLStore({ url }) })
const thread = { resourceId: 'user-7', threadId: 'trip-1' }
const watching = await agent.subscribeToThread(thread)
agent.sendMessage('Plan a day in Lisbon.', thread)
const receipt = agent.queueMessage('Then write it as a mail.', thread)
await receipt.stored

let finished = 0
for await (const chunk of watching.stream) {
  if (chunk.type === 'text-delta') process.stdout.write(chunk.payload.text)
  if (chunk.type !== 'finish' || ++finished < 2) continue
  // Fires only in a process that something else keeps alive.
  setTimeout(() => process.stdout.write('\n'), 200).unref()
  // What ends the waiting comes while the loop waits for the next chunk.
  if (how === 'close') setImmediate(() => void heed.close())
  if (how === 'unsubscribe') setImmediate(() => watching.unsubscribe())
  if (how === 'break') break
}
