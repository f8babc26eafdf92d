import { expect, it, vi } from 'vitest'
import { z } from 'zod'
import { LocalBus } from '../../src/bus/local.ts'
import { Agent, createTool, Heed, silentLogger, type Bus, type Chunk, type ThreadSnapshot } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { newFile } from '../new-file.ts'
import { isType, readUntil, soon, types } from '../thread/said.ts'

/** A connection to a bus whose `poll` does not resolve before the gate is open. */
function slowToPoll(bus: Bus, gate: Promise<void>): { bus: Bus; polls: () => number } {
  let polls = 0
  const connect: Bus['connect'] = async (options) => {
    const connection = await bus.connect(options)
    return {
      get hasPeers() {
        return connection.hasPeers
      },
      send: (message, to) => connection.send(message, to),
      flush: () => connection.flush(),
      async poll() {
        polls++
        await gate
        await connection.poll()
      },
      close: () => connection.close(),
    }
  }
  return { bus: { connect }, polls: () => polls }
}

it('[W2.2] the echo of a persisted signal that is published late takes no cursor of a run that another process began since', async () => {
  const thread = { resourceId: 'user-1', threadId: 'main' }
  const file = newFile()
  const shared = new LocalBus()
  const [gate, work] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const slow = slowToPoll(shared, gate.promise)
  const wait = createTool({ id: 'wait', description: 'Waits.', inputSchema: z.object({}), execute: () => work.promise.then(() => 'done') })
  const process = (bus: Bus) => {
    const model = scriptedModel([{ toolCalls: [{ toolName: 'wait', input: {} }] }, 'Done.'])
    const agent = new Agent({ id: 'guide', model, tools: { wait } })
    return { agent, heed: new Heed({ agents: { agent }, storage: new LibSQLStore({ url: `file:${file}` }), bus, logger: silentLogger }) }
  }
  const [runner, sender] = [process(shared), process(slow.bus)]
  try {
    await Promise.all([runner.heed.start(), sender.heed.start()])
    const [near, far] = [await runner.agent.subscribeToThread(thread), await sender.agent.subscribeToThread(thread)]
    const before = slow.polls()
    sender.agent.sendMessage('Late.', { ...thread, ifIdle: { behavior: 'persist' } })
    await soon(() => slow.polls() > before).toBe(true)
    runner.agent.sendMessage('Go.', thread)
    const ofSender: Chunk[] = []
    const reading = readUntil(far.stream, (chunk) => ofSender.push(chunk) > 0 && chunk.type === 'finish')
    await soon(() => ofSender.some(({ type }) => type === 'tool-call')).toBe(true)
    gate.resolve()
    // Publications wait for the same poll in their order: when this echo is published, so is the other.
    const other = { ...thread, threadId: 'other' }
    const later = await sender.agent.subscribeToThread(other)
    sender.agent.sendMessage('Later.', { ...other, ifIdle: { behavior: 'persist' } })
    await readUntil(later.stream, isType('data-user-message'))
    work.resolve()
    const ofRunner = await readUntil(near.stream, isType('finish'))
    await reading
    const log = (chunks: readonly Chunk[]) =>
      chunks.filter(({ type, cursor }) => type !== 'data-thread-snapshot' && cursor?.startsWith('2.')).map(({ cursor, type }) => [cursor, type])
    expect(log(ofSender)).toEqual(log(ofRunner))
    // The signal is in history before the run: a snapshot has it.
    expect(JSON.stringify(ofSender.filter(({ type }) => type === 'data-thread-snapshot'))).toContain('Late.')
  } finally {
    gate.resolve()
    work.resolve()
    await Promise.all([runner.heed.close(), sender.heed.close()])
  }
})

it('[W1.1] [W1.2] a snapshot of a run that the stream does not have yet leaves its input to the stream, also for one who returns elsewhere', async () => {
  const thread = { resourceId: 'user-1', threadId: 'main' }
  const file = newFile()
  const shared = new LocalBus()
  const gate = Promise.withResolvers<void>()
  const slow = slowToPoll(shared, gate.promise)
  const process = (bus: Bus) => {
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Done.']) })
    return { agent, heed: new Heed({ agents: { agent }, storage: new LibSQLStore({ url: `file:${file}` }), bus, logger: silentLogger }) }
  }
  const [runner, near, far] = [process(slow.bus), process(shared), process(shared)]
  try {
    await Promise.all([runner.heed.start(), near.heed.start(), far.heed.start()])
    await near.agent.subscribeToThread(thread)
    await near.agent.sendMessage({ id: 'before', contents: 'Earlier.' }, { ...thread, ifIdle: { behavior: 'persist' } }).outcome
    // The store begins the run with the send. Its process has to poll before it publishes the first chunk of it.
    const before = slow.polls()
    await runner.agent.sendMessage({ id: 'go', contents: 'Go.' }, thread).stored
    await soon(() => slow.polls() > before).toBe(true)
    await runner.agent.sendMessage({ id: 'beside', contents: 'Beside.' }, { ...thread, ifActive: { behavior: 'persist' } }).outcome

    const first = await near.agent.subscribeToThread({ ...thread, snapshot: true })
    const [snapshot] = await readUntil(first.stream, isType('data-thread-snapshot'))
    const ids = (snapshot as unknown as { data: ThreadSnapshot } | undefined)?.data.messages.map(({ id }) => id) ?? []
    first.unsubscribe()
    const second = await far.agent.subscribeToThread({ ...thread, after: snapshot?.cursor ?? '' })
    gate.resolve()
    const chunks = await readUntil(second.stream, isType('finish'))
    const echoed = chunks.flatMap((chunk) => (chunk.type === 'data-user-message' ? [(chunk.data as { id: string }).id] : []))
    // Each message once: in the snapshot, or after it.
    expect([...ids, ...echoed].toSorted()).toEqual(['before', 'beside', 'go'])
    expect(types(chunks)).toContain('start')
  } finally {
    gate.resolve()
    await Promise.all([runner, near, far].map(({ heed }) => heed.close()))
  }
})

/** A connection to a bus that keeps the events of its peers back until the gate is open. */
function lateEvents(bus: Bus, gate: Promise<void>): Bus {
  return {
    connect: (options) => bus.connect({
      ...options,
      handler: new Proxy(options.handler, {
        get: (handler, name) => name !== 'onMessage'
          ? Reflect.get(handler, name, handler)
          : (...args: Parameters<typeof handler.onMessage>) => {
            if (args[0].kind === 'events') void gate.then(() => handler.onMessage(...args))
            else handler.onMessage(...args)
          },
      }),
    }),
  }
}

it('[W1.2] a snapshot of a run that ended before its first chunk arrived is followed by none of its chunks', async () => {
  const thread = { resourceId: 'user-1', threadId: 'main' }
  const file = newFile()
  const shared = new LocalBus()
  const [begin, arrival] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const process = (bus: Bus) => {
    const storage = new LibSQLStore({ url: `file:${file}` })
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Done.', 'Again.']) })
    return { agent, storage, heed: new Heed({ agents: { agent }, storage, bus, logger: silentLogger }) }
  }
  const [runner, far] = [process(shared), process(lateEvents(shared, arrival.promise))]
  try {
    await Promise.all([runner.heed.start(), far.heed.start()])
    const { storage } = runner
    const beginRun = storage.beginRun.bind(storage)
    const begins = vi.spyOn(storage, 'beginRun').mockImplementation(async (...args) => {
      await begin.promise
      return beginRun(...args)
    })
    const answer = runner.agent.generate('Go.', { memory: { thread: thread.threadId, resource: thread.resourceId } })
    await soon(() => begins.mock.calls.length).toBe(1)
    // The runner answers that the epoch has begun, and has no chunk of it yet.
    const subscription = await far.agent.subscribeToThread({ ...thread, snapshot: true })
    begin.resolve()
    await answer
    const chunks: Chunk[] = []
    const reading = readUntil(subscription.stream, (chunk) => chunks.push(chunk) > 0 && chunk.type === 'text-delta' && chunk.payload.text === 'Again.')
    await soon(() => chunks.length).toBe(1)
    expect(JSON.stringify(chunks[0])).toContain('Done.')
    arrival.resolve()
    await runner.agent.sendMessage('Once more.', thread).outcome
    await reading
    expect(chunks.filter((chunk) => chunk.type === 'text-delta').map((chunk) => chunk.payload.text)).toEqual(['Again.'])
  } finally {
    begin.resolve()
    arrival.resolve()
    await Promise.all([runner.heed.close(), far.heed.close()])
  }
})
