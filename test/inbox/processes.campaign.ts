import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import type { NotificationStore, ThreadStore } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { Chance } from '../../src/store/conformance/fixture.ts'
import { notificationStoreOf } from '../../src/store/contract/storage.ts'

/** The long form: HEED_INBOX_RECORDS=10000 HEED_INBOX_KILLS=200. */
const total = Number(process.env.HEED_INBOX_RECORDS ?? 400)
const kills = Number(process.env.HEED_INBOX_KILLS ?? 6)
const patience = Math.max(60_000, total * 40, kills * 4_000)
const perThread = 20

const folder = mkdtempSync(join(tmpdir(), 'heed-inbox-'))
const children: ChildProcess[] = []
const stores: LibSQLStore[] = []
afterEach(async () => {
  await Promise.all(children.splice(0).map(kill))
  await Promise.all(stores.splice(0).map((store) => store.close()))
})
afterAll(() => rmSync(folder, { recursive: true }))

let files = 0
function open(): { path: string; store: ThreadStore; inbox: Promise<NotificationStore> } {
  const path = join(folder, `${files++}.db`)
  const store = new LibSQLStore({ url: `file:${path}` })
  stores.push(store)
  return { path, store, inbox: notificationStoreOf(store) as Promise<NotificationStore> }
}

function dispatcher(path: string, ahead = 0, step = 0, what: 'tell' | 'die' = 'tell'): ChildProcess {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'dispatcher-process.ts'), path, String(ahead), String(step), what], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  children.push(child)
  return child
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

type Threads = ReadonlyArray<{ threadId: string; resourceId: string }>

function threadsFrom(first: number, count: number): Threads {
  return Array.from({ length: count }, (_, index) => ({ threadId: `thread-${first + index}`, resourceId: 'user-1' }))
}

/** Records that are due: most in full, and of every thread some in a summary. */
async function fill(inbox: NotificationStore, some: Threads): Promise<void> {
  const now = Date.now()
  for (const thread of some) {
    const items = Array.from({ length: perThread }, (_, index) => ({ ...thread, id: `n-${index}`, agentId: 'support', source: `s${index % 3}`, kind: 'k', summary: `Event ${index}.`, now, undecidedUntil: now + 60_000 }))
    await inbox.ingest(items)
    await inbox.settle(items.map(({ id, threadId }, index) => (index % 4 === 0
      ? { threadId, id, action: 'summarize' as const, summary: { form: 'window' as const, quietMs: 0, maxWaitMs: 0 }, now, claimUntil: now }
      : { threadId, id, action: 'defer' as const, deliverAt: now, now, claimUntil: now })))
  }
}

async function missing(inbox: NotificationStore, some: Threads): Promise<number> {
  let left = 0
  for (const thread of some) {
    const { notifications } = await inbox.listNotifications({ ...thread, limit: perThread })
    left += notifications.filter(({ deliveredSignalId, summarySignalId }) => deliveredSignalId === undefined && summarySignalId === undefined).length
  }
  return left
}

/** Every thread has exactly the signals that its records name, once each, all of them answered. */
async function check(store: ThreadStore, inbox: NotificationStore, threads: Threads): Promise<void> {
  for (const thread of threads) {
    await expect.poll(async () => (await store.getThread(thread))?.status, { timeout: patience }).toBe('idle')
    const { notifications } = await inbox.listNotifications({ ...thread, limit: perThread })
    const named = new Set(notifications.flatMap(({ deliveredSignalId, summarySignalId }) => deliveredSignalId ?? summarySignalId ?? []))
    const { rows } = await store.listRows(thread, { limit: 1_000 })
    const signals = rows.filter(({ role }) => role === 'signal').map(({ id }) => id)
    expect(signals.toSorted()).toEqual([...named].toSorted())
    expect(named.size).toBe((perThread * 3) / 4 + 1)
    expect(rows.at(-1)?.role).toBe('assistant')
    expect(notifications.filter(({ status }) => status === 'delivered')).toHaveLength((perThread * 3) / 4)
  }
}

describe('notifying processes on one file', () => {
  it('[N1.1] one key at once from several of them is one record with the count of all', async () => {
    const { path, inbox } = open()
    await (await inbox).open()
    const writers = Array.from({ length: 3 }, () => {
      const child = spawn(process.execPath, [join(import.meta.dirname, 'notifying-process.ts'), path, 'ci:main'], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
      children.push(child)
      return child
    })
    await Promise.all(writers.map((child) => once(child, 'message')))
    await Promise.all(writers.map((child) => {
      const sent = once(child, 'message')
      child.send(Array.from({ length: 40 }, (_, index) => `Event ${index}.`))
      return sent
    }))
    const { notifications } = await (await inbox).listNotifications({ threadId: 'thread-1' })
    expect(notifications.map(({ coalescedCount }) => coalescedCount)).toEqual([120])
  }, patience)
})

describe('dispatching processes on one file', () => {
  it.each([2, 4])('[N2.1] %i of them deliver each record once', async (count) => {
    const { path, store, inbox } = open()
    const threads = threadsFrom(0, total / perThread)
    await fill(await inbox, threads)
    const running = Array.from({ length: count }, () => dispatcher(path))
    await Promise.all(running.map((child) => once(child, 'message')))
    await expect.poll(async () => missing(await inbox, threads), { timeout: patience, interval: 200 }).toBe(0)
    await check(store, await inbox, threads)
  }, patience * 2)

  it('[N2.1] [N2.3] killed in the middle of their work: none is lost, none is doubled, and records and history agree', async () => {
    const { path, store, inbox } = open()
    const chance = new Chance(Number(process.env.HEED_SEED ?? 7))
    const perRound = Math.max(1, Math.round(total / perThread / kills))
    let threads: Threads = []
    let ahead = 0
    let interrupted = 0
    let rounds = 0
    // Only a kill that left work of its own round undone counts.
    while (interrupted < kills) {
      expect(rounds++).toBeLessThan(kills * 2)
      const some = threadsFrom(threads.length, perRound)
      threads = [...threads, ...some]
      await fill(await inbox, some)
      // At a step it dies by itself, or a moment later by our hand. A minute later for the next one, so that what was taken is due again and the
      // dead are known to be dead.
      const what = rounds % 2 === 0 ? 'die' : 'tell'
      const child = dispatcher(path, (ahead += 60_000), 1 + chance.below(perRound * perThread), what)
      const exit = once(child, 'exit')
      if (what === 'tell') {
        await Promise.race([new Promise<void>((resolve) => child.on('message', (message) => message === 'there' && resolve())), exit])
        child.kill('SIGKILL')
      }
      expect(await exit).toEqual([null, 'SIGKILL'])
      if ((await missing(await inbox, some)) > 0) interrupted++
    }
    dispatcher(path, ahead + 60_000)
    await expect.poll(async () => missing(await inbox, threads), { timeout: patience, interval: 200 }).toBe(0)
    await check(store, await inbox, threads)
    if (process.env.HEED_INBOX_KILLS !== undefined) process.stdout.write(`${rounds} SIGKILLs, ${interrupted} of them with work undone; ${threads.length * perThread} records\n`)
  }, patience * 2)
})
