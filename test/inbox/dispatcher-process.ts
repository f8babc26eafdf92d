import { Agent, Heed, silentLogger, systemClock, type Clock } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/libsql/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

// A process that dispatches what is due in the file of its first argument until it is killed. Its clock is ahead by the second.
const [path, ahead] = process.argv.slice(2)
const clock: Clock = { ...systemClock, now: () => Date.now() + Number(ahead) }
const agent = new Agent({ id: 'support', model: scriptedModel(() => 'Noted.') })
const heed = new Heed({ agents: { agent }, storage: new LibSQLStore({ url: `file:${path}`, clock }), clock, logger: silentLogger, notifications: { dispatch: { batchSize: 20 } } })
process.on('message', () => void heed.close().then(() => process.disconnect()))
process.send?.('begins')
await heed.start()
