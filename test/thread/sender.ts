import { Agent, Heed } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

// A program that sends and then only awaits what becomes of it. It does nothing else to stay alive.
const [, , url = ''] = process.argv
const agent = new Agent({ id: 'guide', model: scriptedModel(() => 'Said.') })
const heed = new Heed({ agents: { agent }, storage: new LibSQLStore({ url }) })
const receipt = agent.sendMessage('Plan a day in Lisbon.', { resourceId: 'user-7', threadId: 'trip-1' })
await receipt.stored
// Fires only in a process that something else keeps alive.
setTimeout(() => process.stdout.write('waits\n'), 200).unref()
process.stdout.write(`${(await receipt.outcome).action}\n`)
await heed.close()
