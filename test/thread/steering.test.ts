import { describe, expect, it } from 'vitest'
import { Agent, createTool, type Chunk } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, placeKinds } from './places.ts'
import { gate, idle, isType, readUntil, soon, texts, types, userTexts } from './said.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }

describe.each(placeKinds())('a thread $name', ({ make }) => {
  it('[R2.2] lets all pending signals enter at a boundary, in order, as separate messages of one call', async () => {
    const model = scriptedModel([{ toolCalls: [{ toolName: 'look' }] }, 'Seen.'])
    const running = gate()
    const go = gate()
    const look = createTool({ id: 'look', execute: async () => (running.open(), await go.promise, 'a view') })
    const agent = new Agent({ id: 'guide', model, tools: { look } })
    openHeed({ agent }, make().store())

    const first = agent.sendMessage('Go.', thread)
    await running.promise
    const later = ['one', 'two', 'three'].map((text) => agent.sendMessage(text, thread))
    const signal = agent.sendSignal({ type: 'notification', contents: 'CI failed', attributes: { source: 'ci' } }, thread)
    await Promise.all([...later, signal].map(({ stored }) => stored))
    go.open()
    const outcomes = await Promise.all([...later, signal].map(({ outcome }) => outcome))

    const { runId } = await first.outcome
    expect(outcomes).toEqual(outcomes.map(() => ({ action: 'delivered', runId, step: 1 })))
    await soon(() => model.callCount).toBe(2)
    expect(texts(model.calls[1]?.prompt ?? [])).toEqual([
      'user: Go.',
      'assistant: look({})',
      'tool: = {"type":"text","value":"a view"}',
      'user: one',
      'user: two',
      'user: three',
      'user: <notification source="ci">CI failed</notification>',
    ])
  })

  it('[R2.3] cuts the stream for an interrupt, keeps the output so far, and continues with the input', async () => {
    const model = scriptedModel([{ text: ['I shall ', 'tell a long story'], hang: { parts: 2 } }, 'Very well.'])
    const agent = new Agent({ id: 'guide', model })
    openHeed({ agent }, make().store())
    const watcher = await agent.subscribeToThread(thread)
    const reader = watcher.stream[Symbol.asyncIterator]()

    const first = agent.sendMessage('Tell me a story.', thread)
    await readUntil(reader, isType('text-delta'))
    const cut = agent.sendMessage('Stop, a short one.', { ...thread, ifActive: { behavior: 'interrupt' } })
    const rest = await readUntil(reader, isType('finish'))

    const { runId } = await first.outcome
    expect(await cut.outcome).toEqual({ action: 'delivered', runId, step: 1 })
    expect(texts(model.calls[1]?.prompt ?? [])).toEqual(['user: Tell me a story.', 'assistant: I shall ', 'user: Stop, a short one.'])
    expect(types(rest)).toEqual([
      'text-end', 'data-user-message', 'step-finish',
      'step-start', 'response-metadata', 'text-start', 'text-delta', 'text-delta', 'text-end', 'step-finish', 'finish',
    ])
    const { messages } = await (await agent.getMemory()).recall(thread)
    expect(messages.map(({ role }) => role)).toEqual(['signal', 'assistant', 'signal', 'assistant'])
    expect(messages[1]?.content.metadata).toEqual({ incomplete: 'interrupted' })
  })

  it('[R2.3] honors an interrupt that arrives before the stream exists', async () => {
    const model = scriptedModel((call) => (call.prompt.length === 1 ? { text: 'Never said', hang: true } : 'Heard both.'))
    const asked = gate()
    const ready = gate()
    const agent = new Agent({ id: 'guide', model, instructions: async () => (asked.open(), await ready.promise, '') })
    openHeed({ agent }, make().store())

    agent.sendMessage('First.', thread)
    await asked.promise
    const second = agent.sendMessage('Second.', { ...thread, ifActive: { behavior: 'interrupt' } })
    await second.stored
    ready.open()

    expect(await second.outcome).toMatchObject({ action: 'delivered', step: 1 })
    await idle(agent, thread)
    expect(userTexts(model.calls.at(-1))).toEqual(['First.', 'Second.'])
  })

  it('[R4.2] gives each queued message a run of its own, in order, after the active one', async () => {
    const hold = gate()
    const model = scriptedModel((call) => (call.index === 0 ? { text: 'Answer 0', gate: hold.promise } : `Answer ${call.index}`))
    const agent = new Agent({ id: 'guide', model })
    openHeed({ agent }, make().store())
    const watcher = await agent.subscribeToThread(thread)

    const first = agent.sendMessage('now', thread)
    await first.outcome
    const queued = ['q1', 'q2', 'q3'].map((text) => agent.queueMessage(text, thread))
    const outcomes = await Promise.all(queued.map(({ outcome }) => outcome))
    expect(outcomes).toEqual(queued.map(({ runId }) => ({ action: 'queued', runId })))
    expect((await agent.listQueued(thread)).map(({ signal }) => signal?.contents)).toEqual(['q1', 'q2', 'q3'])
    hold.open()

    let finished = 0
    const chunks = await readUntil(watcher.stream, (chunk) => chunk.type === 'finish' && ++finished === 4)
    const runs = chunks.filter(isType('start')).map(({ runId }) => runId)
    expect(runs).toEqual([(await first.outcome).runId, ...queued.map(({ runId }) => runId)])
    expect(model.calls.map((call) => userTexts(call).at(-1))).toEqual(['now', 'q1', 'q2', 'q3'])
    expect(await agent.listQueued(thread)).toEqual([])
  })

  it('lists entering signals before the queue, reorders the queue, and removes cancelled signals', async () => {
    const hold = gate()
    const model = scriptedModel((call) => (call.index === 0 ? { text: 'Answer', gate: hold.promise } : 'Answer'))
    const agent = new Agent({ id: 'guide', model })
    openHeed({ agent }, make().store())
    await agent.sendMessage('now', thread).outcome
    const send = (id: string) => agent.queueMessage({ contents: id, id }, thread)
    const queued = ['q1', 'q2', 'q3'].map(send)
    const steer = agent.sendMessage({ contents: 'steer', id: 'steer' }, thread)
    await Promise.all([...queued, steer].map(({ stored }) => stored))

    expect((await agent.listQueued(thread)).map(({ id }) => id)).toEqual(['steer', 'q1', 'q2', 'q3'])
    expect(await agent.explain({ ...thread, signalId: 'q1' })).toMatchObject({ state: 'pending', route: 'queue', ahead: 1 })
    expect(await agent.reorderQueued({ ...thread, signalIds: ['q3', 'q1'] })).toEqual(['q3', 'q1', 'q2'])
    expect(await agent.cancelQueued({ ...thread, signalIds: ['q1', 'gone', 'steer'] })).toEqual(['q1', 'steer'])
    expect(await steer.outcome).toEqual({ action: 'discarded', reason: 'cancelled' })
    expect(await agent.explain({ ...thread, signalId: 'q1' })).toMatchObject({ state: 'cancelled' })
    hold.open()

    await soon(() => model.callCount).toBe(3)
    await idle(agent, thread)
    expect(model.calls.map((call) => userTexts(call).at(-1))).toEqual(['now', 'q3', 'q2'])
  })

  it('[R3.2] does not count a last step that an interrupt cut before its first chunk', async () => {
    const model = scriptedModel((call) => (userTexts(call).includes('Second.') ? 'Heard both.' : { text: 'Never said', hang: { parts: 0 } }))
    const agent = new Agent({ id: 'guide', model })
    openHeed({ agent }, make().store())

    const first = agent.sendMessage('First.', { ...thread, ifIdle: { streamOptions: { maxSteps: 1 } } })
    await soon(() => model.callCount).toBe(1)
    const second = agent.sendMessage('Second.', { ...thread, ifActive: { behavior: 'interrupt' } })
    const { runId } = await first.outcome
    expect(await second.outcome).toEqual({ action: 'delivered', runId, step: 1 })
    await idle(agent, thread)
    expect(userTexts(model.calls.at(-1))).toEqual(['First.', 'Second.'])
    expect(model.callCount).toBe(2)
  })

  it('[R3.2] answers a signal that arrives at maxSteps in another run', async () => {
    const running = gate()
    const go = gate()
    const look = createTool({ id: 'look', execute: async () => (running.open(), await go.promise, 1) })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'look' }] }, 'Answered.'])
    const agent = new Agent({ id: 'guide', model, tools: { look } })
    openHeed({ agent }, make().store())
    const first = agent.sendMessage('Go.', { ...thread, ifIdle: { streamOptions: { maxSteps: 1 } } })
    await running.promise
    const late = agent.sendMessage('And this?', thread)
    await late.stored
    go.open()

    const outcome = await late.outcome
    expect(outcome).toMatchObject({ action: 'woke', step: 0 })
    expect(outcome.runId).not.toBe((await first.outcome).runId)
    await idle(agent, thread)
    expect(userTexts(model.calls[1])).toEqual(['Go.', 'And this?'])
  })

  it('[R8.2] keeps the output before an abort and answers pending signals next', async () => {
    const model = scriptedModel([{ text: ['Half ', 'an answer'], hang: { parts: 2 } }, 'Answered.'])
    const agent = new Agent({ id: 'guide', model })
    openHeed({ agent }, make().store())
    const watcher = await agent.subscribeToThread(thread)
    const reader = watcher.stream[Symbol.asyncIterator]()
    const first = agent.sendMessage('Go.', thread)
    await readUntil(reader, isType('text-delta'))
    const waiting = agent.sendMessage('And this?', thread)
    await waiting.stored

    expect(watcher.activeRunId()).toBe((await first.outcome).runId)
    expect(watcher.abort()).toBe(true)
    expect(types(await readUntil(reader, isType('abort')))).toEqual(['text-end', 'step-finish', 'abort'])
    await readUntil(reader, isType('finish'))
    expect(await waiting.outcome).toMatchObject({ action: 'woke', step: 0 })
    expect(texts(model.calls[1]?.prompt ?? [])).toEqual(['user: Go.', 'assistant: Half ', 'user: And this?'])
    expect(watcher.abort()).toBe(false)
    expect(watcher.activeRunId()).toBeNull()
  })

  it('[R8.2] clears pending signals if requested, and settles all their outcomes', async () => {
    const model = scriptedModel([{ text: 'Long', hang: true }])
    const agent = new Agent({ id: 'guide', model })
    openHeed({ agent }, make().store())
    const watcher = await agent.subscribeToThread(thread)
    const reader = watcher.stream[Symbol.asyncIterator]()
    agent.sendMessage('Go.', thread)
    await readUntil(reader, isType('text-delta'))
    const steer = agent.sendMessage('steer', thread)
    const turn = agent.queueMessage('turn', thread)
    const call = agent.generate('call', { memory: { thread: thread.threadId, resource: thread.resourceId } })
    const failed = expect(call).rejects.toMatchObject({ code: 'aborted' })
    await soon(async () => (await agent.listQueued(thread)).length).toBe(3)

    expect(agent.abortThreadStream({ ...thread, clearPendingSignals: true })).toBe(true)
    expect(await steer.outcome).toEqual({ action: 'discarded', reason: 'cancelled' })
    expect(await turn.outcome).toMatchObject({ action: 'queued' })
    await failed
    await idle(agent, thread)
    expect(await agent.listQueued(thread)).toEqual([])
    expect(model.callCount).toBe(1)
  })

  it('[R8.2] aborts a run that is being prepared', async () => {
    const asked = gate()
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Never.']), instructions: () => (asked.open(), new Promise<string>(() => {})) })
    openHeed({ agent }, make().store())
    const watcher = await agent.subscribeToThread(thread)
    agent.sendMessage('Go.', thread)
    await asked.promise
    expect(agent.abortThreadStream(thread)).toBe(true)
    expect(types(await readUntil(watcher.stream, isType('abort')))).toEqual(['start', 'data-user-message', 'abort'])
    await idle(agent, thread)
  })

  it('aborts only the run that is expected', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel([{ text: 'Long', hang: true }]) })
    openHeed({ agent }, make().store())
    const { outcome } = agent.sendMessage('Go.', thread)
    const { runId = '' } = await outcome
    expect(agent.abortThreadStream({ ...thread, expectedRunId: 'another' })).toBe(false)
    expect(agent.abortThreadStream({ ...thread, expectedRunId: runId })).toBe(true)
    await idle(agent, thread)
    expect(agent.abortThreadStream(thread)).toBe(false)
  })

  it('runs to the end without a subscriber', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel(['All said.']) })
    openHeed({ agent }, make().store())
    agent.sendMessage('Go.', thread)
    const memory = await agent.getMemory()
    await soon(async () => (await memory.recall(thread)).messages.map(({ role }) => role)).toEqual(['signal', 'assistant'])
  })

  it('publishes a signal where the model reads it: after start, before step-finish, alone on an idle thread', async () => {
    const running = gate()
    const go = gate()
    const look = createTool({ id: 'look', execute: async () => (running.open(), await go.promise, 1) })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'look' }] }, 'Seen.'])
    const agent = new Agent({ id: 'guide', model, tools: { look } })
    openHeed({ agent }, make().store())
    const watcher = await agent.subscribeToThread(thread)
    const reader = watcher.stream[Symbol.asyncIterator]()

    const note = agent.sendSignal({ type: 'reactive', contents: 'kept' }, { ...thread, ifIdle: { behavior: 'persist', attributes: { when: 'idle' } } })
    await note.persisted
    expect(await readUntil(reader, () => true)).toMatchObject([{ type: 'data-signal', data: { id: note.signal.id, contents: 'kept', attributes: { when: 'idle' } } }])

    agent.sendMessage('Go.', thread)
    await running.promise
    const steer = agent.sendMessage('steer', thread)
    await steer.stored
    go.open()
    const chunks = await readUntil(reader, isType('finish'))
    const order = types(chunks).filter((type) => !type.startsWith('tool-call') && !type.startsWith('text') && type !== 'response-metadata')
    expect(order).toEqual(['start', 'data-user-message', 'step-start', 'tool-result', 'data-user-message', 'step-finish', 'step-start', 'step-finish', 'finish'])
    const echoes = chunks.filter(isType('data-user-message')) as Array<Chunk & { data: { contents: string } }>
    expect(echoes.map(({ data }) => data.contents)).toEqual(['Go.', 'steer'])
  })

  it('keeps a signal persisted while active out of the running loop, and readable at once', async () => {
    const running = gate()
    const go = gate()
    const look = createTool({ id: 'look', execute: async () => (running.open(), await go.promise, 1) })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'look' }] }, 'Seen.', 'Next.'])
    const agent = new Agent({ id: 'guide', model, tools: { look } })
    openHeed({ agent }, make().store())
    agent.sendMessage('Go.', thread)
    await running.promise
    const note = agent.sendMessage('a note', { ...thread, ifActive: { behavior: 'persist' } })
    await note.persisted
    expect(await note.outcome).toEqual({ action: 'persisted' })
    const memory = await agent.getMemory()
    const contents = async () => (await memory.recall(thread)).messages.map(({ role, content }) => `${role}: ${content.parts.map((part) => ('text' in part ? part.text : part.type)).join(' ')}`)
    expect((await contents()).at(-1)).toBe('signal: a note')
    go.open()
    await idle(agent, thread)
    expect(userTexts(model.calls[1])).toEqual(['Go.'])
    expect((await contents()).at(-1)).toBe('signal: a note')
    await agent.sendMessage('Now?', thread).outcome
    await soon(() => model.callCount).toBe(3)
    expect(userTexts(model.calls[2])).toEqual(['Go.', 'a note', 'Now?'])
  })
})
