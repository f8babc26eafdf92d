import { importHeed, input, stopwatch } from '../../harness/side.mjs'
import { instantModel, textParts } from '../../instant-model.mjs'
import { newDatabase } from '../../threads/database.mjs'

const { Agent, Heed } = await importHeed()
const { LibSQLStore } = await importHeed('libsql')
export const day = 86_400_000
export const start = Date.now()
const answer = textParts(1)
const later = { action: 'defer', deliverAt: new Date(start + 90 * day) }
const due = { action: 'defer', deliverAt: new Date(start) }

/** The same numbers each time, without a pattern that an index would like. */
let seed = 7
export function below(limit) {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
  return seed % limit
}

export function targetOf(index) {
  return { threadId: `thread-${index}`, resourceId: `resource-${index}` }
}

/** A Heed on a database. Its events are numbered from `first` on. */
export async function openInbox(url, first = 0) {
  const agent = new Agent({ id: 'listener', instructions: 'You answer.', model: instantModel(() => answer), notifications: { deliveryPolicy: { sources: { later, due } } } })
  const storage = new LibSQLStore({ url })
  const heed = new Heed({ agents: { agent }, storage, notifications: { dispatch: { enabled: false } } })
  await heed.start()
  let sent = first
  let woken = 0
  const inbox = await storage.getStore('notifications')
  const words = (source) => ({ source, kind: 'ci-status', summary: `CI failed on branch ${sent}: someone should look at it when there is time.`, dedupeKey: `ci:${sent}`, payload: { number: sent++ } })
  return {
    heed, inbox, words,

    /** To any of the threads. */
    async ingress() {
      const stop = stopwatch()
      await inLanes(input.ingress, () => agent.sendNotificationSignal(words('later'), targetOf(below(input.threads))))
      return stop()
    },

    /** Threads of their own for each, one after the other, so that each is idle. */
    async dispatch() {
      const targets = Array.from({ length: input.due }, () => targetOf(woken++ % input.threads))
      await inLanes(input.due, (index) => agent.sendNotificationSignal(words('due'), targets[index]))
      const stop = stopwatch()
      for (let done = 0; done < input.due;) {
        const { notifications } = await heed.tick({ limit: 100 })
        if (notifications === 0) throw new Error(`nothing is due after ${done}`)
        done += notifications
      }
      for (const target of targets) while ((await storage.getThread(target))?.status !== 'idle') await new Promise(setImmediate)
      return stop()
    },
  }
}

/** Elsewhere, so that what the engine makes of a program that runs for long is made of it before anything is measured. */
export async function practise() {
  const elsewhere = await openInbox(newDatabase())
  for (let turn = 0; turn < input.practice; turn++) {
    await elsewhere.ingress()
    await elsewhere.dispatch()
  }
  await elsewhere.heed.close()
}

async function inLanes(count, work) {
  let next = 0
  const lane = async () => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: 50 }, lane))
}
