import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { median } from '../../harness/median.mjs'
import { expect, importHeed, input, stopwatch } from '../../harness/side.mjs'
import { instantModel, textParts } from '../../instant-model.mjs'
import { newDatabase } from '../../threads/database.mjs'

const { Agent, Heed } = await importHeed()
const { LibSQLStore } = await importHeed('libsql')
setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc')
const day = 86_400_000
const start = Date.now()
const answer = textParts(1)
const later = { action: 'defer', deliverAt: new Date(start + 90 * day) }
const due = { action: 'defer', deliverAt: new Date(start) }

/** A Heed with an empty inbox in a file of its own. */
async function open() {
  const agent = new Agent({ id: 'listener', instructions: 'You answer.', model: instantModel(() => answer), notifications: { deliveryPolicy: { sources: { later, due } } } })
  const storage = new LibSQLStore({ url: newDatabase() })
  const heed = new Heed({ agents: { agent }, storage, notifications: { dispatch: { enabled: false } } })
  await heed.start()
  return { agent, heed, storage, inbox: await storage.getStore('notifications') }
}

/** The same numbers each time, without a pattern that an index would like. */
let seed = 7
function below(limit) {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
  return seed % limit
}
const targetOf = (index) => ({ threadId: `thread-${index}`, resourceId: `resource-${index}` })
let sent = 0
const words = (source) => ({ source, kind: 'ci-status', summary: `CI failed on branch ${sent}: someone should look at it when there is time.`, dedupeKey: `ci:${sent}`, payload: { number: sent++ } })

/** To each thread in turn, in an order that no index has, as they would come; each record is due at another time. */
const turns = Array.from({ length: input.threads }, (_, index) => ({ index, at: below(2 ** 30) }))
  .toSorted((one, other) => one.at - other.at).map(({ index }) => index)
async function fill({ inbox }) {
  for (let from = 0; from < input.size; from += 1_000) {
    const now = Date.now()
    await inbox.ingest(Array.from({ length: Math.min(1_000, input.size - from) }, (_, index) => ({
      ...words('later'), ...targetOf(turns[(from + index) % input.threads]), id: `0-${String(from + index).padStart(10, '0')}`, agentId: 'listener', now, undecidedUntil: now,
      settlement: { action: 'defer', deliverAt: start + day + below(60 * day), now, claimUntil: now },
    })))
  }
}

async function inLanes(count, work) {
  let next = 0
  const lane = async () => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: 50 }, lane))
}

async function ingress({ agent }) {
  const stop = stopwatch()
  await inLanes(input.ingress, () => agent.sendNotificationSignal(words('later'), targetOf(below(input.threads))))
  return stop()
}

/** Threads of their own for each, one after the other, so that each is idle. */
let first = 0
async function dispatch({ agent, heed, storage }) {
  const targets = Array.from({ length: input.due }, () => targetOf(first++ % input.threads))
  await inLanes(input.due, (index) => agent.sendNotificationSignal(words('due'), targets[index]))
  const stop = stopwatch()
  for (let done = 0; done < input.due;) {
    const { notifications } = await heed.tick({ limit: 100 })
    if (notifications === 0) throw new Error(`nothing is due after ${done}`)
    done += notifications
  }
  for (const target of targets) while ((await storage.getThread(target))?.status !== 'idle') await new Promise(setImmediate)
  return stop()
}

async function look({ inbox }) {
  const times = []
  for (let index = 0; index < 100; index++) {
    const startedAt = performance.now()
    const next = await inbox.nextDue(['listener'])
    times.push(performance.now() - startedAt)
    if (next === undefined || next < start + day) throw new Error(`next due at ${next}`)
  }
  gc({ type: 'major', execution: 'sync', flavor: 'last-resort' })
  return { nextDue: median(times), memory: process.memoryUsage().rss / 1e6 }
}

/** Elsewhere, so that a process whose inbox was large to fill is no better practised than the others. */
async function practise() {
  const elsewhere = await open()
  for (let turn = 0; turn < input.practice; turn++) for (const work of [ingress, dispatch]) await work(elsewhere)
  await elsewhere.heed.close()
}

await practise()
const world = await open()
await fill(world)
const { pending } = await world.inbox.countNotifications(targetOf(turns[0]))
expect('records of a thread', pending, Math.max(1, input.size / input.threads))
const work = { ingress, dispatch, look }
process.on('message', (what) => void work[what](world).then((answered) => process.send(answered)))
process.on('disconnect', () => process.exit())
process.send('ready')
