import { Agent, Heed, silentLogger, systemClock, type Clock, type NotificationStore } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { notificationStoreOf } from '../../src/store/contract/storage.ts'
import { scriptedModel } from '../../src/testing/index.ts'

// A process that dispatches what is due in the file of its first argument until it is killed. Its clock is ahead by the second. At the step of
// the third, which is before or after a call of a store on the way of a notification, it kills itself, or tells that it is there.
const [path, ahead, step = '0', what = 'tell'] = process.argv.slice(2)
const clock: Clock = { ...systemClock, now: () => Date.now() + Number(ahead) }
const agent = new Agent({ id: 'support', model: scriptedModel(() => 'Noted.') })
const storage = new LibSQLStore({ url: `file:${path}`, clock })
const inbox = (await notificationStoreOf(storage)) as NotificationStore

let steps = 0
function reach(): void {
  if (++steps !== Number(step)) return
  if (what === 'die') process.kill(process.pid, 'SIGKILL')
  else process.send?.('there')
}

/** Counts a step before and after each call. */
function count<Store extends object>(store: Store, ...methods: Array<keyof Store & string>): void {
  for (const method of methods) {
    const call = (store[method] as (...given: unknown[]) => Promise<unknown>).bind(store)
    Object.defineProperty(store, method, {
      value: async (...given: unknown[]) => {
        reach()
        const result = await call(...given)
        reach()
        return result
      },
    })
  }
}
count(inbox, 'claimDue', 'delivered', 'summarised')
count(storage, 'accept')

const heed = new Heed({ agents: { agent }, storage, clock, logger: silentLogger, notifications: { dispatch: { batchSize: 20 } } })
process.on('message', () => void heed.close().then(() => process.disconnect()))
process.send?.('begins')
await heed.start()
