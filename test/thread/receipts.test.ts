import { describe, expect, it } from 'vitest'
import { Agent, createTool, InMemoryStore, type HeedErrorCode, type SendReceipt, type SignalInput } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, placeKinds } from './places.ts'
import { gate, idle, isType, readUntil, soon, userTexts } from './said.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }
const memory = { thread: thread.threadId, resource: thread.resourceId }

/** An agent whose first answer waits. */
function busyAgent(more: Partial<ConstructorParameters<typeof Agent>[0]> = {}) {
  const hold = gate()
  const model = scriptedModel((call) => (call.index === 0 ? { text: 'First.', gate: hold.promise } : 'Later.'))
  return { agent: new Agent({ id: 'guide', model, ...more }), model, release: hold.open }
}

describe.each(placeKinds())('a receipt $name', ({ make }) => {
  it('[A4.1] reports woke, delivered, queued, persisted and discarded, with the run and the step', async () => {
    const { agent, release } = busyAgent()
    openHeed({ agent }, make().store())

    const kept = agent.sendMessage('a note', { ...thread, ifIdle: { behavior: 'persist' } })
    expect(await kept.outcome).toEqual({ action: 'persisted' })
    expect(kept.runId).toBe(kept.signal.id)
    const unwanted = agent.sendMessage('unwanted', { ...thread, ifIdle: { behavior: 'discard' } })
    expect(await unwanted.outcome).toEqual({ action: 'discarded' })
    expect(unwanted.runId).toBe(unwanted.signal.id)

    const woke = agent.sendMessage('Go.', thread)
    expect(await woke.outcome).toEqual({ action: 'woke', runId: woke.runId, step: 0 })
    const entered = agent.sendMessage('And this.', thread)
    expect(entered.runId).toBe(woke.runId)
    const turn = agent.queueMessage('Then this.', thread)
    expect(await turn.outcome).toEqual({ action: 'queued', runId: turn.runId })
    expect(turn.runId).not.toBe(woke.runId)
    expect(await agent.sendMessage('not now', { ...thread, ifActive: { behavior: 'discard' } }).outcome).toEqual({ action: 'discarded' })
    const note = agent.sendMessage('a note', { ...thread, ifActive: { behavior: 'persist' } })
    await note.persisted
    expect(await note.outcome).toEqual({ action: 'persisted' })
    expect(note.runId).toBe(note.signal.id)
    await entered.stored
    release()

    expect(await entered.outcome).toEqual({ action: 'delivered', runId: woke.runId, step: 1 })
    await idle(agent, thread)
    const explained = await agent.explain({ ...thread, signalId: turn.signal.id })
    expect(explained).toMatchObject({ state: 'consumed', route: 'queue', runId: turn.runId, step: 0, run: { status: 'finished', step: 1 } })
    expect(await agent.explain({ ...thread, signalId: 'unknown' })).toBeNull()
  })

  it('[A4.1] reports rejected with the code, and causes no unhandled rejection', async () => {
    const { agent } = busyAgent()
    openHeed({ agent }, make().store())
    await agent.sendMessage('mine', thread).stored
    const foreign = agent.sendMessage('not mine', { resourceId: 'user-2', threadId: thread.threadId })
    expect(await foreign.outcome).toMatchObject({ action: 'rejected', code: 'thread_forbidden' })
    await expect(foreign.stored).rejects.toMatchObject({ code: 'thread_forbidden' })
    const nobody = agent.sendMessage('hello?', { runId: 'no-such-run' })
    expect(await nobody.outcome).toMatchObject({ action: 'rejected', code: 'no_active_run' })
    const persisted = agent.sendMessage('x', { ...thread, resourceId: 'user-2', ifIdle: { behavior: 'persist' }, ifActive: { behavior: 'persist' } })
    expect(await persisted.outcome).toMatchObject({ action: 'rejected' })
  })

  it('[A4.1] reports rejected to later senders of a signal that a guardrail rejected', async () => {
    const guard = { id: 'guard', processInput: ({ abort }: { abort(reason: string): never }) => abort('not allowed') }
    const { agent } = busyAgent({ inputProcessors: [guard] })
    openHeed({ agent }, make().store())
    await agent.sendMessage({ contents: 'evil', id: 'evil' }, thread).outcome
    await idle(agent, thread)
    expect(await agent.sendMessage({ contents: 'evil', id: 'evil' }, thread).outcome).toMatchObject({ action: 'rejected', duplicate: true, reason: 'not allowed' })
  })

  it.each<[string, (agent: Agent, id: string) => SendReceipt]>([
    ['sendMessage', (agent, id) => agent.sendMessage({ contents: 'hi', id }, thread)],
    ['queueMessage', (agent, id) => agent.queueMessage({ contents: 'hi', id }, thread)],
    ['sendSignal', (agent, id) => agent.sendSignal({ type: 'notification', contents: 'hi', id }, thread)],
    ['an interrupt', (agent, id) => agent.sendMessage({ contents: 'hi', id }, { ...thread, ifActive: { behavior: 'interrupt' } })],
    ['a persisted one', (agent, id) => agent.sendMessage({ contents: 'hi', id }, { ...thread, ifIdle: { behavior: 'persist' }, ifActive: { behavior: 'persist' } })],
  ])('[A2.2] of %s that is repeated, concurrently and later, is of one signal and reports duplicate', async (_, send) => {
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Answer.'], { loop: true }) })
    openHeed({ agent }, make().store())
    const receipts = Array.from({ length: 8 }, () => send(agent, 'signal-1'))
    await Promise.all(receipts.map(({ stored }) => stored))
    const outcomes = await Promise.all(receipts.map(({ outcome }) => outcome))
    await idle(agent, thread)
    const late = await send(agent, 'signal-1').outcome

    const [first, ...repeated] = outcomes
    expect(first?.duplicate).toBeUndefined()
    expect([...repeated, late]).toEqual([...repeated, late].map(() => ({ ...first, duplicate: true })))
    const { messages } = await (await agent.getMemory()).recall(thread)
    expect(messages.filter(({ id }) => id === 'signal-1')).toHaveLength(1)
    expect(messages.filter(({ role }) => role === 'assistant')).toHaveLength(first?.action === 'persisted' ? 0 : 1)
  })

  it('[A2.2] of a repeated queued message on an active thread names the run of the first', async () => {
    const { agent, release } = busyAgent()
    openHeed({ agent }, make().store())
    await agent.sendMessage('Go.', thread).outcome
    const receipts = Array.from({ length: 4 }, () => agent.queueMessage({ contents: 'later', id: 'later' }, thread))
    const outcomes = await Promise.all(receipts.map(({ outcome }) => outcome))
    const { runId } = receipts[0] as SendReceipt
    expect(outcomes).toEqual([{ action: 'queued', runId }, ...Array.from({ length: 3 }, () => ({ action: 'queued', runId, duplicate: true }))])
    expect(await agent.listQueued(thread)).toHaveLength(1)
    release()
    await idle(agent, thread)
    expect(await agent.queueMessage({ contents: 'later', id: 'later' }, thread).outcome).toEqual({ action: 'woke', runId, step: 0, duplicate: true })
  })

  it('finds the thread by its runId alone, also before the run has begun', async () => {
    const { agent, model, release } = busyAgent()
    openHeed({ agent }, make().store())
    const first = agent.sendMessage('Go.', thread)
    const early = agent.sendMessage('early', { runId: first.runId })
    const runId = (await first.outcome).runId ?? ''
    const later = agent.sendMessage('later', { runId })
    const last = agent.sendMessage('last', thread)
    await Promise.all([early.stored, later.stored, last.stored])
    release()
    expect(await later.outcome).toEqual({ action: 'delivered', runId, step: 1 })
    expect((await early.outcome).runId).toBe(runId)
    await idle(agent, thread)
    expect(userTexts(model.calls[1])).toEqual(['Go.', 'early', 'later', 'last'])
    expect(await agent.sendMessage('too late', { runId }).outcome).toMatchObject({ action: 'rejected', code: 'no_active_run' })
    expect(await agent.sendMessage('elsewhere', { runId, threadId: 'thread-2' }).outcome).toMatchObject({ action: 'rejected', code: 'no_active_run' })
  })

  it('resolves attributes when the signal is accepted: for an active thread, and for an idle one', async () => {
    const { agent, model, release } = busyAgent()
    openHeed({ agent }, make().store())
    const conditional = { ...thread, ifActive: { attributes: { delivery: 'while-active' } }, ifIdle: { attributes: { delivery: 'new-message' } } }
    const message = { contents: 'Also the edge cases.', attributes: { source: 'chat' } }
    const idleSend = agent.sendMessage(message, conditional)
    await idleSend.outcome
    const activeSend = agent.sendMessage(message, conditional)
    await activeSend.stored
    release()
    await idle(agent, thread)
    expect(userTexts(model.calls[1])).toEqual([
      '<user source="chat" delivery="new-message">Also the edge cases.</user>',
      '<user source="chat" delivery="while-active">Also the edge cases.</user>',
    ])
    expect(activeSend.signal.attributes).toEqual({ source: 'chat' })
  })

  it('accepts the legacy signal types', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Answer.'], { loop: true }) })
    openHeed({ agent }, make().store())
    const user = agent.sendSignal({ type: 'user-message', contents: 'Hello.' }, thread)
    const reminder = agent.sendSignal({ type: 'system-reminder', contents: 'Be brief.', attributes: { pr: '123' } }, thread)
    await Promise.all([user.outcome, reminder.outcome])
    expect(user.signal).toMatchObject({ type: 'user', tagName: 'user' })
    expect(reminder.signal).toMatchObject({ type: 'reactive', tagName: 'system-reminder' })
    await idle(agent, thread)
    const { messages } = await (await agent.getMemory()).recall(thread)
    expect(messages.filter(({ role }) => role === 'signal').map(({ type }) => type)).toEqual(['user', 'system-reminder'])
  })

  it('keeps the order of sends, however long the memory function takes for each', async () => {
    const slow = gate()
    let waits = false
    const { Memory } = await import('../../src/index.ts')
    const hold = gate()
    const model = scriptedModel((call) => (call.index === 0 ? { text: 'First.', gate: hold.promise } : 'Later.'))
    const agent = new Agent({ id: 'guide', model, memory: async () => {
      const first = waits
      waits = false
      if (first) await slow.promise
      return new Memory()
    } })
    openHeed({ agent }, make().store())
    await agent.sendMessage('Go.', thread).outcome
    waits = true
    const receipts = ['slow', 'quick', 'quicker'].map((text) => agent.sendMessage(text, thread))
    slow.open()
    await Promise.all(receipts.map(({ stored }) => stored))
    hold.open()
    await idle(agent, thread)
    expect(userTexts(model.calls[1])).toEqual(['Go.', 'slow', 'quick', 'quicker'])
  })

  it('starts the woken run with the options of the send, including those that are not JSON', async () => {
    const model = scriptedModel([{ toolCalls: [{ toolName: 'extra' }] }, 'Done.'])
    const agent = new Agent({ id: 'guide', model })
    openHeed({ agent }, make().store())
    const used: unknown[] = []
    const extra = createTool({ id: 'extra', execute: () => (used.push(1), 'used') })
    agent.sendMessage('Go.', { ...thread, ifIdle: { streamOptions: { tools: { extra }, modelSettings: { temperature: 0.5 } } } })
    await soon(() => model.callCount).toBe(2)
    await idle(agent, thread)
    expect(used).toHaveLength(1)
    expect(model.calls[0]?.temperature).toBe(0.5)
  })

  it('keeps the order of sends, generate() and stream()', async () => {
    const { agent, model, release } = busyAgent()
    openHeed({ agent }, make().store())
    await agent.sendMessage('Go.', thread).outcome
    const answer = agent.generate('A question.', { memory })
    const stream = agent.stream('Another.', { memory })
    await soon(async () => (await agent.listQueued(thread)).length).toBe(2)
    release()
    expect((await answer).text).toBe('Later.')
    expect(await (await stream).text).toBe('Later.')
    expect(model.calls.map((call) => userTexts(call).at(-1))).toEqual(['Go.', 'A question.', 'Another.'])
  })

  it('releases a call that is aborted or cancelled before its turn', async () => {
    const { agent, model, release } = busyAgent()
    openHeed({ agent }, make().store())
    await agent.sendMessage('Go.', thread).outcome
    const controller = new AbortController()
    const aborted = expect(agent.generate('A.', { memory, abortSignal: controller.signal })).rejects.toMatchObject({ code: 'aborted' })
    const cancelled = expect(agent.generate('B.', { memory })).rejects.toMatchObject({ code: 'aborted' })
    await soon(async () => (await agent.listQueued(thread)).length).toBe(2)
    controller.abort()
    await aborted
    const [left] = await agent.listQueued(thread)
    await agent.cancelQueued({ ...thread, signalIds: [left?.id ?? ''] })
    await cancelled
    release()
    await idle(agent, thread)
    expect(model.callCount).toBe(1)
  })

  it('of a send while a thread fails to start: the next run that starts answers it', async () => {
    let fails = true
    const model = scriptedModel(['Answered.'], { loop: true })
    const agent = new Agent({ id: 'guide', model: () => (fails ? Promise.reject(new Error('no model today')) : model) })
    openHeed({ agent }, make().store())
    const watcher = await agent.subscribeToThread(thread)
    const reader = watcher.stream[Symbol.asyncIterator]()
    const first = agent.sendMessage('Go.', thread)
    const [error] = (await readUntil(reader, isType('error'))).slice(-1)
    expect(error).toMatchObject({ payload: { error: { message: expect.stringContaining('no model today') } } })
    expect(await first.outcome).toMatchObject({ action: 'woke' })
    fails = false
    agent.sendMessage('Again.', thread)
    await readUntil(reader, isType('finish'))
    expect(userTexts(model.calls[0])).toEqual(['Go.', 'Again.'])
  })
})

describe('an invalid send', () => {
  const agent = new Agent({ id: 'guide', model: scriptedModel([]), signalTags: ['alarm'] })
  const store = new InMemoryStore()

  const wrong: Array<[string, HeedErrorCode, () => unknown]> = [
    ['no target', 'invalid_argument', () => agent.sendMessage('x', {} as never)],
    ['no options', 'invalid_argument', () => Reflect.apply(agent.sendMessage, agent, ['x'])],
    ['no resource', 'invalid_argument', () => agent.sendMessage('x', { threadId: 't' } as never)],
    ['an empty thread', 'invalid_argument', () => agent.queueMessage('x', { threadId: '', resourceId: 'r' })],
    ['an unknown behavior when active', 'invalid_argument', () => agent.sendMessage('x', { ...thread, ifActive: { behavior: 'wake' as 'deliver' } })],
    ['an unknown behavior when idle', 'invalid_argument', () => agent.sendMessage('x', { ...thread, ifIdle: { behavior: 'deliver' as 'wake' } })],
    ['a bad attribute', 'invalid_signal', () => agent.sendMessage({ contents: 'x', attributes: { 'a b': 1 } }, thread)],
    ['a bad attribute when active', 'invalid_signal', () => agent.sendMessage('x', { ...thread, ifActive: { attributes: { 'a b': 1 } } })],
    ['a bad attribute when idle', 'invalid_signal', () => agent.sendMessage('x', { ...thread, ifIdle: { attributes: { '1st': 1 } } })],
    ['an unknown type', 'invalid_signal', () => agent.sendSignal({ type: 'alarm', contents: 'x' } as unknown as SignalInput, thread)],
    ['a bad tag', 'invalid_signal', () => agent.sendSignal({ type: 'notification', tagName: 'a b', contents: 'x' }, thread)],
    ['contents that are no contents', 'invalid_signal', () => agent.sendMessage({ contents: 7 as unknown as string }, thread)],
    ['contents without end', 'invalid_signal', () => agent.sendMessage('x'.repeat(50_000_000), thread)],
  ]

  it.each(wrong)('[A3.3] is thrown by the send itself: %s', async (_, code, send) => {
    openHeed({ agent }, store)
    expect(send).toThrow(expect.objectContaining({ code }))
    expect(await store.listThreads({ limit: 1 })).toMatchObject({ threads: [] })
  })
})

describe('stored', () => {
  it('[A1.1] resolves only after the store flushed, and rejects if the flush failed', async () => {
    const flushed = gate()
    let flushes = 0
    class SlowDisk extends InMemoryStore {
      override async flush() {
        flushes++
        if (flushes > 1) throw new Error('disk full')
        await flushed.promise
      }
    }
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Answer.'], { loop: true }) })
    openHeed({ agent }, new SlowDisk())
    const receipt = agent.sendMessage('Go.', thread)
    let stored = false
    const storing = receipt.stored.then(() => (stored = true))
    // The run does not wait for the disk.
    expect(await receipt.outcome).toMatchObject({ action: 'woke' })
    await idle(agent, thread)
    expect([flushes, stored]).toEqual([1, false])
    flushed.open()
    await storing
    await expect(agent.sendMessage('Again.', thread).stored).rejects.toThrow('disk full')
  })
})

it('the fields of a receipt are its own properties: a copy of a receipt has them too', async () => {
  const agent = new Agent({ id: 'a', model: scriptedModel(['Hi.']) })
  openHeed({ agent }, new InMemoryStore())
  const noted = agent.sendSignal({ id: 's1', type: 'notification', contents: 'x' }, { ...thread, ifIdle: { behavior: 'persist' } })
  const copy = { ...noted }
  expect([copy.accepted, copy.runId, copy.signal.id]).toEqual([true, noted.runId, 's1'])
  expect(copy.signal).toBe(noted.signal)
  await copy.persisted
  expect(await copy.outcome).toMatchObject({ action: 'persisted' })

  const plain = agent.sendMessage('Hi', thread)
  expect('persisted' in plain).toBe(false)
  expect(Object.keys({ ...plain }).sort()).toEqual(['accepted', 'outcome', 'runId', 'signal'])
  expect(await plain.outcome).toMatchObject({ action: 'woke' })
})
