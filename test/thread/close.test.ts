import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { BusConnection } from '../../src/bus/contract.ts'
import { Agent, createTool, InMemoryStore, silentLogger, type ThreadStore } from '../../src/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { openHeed, sharedPlaceKinds } from './places.ts'
import { collect, gate, isType, readUntil, soon } from './said.ts'
import { kept, told } from './transcript.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }
const memory = { thread: thread.threadId, resource: thread.resourceId }
const source = (path: string) => JSON.stringify(join(import.meta.dirname, '../../src', path))

describe.each(sharedPlaceKinds())('closing, $name', ({ make }) => {
  it('before the first call rejects later calls', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Hello.'], { loop: true }) })
    const place = make()
    const heed = openHeed({ agent }, place.store())
    await heed.close()
    const late = agent.sendMessage('late', thread)
    expect(await late.outcome).toMatchObject({ action: 'rejected', code: 'closed' })
    await expect(agent.generate('late', { memory })).rejects.toMatchObject({ code: 'closed' })
    await expect(agent.subscribeToThread(thread)).rejects.toMatchObject({ code: 'closed' })
    await expect(heed.start()).rejects.toMatchObject({ code: 'closed' })
    await expect(heed.tick()).rejects.toMatchObject({ code: 'closed' })
    const next = new Agent({ id: 'guide', model: scriptedModel([]) })
    openHeed({ agent: next }, place.store())
    expect(await next.listActiveThreads()).toEqual([])
  })

  it('[A4.1] resolves sends that are stored; rejected sends are not stored', async () => {
    const place = make()
    const keeper = place.store()
    await keeper.open()
    for (let moment = 0; moment < 12; moment++) {
      const agent = new Agent({ id: 'guide', model: scriptedModel([{ text: 'Long', hang: true }], { loop: true }) })
      const heed = openHeed({ agent }, place.store())
      await heed.start()
      const receipts = Array.from({ length: 4 }, (_, index) => agent.sendMessage({ contents: 'Go.', id: `${moment}-${index}` }, thread))
      const stored = receipts.map((receipt) => receipt.stored.then(() => true, () => false))
      for (let turn = 0; turn < moment; turn++) await Promise.resolve()
      await heed.close()
      for (const [index, receipt] of receipts.entries()) {
        const there = (await keeper.listSignals(thread).catch(() => [])).some(({ id }) => id === `${moment}-${index}`)
        expect([await stored[index], (await receipt.outcome).action === 'rejected']).toEqual([there, !there])
      }
    }
    await keeper.close()
  })

  it('settles awaited promises, ends subscriptions, and rejects later calls', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel([{ text: 'Long', hang: true }]) })
    const place = make()
    const heed = openHeed({ agent }, place.store())
    const watcher = await agent.subscribeToThread(thread)
    const idleWatcher = await agent.subscribeToThread({ ...thread, threadId: 'thread-2' })
    const seen = collect(watcher)
    const nothing = collect(idleWatcher)
    await agent.sendMessage('Go.', thread).outcome
    const steer = agent.sendMessage('steer', thread)
    const turn = agent.queueMessage('turn', thread)
    const call = agent.generate('call', { memory })
    const refused = expect(call).rejects.toMatchObject({ code: 'closed' })
    await soon(async () => (await agent.listQueued(thread)).length).toBe(3)
    const stream = await agent.stream('another', { memory })
    const cut = expect(stream.text).rejects.toMatchObject({ code: 'closed' })

    await Promise.all([heed.close(), heed.close()])
    expect(await steer.outcome).toEqual({ action: 'queued', reason: 'closed' })
    expect(await turn.outcome).toMatchObject({ action: 'queued' })
    await refused
    await cut
    await seen.done
    await nothing.done
    expect(seen.chunks.filter(isType('finish', 'abort', 'error'))).toEqual([])

    const late = agent.sendMessage('late', thread)
    expect(await late.outcome).toMatchObject({ action: 'rejected', code: 'closed' })
    await expect(late.stored).rejects.toMatchObject({ code: 'closed' })
    await expect(agent.generate('late', { memory })).rejects.toMatchObject({ code: 'closed' })
    await expect(agent.subscribeToThread(thread)).rejects.toMatchObject({ code: 'closed' })
    await expect(agent.activeRun(thread)).rejects.toMatchObject({ code: 'closed' })
    await expect(agent.listQueued(thread)).rejects.toMatchObject({ code: 'closed' })
    await expect(agent.sendToolApproval({ ...thread, approved: true })).rejects.toMatchObject({ code: 'closed' })
    await expect(heed.tick()).rejects.toMatchObject({ code: 'closed' })

    const model = scriptedModel(['Answered.'], { loop: true })
    const next = new Agent({ id: 'guide', model })
    const second = openHeed({ agent: next }, place.store())
    await second.start()
    await soon(async () => (await next.activeRun(thread)) === null && (await next.listQueued(thread)).length === 0).toBe(true)
    // The steer enters the run that goes on, the turn has its own; the callers are gone and their calls with them.
    expect(model.callCount).toBe(3)
  })

  it('leaves no timer behind', async () => {
    const clock = virtualClock()
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Answer.']) })
    const heed = openHeed({ agent }, make({ clock }).store(), { clock })
    const watcher = await agent.subscribeToThread(thread)
    agent.sendMessage('Go.', thread)
    await readUntil(watcher.stream, isType('finish'))
    expect(clock.pending).toBeGreaterThan(0)
    await heed.close()
    expect(clock.pending).toBe(0)
  })

  it('does not wait for a tool or a setup that never settles', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel([{ toolCalls: [{ toolName: 'stuck' }] }]), tools: { stuck: createTool({ id: 'stuck', execute: () => new Promise(() => {}) }) } })
    const silent = new Agent({ id: 'silent', model: () => new Promise(() => {}) })
    const heed = openHeed({ agent, silent }, make().store())
    const watcher = await agent.subscribeToThread(thread)
    agent.sendMessage('Go.', thread)
    await silent.sendMessage('Go.', { ...thread, threadId: 'thread-2' }).outcome
    await readUntil(watcher.stream, isType('tool-call'))
    await heed.close()
  })

  it.each([
    { name: 'memory', config: (wait: () => Promise<never>) => ({ memory: wait }) },
    { name: 'defaultOptions', config: (wait: () => Promise<never>) => ({ defaultOptions: wait }) },
  ])('[A4.1] settles sends, calls and subscriptions for which the function $name never settles', async ({ config }) => {
    const waits = Promise.withResolvers<void>()
    const agent = new Agent({ id: 'guide', model: scriptedModel([]), ...config(() => (waits.resolve(), new Promise(() => {}))) })
    const heed = openHeed({ agent }, make().store())
    const receipt = agent.sendMessage('Go.', thread)
    const state = agent.sendStateSignal({ id: 'editor', mode: 'snapshot', cacheKey: '1', contents: 'open' }, thread).then(() => 'stored', ({ code }) => code as string)
    const call = agent.generate('Go.', { memory }).then(() => 'answered', ({ code }) => code as string)
    await waits.promise
    await heed.close()
    expect(await receipt.outcome).toMatchObject({ action: 'rejected', code: 'closed' })
    await expect(receipt.stored).rejects.toMatchObject({ code: 'closed' })
    expect([await state, await call]).toEqual(['closed', 'closed'])
  })

  it('does not wait for a schedule whose agent has a function that never settles', async () => {
    const clock = virtualClock()
    const due = Promise.withResolvers<void>()
    let isDue = false
    const agent = new Agent({ id: 'guide', model: scriptedModel([]), defaultOptions: () => (isDue ? (due.resolve(), new Promise(() => {})) : {}) })
    const heed = openHeed({ agent }, make({ clock }).store(), { clock })
    await agent.schedule({ message: 'Go.', every: 1_000, ...thread })
    isDue = true
    await Promise.all([clock.advance(1_000), due.promise])
    await heed.close()
  })

  it('[R11.4] is done for all who wait for it when it is done', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel([{ text: 'Long', hang: true }]) })
    const heed = openHeed({ agent }, make().store())
    await agent.sendMessage('Go.', thread).outcome
    const done: string[] = []
    await Promise.all([heed.close().then(() => done.push('first')), heed.close().then(() => done.push('second'))])
    expect(done).toEqual(['first', 'second'])
  })
})

describe('a Heed', () => {
  it('tries again to open a store that could not be opened', async () => {
    let fails = true
    class Moody extends InMemoryStore {
      override async open() {
        if (fails) throw new Error('not yet')
      }
    }
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Answer.']) })
    openHeed({ agent }, new Moody())
    expect(await agent.sendMessage('Go.', thread).outcome).toMatchObject({ action: 'rejected', reason: 'not yet' })
    fails = false
    expect(await agent.sendMessage('Go.', thread).outcome).toMatchObject({ action: 'woke' })
  })

  it('continues a thread after a store failure, and subscribers restart from a snapshot', async () => {
    const clock = virtualClock()
    const stopped = gate()
    let broken = false
    class Flaky extends InMemoryStore {
      override async commitStep(...given: Parameters<InMemoryStore['commitStep']>) {
        if (broken) throw new Error('disk full')
        return super.commitStep(...given)
      }
    }
    const said = gate()
    const model = scriptedModel((call) => (call.index === 0 ? { text: ['Half', ' said'], gate: { parts: 2, until: said.promise } } : 'Whole.'))
    const agent = new Agent({ id: 'guide', model })
    openHeed({ agent }, new Flaky({ clock }), { clock, logger: { ...silentLogger, error: stopped.open } })
    const watcher = await agent.subscribeToThread(thread)
    const reader = watcher.stream[Symbol.asyncIterator]()
    await agent.sendMessage('Go.', thread).outcome
    await readUntil(reader, isType('text-delta'))
    broken = true
    said.open()
    await stopped.promise
    broken = false
    await clock.advance(1_000)
    const chunks = await readUntil(reader, isType('finish'))
    const snapshot = chunks.findIndex(isType('data-thread-snapshot'))
    expect(chunks[snapshot]).toMatchObject({ data: { reason: 'resumed' } })
    const { messages } = await (await agent.getMemory()).recall(thread)
    expect(kept(messages).at(-1)).toBe('text Whole.')
    expect(told(chunks)).toEqual(kept(messages))
  })

  it('lets the process end by itself once it is closed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'heed-close-'))
    try {
      const script = `
        import { Agent, Heed } from ${source('index.ts')}
        import { LibSQLStore } from ${source('store/sqlite/index.ts')}
        import { scriptedModel } from ${source('testing/index.ts')}
        const agent = new Agent({ id: 'guide', model: scriptedModel(['Answer.', { text: 'Long', hang: true }]) })
        const heed = new Heed({ agents: { agent }, storage: new LibSQLStore({ url: 'file:' + process.cwd() + '/heed.db' }) })
        const thread = { resourceId: 'user-1', threadId: 'thread-1' }
        const watcher = await agent.subscribeToThread(thread)
        const watching = (async () => { for await (const chunk of watcher.stream) if (chunk.type === 'finish') console.log('finished') })()
        await agent.sendMessage('Go.', thread).stored
        while (await agent.activeRun(thread)) await new Promise(setImmediate)
        await agent.sendMessage('Again.', thread).outcome
        await heed.close()
        await watching
        console.log('closed')
      `
      const child = spawn(process.execPath, ['--input-type=module', '--eval', script], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
      let output = ''
      child.stdout.on('data', (data) => (output += String(data)))
      child.stderr.on('data', (data) => (output += String(data)))
      const code = await new Promise((resolve) => child.on('close', resolve))
      expect({ code, output }).toEqual({ code: 0, output: 'finished\nclosed\n' })
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})

it('[R11.4] closing does not wait for a bus that does not answer', async () => {
  const clock = virtualClock()
  const inner = new InMemoryStore({ clock })
  const never = new Promise<void>(() => {})
  let polls = 0
  const connection: BusConnection = {
    hasPeers: true, send() {}, flush: () => Promise.resolve(), poll: () => (polls++, never), close: () => Promise.resolve(),
  }
  const store = new Proxy<ThreadStore>(inner, {
    get(target, key) {
      if (key === 'bus') return () => ({ connect: () => Promise.resolve(connection) })
      const value: unknown = Reflect.get(target, key)
      return typeof value === 'function' ? (value as () => unknown).bind(target) : value
    },
  })
  const warnings: string[] = []
  const agent = new Agent({ id: 'guide', model: scriptedModel(['Hello.']) })
  const heed = openHeed({ agent }, store, { clock, logger: { ...silentLogger, warn: (message) => void warnings.push(message) } })
  await heed.start()
  await agent.sendMessage('Hello?', thread).stored
  await soon(() => polls).toBeGreaterThan(0)
  // The clock does not move: neither the limit of the bus nor that of the close is reached.
  await heed.close()
  expect(warnings).toEqual([])
})
