import { describe, expect, it, vi } from 'vitest'
import type { Clock } from '../../src/base/clock.ts'
import { Agent, createTool, InMemoryStore, type Processor } from '../../src/index.ts'
import type { StepCommit, ThreadStore } from '../../src/store/contract/threads.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { faulty, first, unavailable } from './faulty-store.ts'
import { openHeed, sharedPlaceKinds } from './places.ts'
import { gate, idle, soon } from './said.ts'

const thread = { threadId: 't', resourceId: 'u' }

/** A guardrail that holds the end of each run until it is opened. */
function holding(): { guard: Processor; hold: ReturnType<typeof gate>; held: () => number } {
  const hold = gate()
  let calls = 0
  return {
    hold,
    held: () => calls,
    guard: {
      id: 'guard',
      async processOutputResult() {
        calls++
        await hold.promise
      },
    },
  }
}

describe('[R8.7] the answer of an abort', () => {
  it('is that of the commit that ended the run, and clears what is pending where the run ended by itself', async () => {
    const { store, on } = faulty(new InMemoryStore())
    const model = scriptedModel(['One.', 'Two.'])
    const agent = new Agent({ id: 'a', model })
    openHeed({ agent }, store)
    const ending = gate()
    const arrived = gate()
    on('commitStep', ([, commit]) => {
      if (!(commit as StepCommit).end) return undefined
      arrived.open()
      return ending.promise
    })
    const { signal } = agent.sendMessage('One', thread)
    await arrived.promise
    const queued = agent.queueMessage('Two', thread)
    await queued.stored
    const aborting = agent.abortRun({ ...thread, clearPendingSignals: true })
    await soon(() => agent.activeRun(thread)).not.toBeNull()
    ending.open()
    expect(await aborting).toMatchObject({ aborted: false })
    await idle(agent, thread)
    expect(model.callCount).toBe(1)
    expect(await agent.explain({ ...thread, signalId: signal.id })).toMatchObject({ run: { status: 'finished' } })
    expect(await agent.explain({ ...thread, signalId: queued.signal.id })).toMatchObject({ state: 'cancelled' })
  })

  it('is true for each caller while a guardrail holds the end', async () => {
    const { guard, hold, held } = holding()
    const model = scriptedModel([{ text: ['a ', 'b ', 'c'], gate: { parts: 2, until: new Promise(() => {}) } }])
    const agent = new Agent({ id: 'a', model, outputProcessors: [guard] })
    openHeed({ agent }, new InMemoryStore())
    await agent.sendMessage('One', thread).outcome
    await soon(() => model.callCount).toBe(1)
    const one = agent.abortRun(thread)
    await soon(held).toBe(1)
    const two = agent.abortRun(thread)
    hold.open()
    expect(await Promise.all([one, two])).toMatchObject([{ aborted: true }, { aborted: true }])
  })

  it('comes after what is pending was cleared, however long that takes', async () => {
    const clock = virtualClock()
    const { store, on } = faulty(new InMemoryStore({ clock }))
    const model = scriptedModel(['One.', 'Two.'])
    const agent = new Agent({ id: 'a', model })
    openHeed({ agent }, store, { clock })
    const [ending, arrived, clearing] = [gate(), gate(), gate()]
    on('commitStep', ([, commit]) => {
      if (!(commit as StepCommit).end) return undefined
      arrived.open()
      return ending.promise
    })
    on('cancelSignals', () => clearing.promise)
    agent.sendMessage('One', thread)
    await arrived.promise
    const queued = agent.queueMessage('Two', thread)
    await queued.stored
    let answered = false
    const aborting = agent.abortRun({ ...thread, clearPendingSignals: true }).finally(() => (answered = true))
    await soon(() => agent.activeRun(thread)).not.toBeNull()
    ending.open()
    await soon(async () => (await agent.explain({ ...thread, signalId: queued.signal.id }))?.run?.status).toBeUndefined()
    for (let seconds = 0; seconds < 5; seconds++) await clock.advance(1_000)
    expect(answered).toBe(false)
    clearing.open()
    expect(await aborting).toMatchObject({ aborted: false })
    expect(await agent.explain({ ...thread, signalId: queued.signal.id })).toMatchObject({ state: 'cancelled' })
  })

  it.each(['the check of an answer', 'the check of a step with calls'])('[R8.2] is true where %s is held and a signal waits to enter', async (where) => {
    let checks = 0
    const guard: Processor = {
      id: 'guard',
      processOutputResult: () => (++checks === 1 ? new Promise(() => {}) : undefined),
    }
    const step = where === 'the check of an answer' ? 'One.' : { toolCalls: [{ toolName: 'look', input: {} }] }
    const model = scriptedModel([step, 'Two.'])
    const waiting = gate()
    const look = createTool({ id: 'look', description: 'Looks.', execute: () => waiting.promise })
    const agent = new Agent({ id: 'a', model, tools: { look }, outputProcessors: [guard] })
    const logger = { debug() {}, info() {}, warn: vi.fn(), error: vi.fn() }
    openHeed({ agent }, new InMemoryStore(), { logger })
    const one = await agent.sendMessage('One', thread).outcome
    await soon(() => model.callCount).toBe(1)
    const two = agent.sendMessage('Two', thread)
    await two.stored
    waiting.open()
    await soon(() => checks).toBe(1)
    expect(await agent.abortRun(thread)).toMatchObject({ aborted: true, runId: one.runId })
    expect(await two.outcome).toMatchObject({ action: 'woke' })
    await idle(agent, thread)
    expect(model.callCount).toBe(2)
    expect(logger.error).not.toHaveBeenCalled()
  })

  it('[R4.3] is no error where the thread is deleted before it comes', async () => {
    const { store, on } = faulty(new InMemoryStore())
    const model = scriptedModel([{ text: ['a ', 'b'], gate: { parts: 2, until: new Promise(() => {}) } }])
    const agent = new Agent({ id: 'a', model })
    openHeed({ agent }, store)
    await agent.sendMessage('One', thread).outcome
    await soon(() => model.callCount).toBe(1)
    on('getRun', () => store.deleteThread(thread).then(() => {}))
    expect(await agent.abortRun({ ...thread, clearPendingSignals: true })).toEqual({ aborted: false })
  })

  it('comes when a run whose host failed was claimed again and aborted', async () => {
    const { store, on } = faulty(new InMemoryStore())
    const model = scriptedModel(() => ({ text: ['a ', 'b'], gate: { parts: 2, until: new Promise(() => {}) } }))
    const agent = new Agent({ id: 'a', model })
    openHeed({ agent }, store)
    await agent.sendMessage('One', thread).outcome
    await soon(() => model.callCount).toBe(1)
    on('commitStep', first(1, unavailable))
    expect(await agent.abortRun(thread)).toMatchObject({ aborted: true })
  })
})

describe.each(sharedPlaceKinds())('[R8.7] the answer of an abort from another process, $name', ({ make }) => {
  it('is true for each caller while a guardrail holds the end', async () => {
    const { guard, hold, held } = holding()
    const place = make()
    const model = scriptedModel([{ text: ['a ', 'b ', 'c'], gate: { parts: 2, until: new Promise(() => {}) } }])
    const agent = new Agent({ id: 'a', model, outputProcessors: [guard] })
    openHeed({ agent }, place.store())
    const elsewhere = new Agent({ id: 'a', model: scriptedModel(['x']) })
    await openHeed({ agent: elsewhere }, place.store()).start()
    await agent.sendMessage('One', thread).outcome
    await soon(() => model.callCount).toBe(1)
    const one = elsewhere.abortRun(thread)
    await soon(held).toBe(1)
    const two = elsewhere.abortRun(thread)
    hold.open()
    expect(await Promise.all([one, two])).toMatchObject([{ aborted: true }, { aborted: true }])
  })

  it('comes after what is pending was cleared, also where the run ended and the next one began before the abort reached their process', async () => {
    const place = make()
    const ending = gate()
    const model = scriptedModel([{ text: ['One.'], gate: { parts: 1, until: ending.promise } }, { text: ['Two.'], gate: { parts: 1, until: new Promise(() => {}) } }, 'Three.'])
    const agent = new Agent({ id: 'a', model })
    openHeed({ agent }, place.store())
    const elsewhere = new Agent({ id: 'a', model: scriptedModel(['x']) })
    const reading = pausedAfterRead(place.store())
    await openHeed({ agent: elsewhere }, reading.store).start()
    await agent.sendMessage('One', thread).outcome
    await soon(() => model.callCount).toBe(1)
    const [two, three] = [agent.queueMessage('Two', thread), agent.queueMessage('Three', thread)]
    await Promise.all([two.stored, three.stored])
    const { read, go } = reading.pause()
    const aborting = elsewhere.abortRun({ ...thread, clearPendingSignals: true })
    await read
    ending.open()
    await soon(() => model.callCount).toBe(2)
    go()
    expect(await aborting).toMatchObject({ aborted: false })
    expect(await elsewhere.explain({ ...thread, signalId: three.signal.id })).toMatchObject({ state: 'cancelled' })
    expect(await agent.abortRun(thread)).toMatchObject({ aborted: true })
    await idle(agent, thread)
    expect(model.callCount).toBe(2)
  })

  it.each(['it waits for the end of the run', 'a read is under way'])('is an error where the process of the caller closes while %s, though no time passes', async (when) => {
    const time = virtualClock()
    const pauses: number[] = []
    const clock: Clock = { now: time.now, after: (ms, run, more) => (pauses.push(ms), time.after(ms, run, more)) }
    const { guard, hold, held } = holding()
    const place = make()
    const model = scriptedModel([{ text: ['a ', 'b'], gate: { parts: 2, until: new Promise(() => {}) } }])
    const agent = new Agent({ id: 'a', model, outputProcessors: [guard] })
    openHeed({ agent }, place.store())
    const elsewhere = new Agent({ id: 'a', model: scriptedModel(['x']) })
    const reading = pausedAfterRead(place.store())
    const heed = openHeed({ agent: elsewhere }, reading.store, { clock })
    await heed.start()
    await agent.sendMessage('One', thread).outcome
    await soon(() => model.callCount).toBe(1)
    const paused = when === 'a read is under way' ? reading.pause() : undefined
    let answer: unknown
    elsewhere.abortRun(thread).catch((error: unknown) => (answer = error))
    if (paused) await paused.read
    else {
      await soon(held).toBe(1)
      // The runner has answered, and the next read is due.
      await soon(() => pauses).toContain(5)
    }
    await heed.close()
    paused?.go()
    await soon(() => answer).toMatchObject({ code: 'closed' })
    hold.open()
    await agent.abortRun(thread)
  })

  it.each(['is deleted', 'is replaced'])('[R11.2] clears nothing of a later thread, and is no failure of the host, where the thread %s before it clears', async (how) => {
    const place = make()
    const { store, on } = faulty(place.store())
    const agent = new Agent({ id: 'a', model: scriptedModel(['One.', 'Two.']) })
    const logger = { debug() {}, info() {}, warn() {}, error: vi.fn() }
    openHeed({ agent }, store, { logger })
    const model = scriptedModel(() => ({ text: ['x'], gate: { parts: 1, until: new Promise(() => {}) } }))
    const elsewhere = new Agent({ id: 'a', model })
    await openHeed({ agent: elsewhere }, place.store()).start()
    const [ending, arrived, clearing, looked] = [gate(), gate(), gate(), gate()]
    on('commitStep', ([, commit]) => {
      if (!(commit as StepCommit).end) return undefined
      arrived.open()
      return ending.promise
    })
    const { outcome } = agent.sendMessage('One', thread)
    const { runId = '' } = await outcome
    await arrived.promise
    await agent.queueMessage('Two', thread).stored
    expect(agent.abortThreadStream({ ...thread, expectedRunId: runId, clearPendingSignals: true })).toBe(true)
    on('listSignals', () => (looked.open(), clearing.promise))
    ending.open()
    await looked.promise
    await (await elsewhere.getMemory()).deleteThread(thread)
    let later: ReturnType<typeof elsewhere.queueMessage> | undefined
    if (how === 'is replaced') {
      await elsewhere.sendMessage('New', thread).stored
      await soon(() => model.callCount).toBe(1)
      later = elsewhere.queueMessage('Newer', thread)
      await later.stored
    }
    on('listSignals')
    clearing.open()
    await agent.sendMessage('Other', { ...thread, threadId: 'other' }).outcome
    await idle(agent, { ...thread, threadId: 'other' })
    if (later) expect(await elsewhere.explain({ ...thread, signalId: later.signal.id })).toMatchObject({ state: 'pending' })
    expect(logger.error).not.toHaveBeenCalled()
    await elsewhere.abortRun({ ...thread, clearPendingSignals: true })
  })

  it('[R8.1] [R11.2] clears nothing of a later thread where the thread is replaced before the run is seen to be over', async () => {
    const place = make()
    const { store, on } = faulty(place.store())
    const agent = new Agent({ id: 'a', model: scriptedModel(['x']) })
    await openHeed({ agent }, store).start()
    const model = scriptedModel(() => ({ text: ['x'], gate: { parts: 1, until: new Promise(() => {}) } }))
    const elsewhere = new Agent({ id: 'a', model })
    openHeed({ agent: elsewhere }, place.store())
    await elsewhere.sendMessage('One', thread).outcome
    await soon(() => model.callCount).toBe(1)
    const [again, asked] = [gate(), gate()]
    let reads = 0
    on('getThread', () => (++reads < 2 ? undefined : (asked.open(), again.promise)))
    const aborting = agent.abortRun({ ...thread, clearPendingSignals: true })
    await asked.promise
    await idle(elsewhere, thread)
    await (await elsewhere.getMemory()).deleteThread(thread)
    await elsewhere.sendMessage('New', thread).stored
    await soon(() => model.callCount).toBe(2)
    const later = elsewhere.queueMessage('Newer', thread)
    await later.stored
    again.open()
    expect(await aborting).toMatchObject({ aborted: false })
    expect(await elsewhere.explain({ ...thread, signalId: later.signal.id })).toMatchObject({ state: 'pending' })
    await elsewhere.abortRun({ ...thread, clearPendingSignals: true })
  })

  it('[R8.1] is the end of clearing: a runner that clears later than the caller cancels no signal that was sent after the answer', async () => {
    const place = make()
    const { store, on } = faulty(place.store())
    const agent = new Agent({ id: 'a', model: scriptedModel(['One.', 'Three.']) })
    openHeed({ agent }, store)
    const { store: remote, on: onRemote } = faulty(place.store())
    const elsewhere = new Agent({ id: 'a', model: scriptedModel(['x']) })
    await openHeed({ agent: elsewhere }, remote).start()
    const [ending, arrived, clearing, looked] = [gate(), gate(), gate(), gate()]
    on('commitStep', ([, commit]) => {
      if (!(commit as StepCommit).end) return undefined
      arrived.open()
      return ending.promise
    })
    agent.sendMessage('One', thread)
    await arrived.promise
    const two = agent.queueMessage('Two', thread)
    await two.stored
    // The second read of the caller follows the answer of the runner.
    const [answered, again] = [gate(), gate()]
    let reads = 0
    onRemote('getThread', () => (++reads < 2 ? undefined : (answered.open(), again.promise)))
    const aborting = elsewhere.abortRun({ ...thread, clearPendingSignals: true })
    await answered.promise
    on('listSignals', () => (looked.open(), clearing.promise))
    ending.open()
    await looked.promise
    again.open()
    expect(await aborting).toMatchObject({ aborted: false })
    const three = elsewhere.queueMessage('Three', thread)
    await three.stored
    on('listSignals')
    clearing.open()
    const state = async (signalId: string) => (await agent.explain({ ...thread, signalId }))?.state
    await soon(() => state(three.signal.id)).toBe('consumed')
    expect(await state(two.signal.id)).toBe('cancelled')
  })

  it('comes after what is pending was cleared where it names a run that is over', async () => {
    const place = make()
    const model = scriptedModel(['One.', { text: ['Two.'], gate: { parts: 1, until: new Promise(() => {}) } }])
    const agent = new Agent({ id: 'a', model })
    openHeed({ agent }, place.store())
    const { runId = '' } = await agent.sendMessage('One', thread).outcome
    await idle(agent, thread)
    await agent.sendMessage('Two', thread).outcome
    await soon(() => model.callCount).toBe(2)
    const three = agent.queueMessage('Three', thread)
    await three.stored
    const state = async () => (await agent.explain({ ...thread, signalId: three.signal.id }))?.state
    await agent.abortRun({ ...thread, expectedRunId: 'another', clearPendingSignals: true })
    expect(await state()).toBe('pending')
    expect(await agent.abortRun({ ...thread, expectedRunId: runId, clearPendingSignals: true })).toMatchObject({ aborted: false })
    expect(await state()).toBe('cancelled')
    await agent.abortRun(thread)
  })
})

/** A store of which one read of a thread can be held back: it has happened, and its answer comes later. */
function pausedAfterRead(store: ThreadStore): { store: ThreadStore; pause(): { read: Promise<void>; go(): void } } {
  let held: { read: ReturnType<typeof gate>; go: ReturnType<typeof gate> } | undefined
  const getThread: ThreadStore['getThread'] = async (scope) => {
    const now = held
    held = undefined
    const thread = await store.getThread(scope)
    now?.read.open()
    await now?.go.promise
    return thread
  }
  const paused = new Proxy(store, {
    get(target, key) {
      const value: unknown = key === 'getThread' ? getThread : Reflect.get(target, key)
      return typeof value === 'function' && value !== getThread ? (value as (...args: unknown[]) => unknown).bind(target) : value
    },
  })
  return {
    store: paused,
    pause() {
      held = { read: gate(), go: gate() }
      const { read, go } = held
      return { read: read.promise, go: go.open }
    },
  }
}
