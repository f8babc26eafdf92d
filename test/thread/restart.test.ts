import { describe, expect, it } from 'vitest'
import { Agent, createTool, type Chunk } from '../../src/index.ts'
import { messageInputToSignal } from '../../src/signals/normalize.ts'
import { signalToRow } from '../../src/signals/conversions.ts'
import { scriptedModel, virtualClock, type ScriptedModel, type ScriptedStep } from '../../src/testing/index.ts'
import { mortal, openHeed, sharedPlaceKinds, type Place } from './places.ts'
import { collect, gate, idle, soon, texts, types, userTexts } from './said.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }

/** What the model says follows from what it was shown, so that two processes that show it the same hear the same. */
function clerk(options: { hangIn?: (step: number) => boolean; work?: (signal: AbortSignal) => Promise<void>; idempotent?: boolean } = {}) {
  const model = scriptedModel((call): ScriptedStep => {
    const results = call.prompt.filter(({ role }) => role === 'tool').length
    const asked = userTexts(call).length
    if (results < 2 * asked) return { text: `Working on ${asked}.`, toolCalls: [{ toolName: 'file', toolCallId: `call-${results}`, input: { sheet: results } }], hang: options.hangIn?.(results) ?? false }
    return { text: `Done with ${asked}.`, hang: options.hangIn?.(results) ?? false }
  })
  const filed: unknown[] = []
  const file = createTool({
    id: 'file',
    idempotent: options.idempotent ?? false,
    async execute(input, { abortSignal }) {
      filed.push(input)
      await options.work?.(abortSignal)
      return `sheet ${JSON.stringify(input)}`
    },
  })
  return { agent: new Agent({ id: 'clerk', instructions: 'File everything.', model, tools: { file } }), model, filed }
}

function prompts(model: ScriptedModel): string[] {
  return model.calls.map(({ prompt }) => JSON.stringify(prompt))
}

type Sender = Pick<Agent, 'sendMessage' | 'queueMessage' | 'sendSignal' | 'activeRun'>

/** The prompts of a process that was never interrupted. */
async function reference(place: Place, send: (agent: Sender) => Promise<void>): Promise<string[]> {
  const { agent, model } = clerk()
  const heed = openHeed({ agent }, place.store())
  await send(agent)
  await idle(agent, thread)
  await heed.close()
  return prompts(model)
}

const untilAborted = (signal: AbortSignal) => new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))

describe.each(sharedPlaceKinds())('a thread whose process ended, $name', ({ make }) => {
  it.each([0, 1, 2])('[R5.2] continues with the same prompt bytes, cut in the stream of step %i', async (step) => {
    const whole = await reference(make(), async (agent) => void (await agent.sendMessage('Ten files.', thread).outcome))
    const place = make()
    const before = clerk({ hangIn: (results) => results === step })
    const first = openHeed({ agent: before.agent }, place.store())
    const watcher = await before.agent.subscribeToThread(thread)
    const seen = collect(watcher)
    await before.agent.sendMessage('Ten files.', thread).outcome
    await soon(() => before.model.callCount).toBe(step + 1)
    await soon(() => types(seen.chunks).filter((type) => type === 'text-delta').length).toBeGreaterThan(step)
    await first.close()
    await seen.done

    const after = clerk()
    const second = openHeed({ agent: after.agent }, place.store())
    await second.start()
    await idle(after.agent, thread)
    expect(prompts(before.model)).toEqual(whole.slice(0, step + 1))
    expect(prompts(after.model)).toEqual(whole.slice(step))
    const { messages } = await (await after.agent.getMemory()).recall(thread)
    expect(messages.map(({ role }) => role)).toEqual(['signal', 'assistant'])
    expect(messages[1]?.content.parts.filter((part) => part.type === 'text').map((part) => part.text)).toEqual(['Working on 1.', 'Working on 1.', 'Done with 1.'])
  })

  it('[R5.2] runs an idempotent tool again and continues with the same bytes', async () => {
    const whole = await reference(make(), async (agent) => void (await agent.sendMessage('Ten files.', thread).outcome))
    const place = make()
    const before = clerk({ idempotent: true, work: untilAborted })
    const first = openHeed({ agent: before.agent }, place.store())
    await before.agent.sendMessage('Ten files.', thread).outcome
    await soon(() => before.filed.length).toBe(1)
    await first.close()

    const after = clerk({ idempotent: true })
    await openHeed({ agent: after.agent }, place.store()).start()
    await idle(after.agent, thread)
    expect(after.filed).toEqual([{ sheet: 0 }, { sheet: 1 }])
    expect(prompts(after.model)).toEqual(whole.slice(1))
  })

  it('[R5.2] reports to the model that a non-idempotent tool was interrupted', async () => {
    const whole = await reference(make(), async (agent) => void (await agent.sendMessage('Ten files.', thread).outcome))
    const place = make()
    const before = clerk({ work: untilAborted })
    const first = openHeed({ agent: before.agent }, place.store())
    await before.agent.sendMessage('Ten files.', thread).outcome
    await soon(() => before.filed.length).toBe(1)
    await first.close()

    const after = clerk()
    await openHeed({ agent: after.agent }, place.store()).start()
    await idle(after.agent, thread)
    expect(after.filed).toEqual([{ sheet: 1 }])
    const shown = after.model.calls[0]?.prompt ?? []
    expect(texts(shown).at(-1)).toContain('file was interrupted')
    // All before it is as it was.
    const expected = JSON.parse(whole[1] ?? '[]') as unknown[]
    expect(JSON.stringify(shown.slice(0, -1))).toBe(JSON.stringify(expected.slice(0, -1)))
  })

  it('[R5.2] continues with the signals that entered, the pending ones and the queue, as without a restart', async () => {
    const sends = async (agent: Sender) => {
      const steer = agent.sendMessage('Also these.', thread)
      const turns = [agent.queueMessage('Then these.', thread), agent.queueMessage('And those.', thread)]
      const note = agent.sendSignal({ type: 'notification', contents: 'Lunch.' }, thread)
      await Promise.all([steer, ...turns, note].map(({ stored }) => stored))
    }
    const hold = gate()
    const at = gate()
    const uninterrupted = clerk({ work: () => (at.open(), hold.promise) })
    const place = make()
    const whole = openHeed({ agent: uninterrupted.agent }, make().store())
    await uninterrupted.agent.sendMessage('Ten files.', thread).outcome
    await at.promise
    await sends(uninterrupted.agent)
    hold.open()
    await idle(uninterrupted.agent, thread)
    await whole.close()

    const before = clerk({ idempotent: true, work: untilAborted })
    const first = openHeed({ agent: before.agent }, place.store())
    await before.agent.sendMessage('Ten files.', thread).outcome
    await soon(() => before.filed.length).toBe(1)
    await sends(before.agent)
    await first.close()

    const after = clerk({ idempotent: true })
    await openHeed({ agent: after.agent }, place.store()).start()
    await idle(after.agent, thread)
    expect(await after.agent.listQueued(thread)).toEqual([])
    expect(prompts(after.model)).toEqual(prompts(uninterrupted.model).slice(1))
  })

  it('[R6.2] continues from an approval with the bytes of an uninterrupted run', async () => {
    const clerkWhoAsks = () => {
      const model = scriptedModel((call) => (call.prompt.length < 3 ? { toolCalls: [{ toolName: 'sign', toolCallId: 'c1' }] } : 'Signed.'))
      const sign = createTool({ id: 'sign', requireApproval: true, execute: () => ({ signed: true }) })
      return { agent: new Agent({ id: 'clerk', instructions: 'Sign.', model, tools: { sign } }), model }
    }
    const ask = async (agent: Sender) => {
      await agent.sendMessage('Sign here.', thread).outcome
      await soon(async () => (await agent.activeRun(thread))?.status).toBe('suspended')
    }
    const whole = clerkWhoAsks()
    openHeed({ agent: whole.agent }, make().store())
    await ask(whole.agent)
    await whole.agent.sendToolApproval({ ...thread, approved: true })
    await idle(whole.agent, thread)

    const place = make()
    const before = clerkWhoAsks()
    const first = openHeed({ agent: before.agent }, place.store())
    await ask(before.agent)
    await first.close()
    const after = clerkWhoAsks()
    openHeed({ agent: after.agent }, place.store())
    await after.agent.sendToolApproval({ ...thread, approved: true })
    await idle(after.agent, thread)
    expect([...prompts(before.model), ...prompts(after.model)]).toEqual(prompts(whole.model))
  })

  it('[R5.2] wakes for a signal that was accepted and whose run never began', async () => {
    const whole = await reference(make(), async (agent) => void (await agent.sendMessage({ contents: 'Ten files.', id: 's1' }, thread).outcome))
    const place = make()
    const store = place.store()
    await store.open()
    const rows = [signalToRow(messageInputToSignal('Ten files.', { id: 's1', now: 0, reservedTags: [] }), thread)]
    await store.accept([{ ...thread, agentId: 'clerk', id: 's1', mode: 'now', ifActive: { behavior: 'deliver' }, ifIdle: { behavior: 'wake' }, rows, runId: 'run-1', now: 0 }])
    await store.close()

    const { agent, model } = clerk()
    openHeed({ agent }, place.store())
    // The first use of a Heed finds pending signals, without a call of start().
    await agent.listActiveThreads()
    await soon(() => model.callCount).toBe(3)
    await idle(agent, thread)
    expect(prompts(model)).toEqual(whole)
    expect(await agent.explain({ ...thread, signalId: 's1' })).toMatchObject({ state: 'consumed', runId: 'run-1' })
  })

  it('[R5.2] is continued by the next send, before the first sweep', async () => {
    const clock = virtualClock()
    const place = make({ clock })
    const before = clerk({ hangIn: () => true })
    const first = openHeed({ agent: before.agent }, place.store(), { clock })
    const { runId } = await before.agent.sendMessage('Ten files.', thread).outcome
    await soon(() => before.model.callCount).toBe(1)
    await first.close()

    const { agent, model } = clerk()
    // The clock stands still, so nothing is swept.
    openHeed({ agent }, place.store(), { clock })
    const receipt = agent.sendMessage('Also these.', thread)
    expect(await receipt.outcome).toEqual({ action: 'delivered', runId, step: 1 })
    await idle(agent, thread)
    expect(prompts(model)[0]).toBe(prompts(before.model)[0])
  })

  it('[R2.3] honors an interrupt that arrived too late for the previous process', async () => {
    const clock = virtualClock()
    const place = make({ clock })
    const before = clerk({ hangIn: () => true })
    const first = openHeed({ agent: before.agent }, place.store(), { clock })
    const { runId } = await before.agent.sendMessage('Ten files.', thread).outcome
    await soon(() => before.model.callCount).toBe(1)
    await first.close()
    // Accepted by a process that can't run the agent, while no process runs the thread.
    const store = place.store()
    await store.open()
    const now = clock.now()
    const signal = { id: 'stop', type: 'user', tagName: 'user', contents: 'Stop.', createdAt: new Date(now).toISOString() } as const
    await store.accept([{ ...thread, agentId: before.agent.id, id: 'stop', mode: 'now', ifActive: { behavior: 'interrupt' }, ifIdle: { behavior: 'wake' }, rows: [signalToRow(signal, thread)], runId: 'other', now }])

    // A model that never ends: only a cut lets the input enter.
    const model = scriptedModel((call) => (userTexts(call).includes('Stop.') ? 'Stopped.' : { text: 'On and on', hang: true }))
    const agent = new Agent({ id: before.agent.id, model, tools: {} })
    const second = openHeed({ agent }, store, { clock })
    await second.start()
    await idle(agent, thread)
    expect(await agent.explain({ ...thread, signalId: 'stop' })).toMatchObject({ state: 'consumed', runId })
  })

  it('[R5.2] is found among many threads, page by page', async () => {
    const place = make()
    const before = clerk({ hangIn: () => true })
    const first = openHeed({ agent: before.agent }, place.store())
    const threads = Array.from({ length: 250 }, (_, index) => ({ resourceId: 'user-1', threadId: `thread-${index}` }))
    await Promise.all(threads.map((one) => before.agent.sendMessage('Ten files.', one).outcome))
    await first.close()
    const { agent, model } = clerk()
    openHeed({ agent }, place.store())
    await agent.listActiveThreads()
    await soon(() => model.callCount).toBe(3 * threads.length)
    await soon(() => agent.listActiveThreads()).toEqual([])
  })

  it('parks a run that never ends, reports it, and continues with the pending signals', async () => {
    const clock = virtualClock()
    const place = make({ clock })
    for (let attempt = 1; attempt <= 10; attempt++) {
      const { agent, model } = clerk({ hangIn: () => true })
      const { store, die } = mortal(place.store())
      const heed = openHeed({ agent }, store, { clock })
      if (attempt === 1) await agent.sendMessage({ contents: 'Ten files.', id: 'first' }, thread).outcome
      else await heed.start()
      await soon(() => model.callCount).toBe(1)
      if (attempt === 10) await agent.queueMessage('Then these.', thread).stored
      die()
      await heed.close()
      await clock.advance(11_000)
    }
    const { agent, model } = clerk()
    await openHeed({ agent }, place.store(), { clock }).start()
    await idle(agent, thread)
    expect(userTexts(model.calls[0])).toEqual(['Ten files.', 'Then these.'])
    expect(await agent.explain({ ...thread, signalId: 'first' })).toMatchObject({ state: 'consumed', run: { status: 'parked', attempts: 11 } })
    const { messages } = await (await agent.getMemory()).recall(thread)
    expect(messages[1]).toMatchObject({ role: 'assistant', content: { parts: [{ type: 'error', error: { code: 'run_parked', message: expect.stringContaining('parked') } }] } })
    await expect(agent.retryParked(thread)).rejects.toMatchObject({ code: 'run_not_parked', message: expect.stringContaining('later runs have written') })
  })

  it('[R5.3] is not parked for being handed over, however often', async () => {
    const place = make()
    for (let attempt = 1; attempt <= 12; attempt++) {
      const { agent, model } = clerk({ hangIn: () => true })
      const heed = openHeed({ agent }, place.store())
      if (attempt === 1) await agent.sendMessage({ contents: 'Ten files.', id: 'first' }, thread).outcome
      else await heed.start()
      await soon(() => model.callCount).toBe(1)
      await heed.close()
    }
    const { agent } = clerk()
    await openHeed({ agent }, place.store()).start()
    await idle(agent, thread)
    expect(await agent.explain({ ...thread, signalId: 'first' })).toMatchObject({ state: 'consumed', run: { status: 'finished' } })
  })

  it('[R5.3] continues a parked run from its last finished step', async () => {
    const whole = await reference(make(), async (agent) => void (await agent.sendMessage('Ten files.', thread).outcome))
    const clock = virtualClock()
    const place = make({ clock })
    const filed: unknown[] = []
    for (let attempt = 1; attempt <= 10; attempt++) {
      const { agent, model, filed: here } = clerk({ hangIn: (results) => results === 1 })
      const { store, die } = mortal(place.store())
      const heed = openHeed({ agent }, store, { clock })
      if (attempt === 1) await agent.sendMessage({ contents: 'Ten files.', id: 'first' }, thread).outcome
      else await heed.start()
      await soon(() => model.callCount).toBe(attempt === 1 ? 2 : 1)
      die()
      await heed.close()
      await clock.advance(11_000)
      filed.push(...here)
    }
    const { agent, model, filed: here } = clerk()
    await openHeed({ agent }, place.store(), { clock }).start()
    await idle(agent, thread)
    expect(await agent.explain({ ...thread, signalId: 'first' })).toMatchObject({ run: { status: 'parked', step: 1, error: { code: 'run_parked' } } })
    expect(model.callCount).toBe(0)
    await expect(agent.retryParked({ ...thread, resourceId: 'user-2' })).rejects.toMatchObject({ code: 'thread_forbidden' })
    await expect(agent.retryParked({ ...thread, threadId: 'nowhere' })).rejects.toMatchObject({ code: 'run_not_parked' })

    const { runId } = await agent.retryParked(thread)
    await idle(agent, thread)
    expect(prompts(model)).toEqual(whole.slice(1))
    expect([...filed, ...here]).toEqual([{ sheet: 0 }, { sheet: 1 }])
    expect(await agent.explain({ ...thread, signalId: 'first' })).toMatchObject({ runId, run: { status: 'finished' } })
    const { messages } = await (await agent.getMemory()).recall(thread)
    expect(messages.map(({ role }) => role)).toEqual(['signal', 'assistant'])
    expect(JSON.stringify(messages)).not.toContain('parked')
    await expect(agent.retryParked({ ...thread, runId })).rejects.toMatchObject({ code: 'run_not_parked' })
  })
})

describe.each(sharedPlaceKinds())('a process that was paused, $name', ({ make }) => {
  it('[R1.3] neither writes nor publishes after another process took over its thread', async () => {
    const clock = virtualClock()
    const place = make({ clock })
    // Its own clock stands still: no heartbeat leaves it.
    const hold = gate()
    const model = scriptedModel([{ text: ['I am ', 'still here.'], gate: { parts: 2, until: hold.promise } }])
    const asleep = new Agent({ id: 'clerk', model })
    openHeed({ agent: asleep }, place.store(), { clock: virtualClock(clock.now()) })
    const watcher = await asleep.subscribeToThread(thread)
    const seen = collect(watcher)
    await asleep.sendMessage('Ten files.', thread).outcome
    await soon(() => types(seen.chunks)).toContain('text-delta')
    const steer = asleep.sendMessage('Hello?', thread)
    await steer.stored
    await clock.advance(11_000)

    const awake = new Agent({ id: 'clerk', model: scriptedModel(['I took over.', 'And again.']) })
    const heed = openHeed({ agent: awake }, place.store(), { clock })
    await heed.start()
    await idle(awake, thread)
    hold.open()
    expect(await steer.outcome).toMatchObject({ action: 'delivered', step: 1 })
    // Its watchers may hear the other. Of its own it says no last word.
    const epoch = ({ cursor = '' }: Chunk) => cursor.split('.')[0]
    const own = seen.chunks.filter((chunk) => chunk.type !== 'data-thread-snapshot' && epoch(chunk) === epoch(seen.chunks[0] as Chunk))
    expect(own.length).toBeGreaterThan(0)
    expect(types(own).filter(isTerminal)).toEqual([])
    const { messages } = await (await awake.getMemory()).recall(thread)
    const said = messages.filter(({ role }) => role === 'assistant').map(({ content }) => content.parts.map((part) => ('text' in part ? part.text : '')).join(''))
    expect(said).toEqual(['I took over.', 'And again.'])
  })
})

function isTerminal(type: string): boolean {
  return type === 'finish' || type === 'step-finish' || type === 'error' || type === 'abort'
}
