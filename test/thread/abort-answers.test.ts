import { describe, expect, it } from 'vitest'
import { Agent, InMemoryStore, type Processor } from '../../src/index.ts'
import type { StepCommit } from '../../src/store/contract/threads.ts'
import { scriptedModel } from '../../src/testing/index.ts'
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
})
