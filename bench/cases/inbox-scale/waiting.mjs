import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { median } from '../../harness/median.mjs'
import { expect, input } from '../../harness/side.mjs'
import { newDatabase } from '../../threads/database.mjs'
import { below, day, openInbox, practise, start, targetOf } from './inbox.mjs'

/** Fills an inbox, works with it a little, and says what it takes to have it. */
setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc')

/** To each thread in turn, in an order that no index has, as they would come; each record is due at another time. */
const turns = Array.from({ length: input.threads }, (_, index) => ({ index, at: below(2 ** 30) }))
  .toSorted((one, other) => one.at - other.at).map(({ index }) => index)

async function fill({ inbox, words }) {
  for (let from = 0; from < input.size; from += 1_000) {
    const now = Date.now()
    await inbox.ingest(Array.from({ length: Math.min(1_000, input.size - from) }, (_, index) => ({
      ...words('later'), ...targetOf(turns[(from + index) % input.threads]), id: `0-${String(from + index).padStart(10, '0')}`, agentId: 'listener', now, undecidedUntil: now,
      settlement: { action: 'defer', deliverAt: start + day + below(60 * day), now, claimUntil: now },
    })))
  }
  const { pending } = await inbox.countNotifications(targetOf(turns[0]))
  expect('records of a thread', pending, Math.max(1, input.size / input.threads))
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

await practise()
const url = newDatabase()
const world = await openInbox(url)
await fill(world)
for (let turn = 0; turn < input.warmup; turn++) {
  await world.ingress()
  await world.dispatch()
}
const looked = await look(world)
await world.heed.close()
process.send({ url, ...looked }, () => process.exit())
