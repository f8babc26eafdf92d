import { describe, expect, it } from 'vitest'
import { Agent, createTool, type Processor, type SendReceipt } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import type { RunRow } from '../../src/store/contract/threads.ts'
import { storedResult } from '../../src/thread/cluster/run-follower.ts'
import { openHeed, sharedPlaceKinds } from '../thread/places.ts'
import { gate, idle, soon } from '../thread/said.ts'

const thread = { threadId: 't', resourceId: 'u' }
const refused = { action: 'rejected', code: 'tripwire', reason: 'no', processorId: 'guard' }

/** An agent that says hello, and a processor that refuses in one hook. */
function refusing(hook: string): Agent {
  const refuse = ({ abort, part }: { abort: (reason: string, options: object) => never; part?: { type: string } }) => {
    if (part === undefined || part.type === 'text-delta') abort('no', { metadata: { a: 1 } })
  }
  const guard = { id: 'guard', [hook]: refuse } as unknown as Processor
  const side = hook.startsWith('processOutput') ? { outputProcessors: [guard] } : { inputProcessors: [guard] }
  return new Agent({ id: 'a', model: scriptedModel(() => 'Hello.'), ...side })
}

/** Accepts or refuses, as the test sets it. */
function doorkeeper() {
  const asked = gate()
  const answer = Promise.withResolvers<boolean>()
  const guard: Processor = {
    id: 'guard',
    async processInput({ messages, abort }) {
      if (!JSON.stringify(messages).includes('Knock')) return
      asked.open()
      if (!(await answer.promise)) abort('no')
    },
  }
  return { guard, asked: asked.promise, answer: answer.resolve }
}

/** What a receipt says by now; undefined while it says nothing. */
const soFar = ({ outcome }: SendReceipt) => Promise.race([outcome, new Promise((resolve) => setImmediate(resolve, undefined))])

describe.each(sharedPlaceKinds())('the outcome of a send, $name', ({ make }) => {
  it('[R10.2] a refusal that is learned of from the store is the one that was made: reason, processor and metadata', async () => {
    const agent = refusing('processOutputResult')
    const store = make().store()
    openHeed({ agent }, store)
    const { runId, stored } = agent.sendMessage('Go.', thread)
    await stored
    await idle(agent, thread)
    const run = await store.getRun(thread, runId)
    expect(await storedResult(store, run as RunRow)).toMatchObject({ finishReason: 'tripwire', tripwire: { reason: 'no', processorId: 'guard', metadata: { a: 1 } } })
  })

  it.each(['processInput', 'processInputStep', 'computeStateSignal'])('[A4.4] that %s refuses is rejected, with the reason and the processor, and the same when it is sent again', async (hook) => {
    const agent = refusing(hook)
    openHeed({ agent }, make().store())
    const sent = agent.sendMessage({ id: 'm', contents: 'Go.' }, thread)
    expect(await sent.outcome).toEqual({ ...refused, runId: sent.runId })
    await idle(agent, thread)
    expect(await agent.sendMessage({ id: 'm', contents: 'Go.' }, thread).outcome).toEqual({ ...refused, runId: sent.runId, duplicate: true })
    const explained = await agent.explain({ ...thread, signalId: 'm' })
    expect(explained).toMatchObject({ state: 'rejected', reason: 'no', processorId: 'guard', runId: sent.runId, run: { error: { metadata: { a: 1 } } } })
    expect(explained).not.toHaveProperty('step')
    const state = await agent.sendStateSignal({ id: 'lane', cacheKey: 'k', contents: 'x' }, thread)
    expect(state.skipped ? state : await state.outcome).toMatchObject(refused)
  })

  it.each([['processInput', 'processor_failed'], ['processInputStep', 'processor_failed'], ['timeout', 'processor_timeout']])('[A4.4] that %s fails with is persisted, with the code, and the same when it is sent again', async (hook, code) => {
    const fail = hook === 'timeout' ? () => new Promise<void>(() => {}) : () => { throw new Error('secret') }
    const guard = { id: 'guard', [hook === 'timeout' ? 'processInput' : hook]: fail, ...(hook === 'timeout' && { timeoutMs: 5 }) } as unknown as Processor
    const model = scriptedModel(() => 'Hello.')
    const agent = new Agent({ id: 'a', model, inputProcessors: [guard] })
    openHeed({ agent }, make().store())
    const sent = agent.sendMessage({ id: 'm', contents: 'Go.' }, thread)
    const kept = { action: 'persisted', code, runId: sent.runId, reason: 'The run failed before a model read it. It is in history.' }
    expect(await sent.outcome).toEqual(kept)
    await idle(agent, thread)
    expect(model.calls).toEqual([])
    expect(await agent.sendMessage({ id: 'm', contents: 'Go.' }, thread).outcome).toEqual({ ...kept, duplicate: true })
    const explained = await agent.explain({ ...thread, signalId: 'm' })
    expect(explained).toMatchObject({ state: 'consumed', reason: code, runId: sent.runId, run: { status: 'failed' } })
    expect(explained).not.toHaveProperty('step')
    expect((await (await agent.getMemory()).recall(thread)).messages[0]).toMatchObject({ id: 'm', content: { parts: [{ text: 'Go.' }] } })
  })

  it('[A4.4] of input that joined a run and with which a processor fails is persisted; what the run began with stays what it was', async () => {
    const guard: Processor = { id: 'guard', processInput: ({ messages }) => { if (JSON.stringify(messages).includes('BAD')) throw new Error('no') } }
    const joined = Promise.withResolvers<SendReceipt>()
    const look = createTool({
      id: 'look',
      async execute() {
        const receipt = agent.sendMessage({ id: 'mid', contents: 'BAD' }, thread)
        await receipt.stored
        joined.resolve(receipt)
        return 'seen'
      },
    })
    const agent: Agent = new Agent({ id: 'a', model: scriptedModel([{ text: 'L', toolCalls: [{ toolName: 'look' }] }]), tools: { look }, inputProcessors: [guard] })
    openHeed({ agent }, make().store())
    const sent = agent.sendMessage({ id: 'm', contents: 'Go.' }, thread)
    expect(await (await joined.promise).outcome).toMatchObject({ action: 'persisted', code: 'processor_failed', runId: sent.runId })
    await idle(agent, thread)
    for (const receipt of [sent, agent.sendMessage({ id: 'm', contents: 'Go.' }, thread)]) expect(await receipt.outcome).toMatchObject({ action: 'woke', step: 0, runId: sent.runId })
    expect(await agent.sendMessage({ id: 'mid', contents: 'BAD' }, thread).outcome).toMatchObject({ action: 'persisted', code: 'processor_failed', duplicate: true })
  })

  it.each(['processOutputStream', 'processOutputStep', 'processOutputResult'])('[A4.4] whose answer %s refuses is what it was: a model read it', async (hook) => {
    const agent = refusing(hook)
    openHeed({ agent }, make().store())
    const sent = agent.sendMessage({ id: 'm', contents: 'Go.' }, thread)
    expect(await sent.outcome).toEqual({ action: 'woke', runId: sent.runId, step: 0 })
    await idle(agent, thread)
    expect(await agent.sendMessage({ id: 'm', contents: 'Go.' }, thread).outcome).toEqual({ action: 'woke', runId: sent.runId, step: 0, duplicate: true })
    expect(await agent.explain({ ...thread, signalId: 'm' })).toMatchObject({ state: 'rejected', reason: 'no', processorId: 'guard', step: 0 })
  })

  it.each([{ lets: true }, { lets: false }])('[A4.4] is not resolved while processors check the input, also for a repeated send; they accept it: $lets', async ({ lets }) => {
    const { guard, asked, answer } = doorkeeper()
    const agent = new Agent({ id: 'a', model: scriptedModel(() => 'Hello.'), inputProcessors: [guard] })
    openHeed({ agent }, make().store())
    const sent = agent.sendMessage({ id: 'm', contents: 'Knock.' }, thread)
    await asked
    const again = agent.sendMessage({ id: 'm', contents: 'Knock.' }, thread)
    await again.acceptance
    expect([await soFar(sent), await soFar(again)]).toEqual([undefined, undefined])
    answer(lets)
    const outcome = lets ? { action: 'woke', step: 0, runId: sent.runId } : { ...refused, runId: sent.runId }
    expect([await sent.outcome, await again.outcome]).toEqual([outcome, { ...outcome, duplicate: true }])
  })

  it('[A4.4] of input that joined a run and is refused is rejected; what the run began with stays what it was', async () => {
    const guard: Processor = { id: 'guard', processInput: ({ messages, abort }) => (JSON.stringify(messages).includes('BAD') ? abort('no') : undefined) }
    const joined = Promise.withResolvers<SendReceipt>()
    const look = createTool({
      id: 'look',
      async execute() {
        const receipt = agent.sendMessage({ id: 'mid', contents: 'BAD' }, thread)
        await receipt.stored
        joined.resolve(receipt)
        return 'seen'
      },
    })
    const agent: Agent = new Agent({ id: 'a', model: scriptedModel([{ text: 'L', toolCalls: [{ toolName: 'look' }] }]), tools: { look }, inputProcessors: [guard] })
    openHeed({ agent }, make().store())
    const sent = agent.sendMessage({ id: 'm', contents: 'Go.' }, thread)
    expect(await (await joined.promise).outcome).toEqual({ ...refused, runId: sent.runId })
    expect(await sent.outcome).toEqual({ action: 'woke', step: 0, runId: sent.runId })
    await idle(agent, thread)
    expect(await agent.sendMessage({ id: 'm', contents: 'Go.' }, thread).outcome).toMatchObject({ action: 'woke', step: 0 })
  })

  it.each([{ lets: true }, { lets: false }])('[A4.2] is the same for a sender in another process; processors accept the input: $lets', async ({ lets }) => {
    const place = make()
    const { guard, asked, answer } = doorkeeper()
    const hold = gate()
    const model = scriptedModel((call) => (call.index === 0 ? { text: 'First.', gate: hold.promise } : 'Later.'))
    const here = new Agent({ id: 'a', model, inputProcessors: [guard] })
    openHeed({ here }, place.store())
    const there = new Agent({ id: 'a', model: scriptedModel([]), inputProcessors: [guard] })
    const second = openHeed({ there }, place.store())
    await here.sendMessage('Go.', thread).outcome
    const sent = there.sendMessage({ id: 'm', contents: 'Knock.' }, thread)
    await sent.stored
    hold.open()
    await asked
    // A reader now finds it drained.
    await soon(async () => (await there.explain({ ...thread, signalId: 'm' }))?.state).toBe('taken')
    await second.tick()
    expect(await soFar(sent)).toBeUndefined()
    answer(lets)
    await idle(here, thread)
    await second.tick()
    expect(await sent.outcome).toMatchObject(lets ? { action: 'delivered', step: 1 } : refused)
  })

  it('[A4.2] is known to who sent it from another process when it entered the run, where processors read only the output', async () => {
    const place = make()
    const [hold, answered] = [gate(), gate()]
    const model = scriptedModel((call) => ({ text: 'Word.', gate: call.index === 0 ? hold.promise : answered.promise }))
    const guard: Processor = { id: 'guard', processOutputResult: () => undefined }
    const here = new Agent({ id: 'a', model, outputProcessors: [guard] })
    openHeed({ here }, place.store())
    const there = new Agent({ id: 'a', model: scriptedModel([]), outputProcessors: [guard] })
    openHeed({ there }, place.store())
    await here.sendMessage('Go.', thread).outcome
    const sent = there.sendMessage('Also.', thread)
    await sent.stored
    hold.open()
    // The model has not answered it, and no sweep has come.
    expect(await sent.outcome).toMatchObject({ action: 'delivered', step: 1 })
    answered.open()
    await idle(here, thread)
  })
})
