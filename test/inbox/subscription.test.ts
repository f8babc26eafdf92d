import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, it } from 'vitest'
import { Agent, type InboxChange, type InboxSubscription } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { fileKind, openHeed, placeKinds } from '../thread/places.ts'
import { idle, soon } from '../thread/said.ts'
import { ci, openWorld, thread } from './world.ts'

/** Reads everything, in the background. */
function collectChanges({ stream }: InboxSubscription): { changes: InboxChange[]; seen(): string[]; done: Promise<void> } {
  const changes: InboxChange[] = []
  const done = (async () => {
    for await (const change of stream) changes.push(change)
  })()
  return { changes, seen: () => changes.map(({ record }) => `${record.summary} ${record.status}`), done }
}

const folder = mkdtempSync(join(tmpdir(), 'heed-inbox-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const kept = { notifications: { deliveryPolicy: { default: 'persist' as const } } }

describe.each(placeKinds())('a subscription to an inbox, $name', ({ make }) => {
  it('[N4.2] a reader whose look fails is over, and another goes on from its cursor', async () => {
    const { agent, inbox } = await openWorld(make, kept)
    const subscription = await agent.subscribeToInbox(thread)
    const reader = subscription.stream[Symbol.asyncIterator]()
    await agent.sendNotificationSignal({ ...ci, summary: 'One.' }, thread)
    const first = await reader.next()
    const list = inbox.listChanges.bind(inbox)
    inbox.listChanges = () => Promise.reject(new Error('disk is gone'))
    await expect(reader.next()).rejects.toThrow('disk is gone')
    inbox.listChanges = list
    await agent.sendNotificationSignal({ ...ci, summary: 'Two.' }, thread)
    expect(await reader.next()).toEqual({ done: true, value: undefined })
    const { seen } = collectChanges(await agent.subscribeToInbox({ ...thread, after: (first.value as InboxChange).cursor }))
    await soon(seen).toEqual(['Two. pending'])
  })

  it('[N4.1] shows what changes: new, delivered, marked through the store', async () => {
    const { agent, inbox } = await openWorld(make)
    await agent.sendNotificationSignal({ ...ci, summary: 'Before.' }, thread)
    await idle(agent, thread)
    const { seen, changes } = collectChanges(await agent.subscribeToInbox(thread))
    const { record } = await agent.sendNotificationSignal({ ...ci, summary: 'One.' }, thread)
    await soon(() => seen().at(-1)).toBe('One. delivered')
    await inbox.markNotifications(thread, [record.id], 'archived', Date.now())
    await soon(() => seen().at(-1)).toBe('One. archived')
    expect(changes.every(({ record: { id } }) => id === record.id)).toBe(true)
  })

  it('[N4.1] goes on after a cursor with what changed since, each record once', async () => {
    const { agent } = await openWorld(make, kept)
    const first = await agent.subscribeToInbox({ resourceId: thread.resourceId })
    const { changes } = collectChanges(first)
    await agent.sendNotificationSignal({ ...ci, summary: 'One.' }, thread)
    await soon(() => changes.at(-1)?.record.deliveryAction).toBe('persist')
    first.unsubscribe()
    const after = changes.at(-1)?.cursor ?? ''
    await agent.sendNotificationSignal(Array.from({ length: 250 }, (_, index) => ({ ...ci, summary: `Missed ${index}.` })), thread)
    const { seen } = collectChanges(await agent.subscribeToInbox({ ...thread, after }))
    await soon(() => seen().length).toBe(250)
    expect(seen()).toEqual(Array.from({ length: 250 }, (_, index) => `Missed ${index}. pending`))
  })

  it('[N4.2] one that does not read holds nothing and slows no other; it ends with itself, with a break, and with its Heed', async () => {
    const { agent, heed } = await openWorld(make, kept)
    const slow = (await agent.subscribeToInbox(thread)).stream[Symbol.asyncIterator]()
    for (let index = 0; index < 20; index++) await agent.sendNotificationSignal({ ...ci, summary: 'The same.', coalesceKey: 'k' }, thread)
    expect(await slow.next()).toMatchObject({ value: { record: { coalescedCount: 20 } } })
    const waiting = slow.next()
    expect(await slow.return?.()).toEqual({ done: true, value: undefined })
    expect(await waiting).toEqual({ done: true, value: undefined })
    const own = await agent.subscribeToInbox(thread)
    const ended = collectChanges(own)
    own.unsubscribe()
    await ended.done
    const all = collectChanges(await agent.subscribeToInbox(thread))
    await heed.close()
    await all.done
    expect(all.changes).toEqual([])
  })

  it('[N4.3] sees its resource and its thread, and refuses by name what is no scope', async () => {
    const { agent } = await openWorld(make, kept)
    const mine = collectChanges(await agent.subscribeToInbox(thread))
    const whole = collectChanges(await agent.subscribeToInbox({ resourceId: thread.resourceId }))
    await agent.sendNotificationSignal({ ...ci, summary: 'Elsewhere.' }, { resourceId: 'user-2', threadId: 'thread-2' })
    await agent.sendNotificationSignal({ ...ci, summary: 'Beside.' }, { ...thread, threadId: 'thread-3' })
    await agent.sendNotificationSignal({ ...ci, summary: 'Here.' }, thread)
    await soon(() => new Set(whole.seen())).toEqual(new Set(['Beside. pending', 'Here. pending']))
    await soon(() => new Set(mine.seen())).toEqual(new Set(['Here. pending']))
    const field = (options: object) => agent.subscribeToInbox(options as never).then(() => undefined, (error: { details?: { field?: string } }) => error.details?.field)
    expect(await field({})).toBe('resourceId')
    expect(await field({ ...thread, threadId: 3 })).toBe('threadId')
    expect(await field({ ...thread, after: 'yesterday' })).toBe('after')
    expect(await field({ ...thread, since: '1' })).toBe('since')
  })
})

describe('a subscription to an inbox that others write to', () => {
  it('[N4.1] receives what another store on the file accepted, by a notification and not by the clock', async () => {
    const place = fileKind().make()
    const other = () => new Agent({ id: 'support', model: scriptedModel(() => 'Noted.'), ...kept })
    const [watching, writing] = [other(), other()]
    await openHeed({ watching }, place.store()).start()
    await openHeed({ writing }, place.store()).start()
    const { seen } = collectChanges(await watching.subscribeToInbox(thread))
    await writing.sendNotificationSignal(ci, thread)
    await soon(() => new Set(seen())).toEqual(new Set([`${ci.summary} pending`]))
  })

  it('[N4.1] finds what is its own behind millions of changes of others, and lets others go on meanwhile', async () => {
    const path = join(folder, 'far.db')
    const agent = new Agent({ id: 'support', model: scriptedModel(() => 'Noted.'), ...kept })
    const heed = openHeed({ agent }, new LibSQLStore({ url: `file:${path}` }))
    await agent.sendNotificationSignal({ ...ci, summary: 'Before.' }, thread)
    const database = new DatabaseSync(path, { timeout: 60_000 })
    database.exec('UPDATE heed_notification_changes SET last = last + 5000000')
    database.close()
    await agent.sendNotificationSignal({ ...ci, summary: 'After.' }, thread)
    let turns = 0
    const turn = () => {
      turns += 1
      immediate = setImmediate(turn)
    }
    let immediate = setImmediate(turn)
    const { seen } = collectChanges(await agent.subscribeToInbox({ ...thread, after: '0.0' }))
    await soon(() => seen()).toEqual(['Before. pending', 'After. pending'])
    clearImmediate(immediate)
    expect(turns).toBeGreaterThan(15)
    await heed.close()
  })

  it('[N4.1] sees every change of another process, in order and each once, also what came while it was away', async () => {
    const path = join(folder, 'shared.db')
    const child = spawn(process.execPath, [join(import.meta.dirname, 'notifying-process.ts'), path], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    await once(child, 'message')
    const tell = async (...words: string[]) => {
      child.send(words)
      await once(child, 'message')
    }
    const watching = new Agent({ id: 'support', model: scriptedModel(() => 'Noted.'), ...kept })
    const heed = openHeed({ watching }, new LibSQLStore({ url: `file:${path}` }))
    await heed.start()
    const numbered = (from: number, count: number) => Array.from({ length: count }, (_, index) => `Event ${from + index}.`)
    const first = await watching.subscribeToInbox(thread)
    const before = collectChanges(first)
    for (const word of numbered(0, 20)) await tell(word)
    await soon(() => before.seen()).toEqual(numbered(0, 20).map((word) => `${word} pending`))
    first.unsubscribe()
    await before.done
    await tell(...numbered(20, 150))
    const after = before.changes.at(-1)?.cursor ?? ''
    const since = collectChanges(await watching.subscribeToInbox({ ...thread, after }))
    await tell(...numbered(170, 30))
    await soon(() => since.seen()).toEqual(numbered(20, 180).map((word) => `${word} pending`))
    const gone = once(child, 'exit')
    child.disconnect()
    expect(await gone).toEqual([0, null])
  })
})
