import { Agent, Heed, silentLogger, type NotificationStore, type Processor } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { notificationStoreOf } from '../../src/store/contract/storage.ts'
import { scriptedModel } from '../../src/testing/index.ts'

// A process that notifies the thread in the file of its first argument, and is killed on the way: `queue`, when it has decided to queue the
// notification and before the thread has it; `guardrail`, when its record is delivered and before its guardrail has spoken.
const thread = { resourceId: 'user-1', threadId: 'thread-1' }
const [path, instant] = process.argv.slice(2)
const storage = new LibSQLStore({ url: `file:${path}` })

const die = (): Promise<never> => {
  process.kill(process.pid, 'SIGKILL')
  return new Promise(() => {})
}

const guardrail: Processor = {
  id: 'guardrail',
  async processInput() {
    const inbox = (await notificationStoreOf(storage)) as NotificationStore
    while ((await inbox.listNotifications({ ...thread, limit: 1 })).notifications[0]?.status !== 'delivered') await new Promise(setImmediate)
    return die()
  },
}

const agent = new Agent({
  id: 'support',
  model: scriptedModel(() => 'Noted.'),
  ...(instant === 'guardrail' ? { inputProcessors: [guardrail] } : {}),
  ...(instant === 'queue' ? { notifications: { deliveryPolicy: { default: 'queue' as const } } } : {}),
})
const heed = new Heed({ agents: { agent }, storage, logger: silentLogger })
if (instant === 'queue') Object.defineProperty(storage, 'accept', { value: die })
await heed.getAgent('agent').sendNotificationSignal({ source: 'github', kind: 'ci-status', summary: 'CI failed on main: 3 tests failed.' }, thread)
