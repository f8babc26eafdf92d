import { describe, expect, it } from 'vitest'
import { Agent, createTool, type Chunk } from '../../src/index.ts'
import { scriptedModel, virtualClock, type Script } from '../../src/testing/index.ts'
import { openHeed, sharedPlaceKinds } from './places.ts'
import { gate, idle, isType, readUntil, soon, texts, types, userTexts } from './said.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }
const memory = { thread: thread.threadId, resource: thread.resourceId }
const pay = (toolCallId: string, amount: number) => ({ toolName: 'pay', toolCallId, input: { amount } })

/** An agent that has to ask before it pays, and may ask for more while it orders. */
function shop(script: Script, instructions: () => string | Promise<string> = () => '') {
  const model = scriptedModel(script)
  const paid: number[] = []
  const agent = new Agent({
    id: 'shop',
    model,
    instructions,
    tools: {
      pay: createTool({
        id: 'pay',
        requireApproval: true,
        inputSchema: { type: 'object', properties: { amount: { type: 'number' } } },
        execute: (input) => (paid.push((input as { amount: number }).amount), 'paid'),
      }),
      order: createTool({
        id: 'order',
        execute: (_, { resumeData, suspend }) => (resumeData === undefined ? suspend({ question: 'Which size?' }) : `ordered ${JSON.stringify(resumeData)}`),
      }),
      look: createTool({ id: 'look', execute: () => 'looked' }),
    },
  })
  return { agent, model, paid }
}

type Shop = ReturnType<typeof shop>['agent']

/** Sends, and waits until the run is suspended. */
async function suspend(agent: Shop, text = 'Buy it.'): Promise<{ reader: AsyncIterator<Chunk>; chunks: Chunk[]; runId: string }> {
  const watcher = await agent.subscribeToThread(thread)
  const reader = watcher.stream[Symbol.asyncIterator]()
  const { runId } = await agent.sendMessage(text, thread).outcome
  const chunks = await readUntil(reader, isType('tool-call-approval', 'tool-call-suspended'))
  return { reader, chunks, runId: runId ?? '' }
}

describe.each(sharedPlaceKinds())('a tool call that waits for a decision, $name', ({ make }) => {
  it('continues after approval on the same subscription, without another start chunk', async () => {
    const { agent, model, paid } = shop([{ toolCalls: [pay('c1', 5)] }, 'Bought.'])
    openHeed({ agent }, make().store())
    const { reader, chunks, runId } = await suspend(agent)
    expect(chunks.at(-1)).toMatchObject({ type: 'tool-call-approval', runId, payload: { toolCallId: 'c1', toolName: 'pay', args: { amount: 5 } } })
    expect(types(chunks)).not.toContain('step-finish')
    expect(await agent.activeRun(thread)).toEqual({ runId, agentId: 'shop', status: 'suspended' })
    expect((await agent.listActiveThreads({ resourceId: 'user-1' })).map(({ id, status }) => [id, status])).toEqual([['thread-1', 'suspended']])
    expect((await agent.listSuspendedRuns({ threadId: 'thread-1' })).runs).toMatchObject([
      { runId, status: 'suspended', threadId: 'thread-1', resourceId: 'user-1', toolCalls: [{ toolCallId: 'c1', toolName: 'pay', args: { amount: 5 }, requiresApproval: true }] },
    ])
    expect(paid).toEqual([])

    expect(await agent.sendToolApproval({ ...thread, toolCallId: 'c1', approved: true })).toEqual({
      accepted: true, runId, toolCallId: 'c1', decided: { approvalId: expect.any(String) as string, approved: true, at: expect.any(Date) as Date },
    })
    const rest = await readUntil(reader, isType('finish'))
    expect(types(rest)).toEqual(['tool-result', 'step-finish', 'step-start', 'response-metadata', 'text-start', 'text-delta', 'text-end', 'step-finish', 'finish'])
    expect(new Set(rest.map((chunk) => chunk.runId))).toEqual(new Set([runId]))
    expect(paid).toEqual([5])
    expect(texts(model.calls[1]?.prompt ?? [])).toEqual(['user: Buy it.', 'assistant: pay({"amount":5})', 'tool: = {"type":"text","value":"paid"}'])
    await expect(agent.sendToolApproval({ ...thread, toolCallId: 'c1', approved: true })).rejects.toMatchObject({ code: 'run_not_suspended' })
  })

  it('can be decided as soon as its chunk is published', async () => {
    const { agent, paid } = shop([{ toolCalls: [pay('c1', 5)] }, 'Bought.'])
    openHeed({ agent }, make().store())
    const watcher = await agent.subscribeToThread(thread)
    agent.sendMessage('Buy it.', thread)
    for await (const chunk of watcher.stream) {
      if (chunk.type === 'tool-call-approval') await agent.sendToolApproval({ ...thread, toolCallId: 'c1', approved: true })
      if (chunk.type === 'finish') break
    }
    expect(paid).toEqual([5])
  })

  it('is declined with a reason that the model reads', async () => {
    const { agent, model, paid } = shop([{ toolCalls: [pay('c1', 5)] }, 'As you wish.'])
    openHeed({ agent }, make().store())
    const { reader } = await suspend(agent)
    await agent.sendToolApproval({ ...thread, approved: false, declineContext: { reason: 'Too dear.' } })
    const rest = await readUntil(reader, isType('finish'))
    expect(rest[0]).toMatchObject({ type: 'tool-output-denied', payload: { toolCallId: 'c1', reason: 'Too dear.' } })
    expect(texts(model.calls[1]?.prompt ?? []).at(-1)).toContain('Too dear.')
    expect(paid).toEqual([])
  })

  it('waits for all decisions, and requires a toolCallId while several calls wait', async () => {
    const { agent, model, paid } = shop([{ toolCalls: [pay('c1', 1), { toolName: 'look', toolCallId: 'c2' }, pay('c3', 3)] }, 'Done.'])
    openHeed({ agent }, make().store())
    const { reader, runId } = await suspend(agent)
    expect((await readUntil(reader, () => true))[0]).toMatchObject({ type: 'tool-call-approval', payload: { toolCallId: 'c3' } })
    await expect(agent.sendToolApproval({ ...thread, approved: true })).rejects.toMatchObject({ code: 'invalid_argument' })
    await agent.sendToolApproval({ ...thread, toolCallId: 'c3', approved: true })
    expect(await agent.activeRun(thread)).toMatchObject({ status: 'suspended' })
    expect((await agent.listSuspendedRuns()).runs[0]?.toolCalls.map(({ toolCallId }) => toolCallId)).toEqual(['c1'])
    expect(await agent.listSuspendedRuns({ perPage: 0, total: true })).toEqual({ runs: [], total: 1 })
    expect((await agent.listSuspendedRuns({ resourceId: 'user-2', total: true })).total).toBe(0)
    await agent.sendToolApproval({ ...thread, approved: false })
    await readUntil(reader, isType('finish'))
    expect(paid).toEqual([3])
    const prompt = texts(model.calls[1]?.prompt ?? [])
    expect(prompt.slice(2).join('\n')).toMatch(/looked[^]*paid/)
    expect(runId).toBe((await agent.explain({ ...thread, signalId: (await signalIds(agent))[0] ?? '' }))?.runId)
  })

  it('is resumed with data', async () => {
    const { agent, model } = shop([{ toolCalls: [{ toolName: 'order', toolCallId: 'c1' }] }, 'Ordered.'])
    openHeed({ agent }, make().store())
    const { reader, chunks, runId } = await suspend(agent)
    expect(chunks.at(-1)).toMatchObject({ type: 'tool-call-suspended', payload: { toolCallId: 'c1', suspendPayload: { question: 'Which size?' } } })
    expect((await agent.listSuspendedRuns()).runs[0]?.toolCalls).toMatchObject([{ requiresApproval: false, suspendPayload: { question: 'Which size?' } }])
    expect(await agent.sendStreamResume({ ...thread, runId, toolCallId: 'c1', resumeData: { size: 'L' } })).toEqual({
      accepted: true, runId, toolCallId: 'c1', decided: { approvalId: expect.any(String) as string, at: expect.any(Date) as Date },
    })
    await readUntil(reader, isType('finish'))
    expect(texts(model.calls[1]?.prompt ?? []).at(-1)).toContain('ordered {\\"size\\":\\"L\\"}')
  })

  it('returns the stream of the continued run from approveToolCall, declineToolCall and resumeStream', async () => {
    const { agent, paid } = shop([
      { toolCalls: [pay('c1', 1)] }, 'One.', { toolCalls: [pay('c2', 2)] }, 'Two.', { toolCalls: [{ toolName: 'order', toolCallId: 'c3' }] }, 'Three.',
    ])
    openHeed({ agent }, make().store())
    const texts: string[] = []
    for (const answer of [
      (runId: string) => agent.approveToolCall({ runId, toolCallId: 'c1' }),
      (runId: string) => agent.declineToolCall({ runId, reason: 'no' }),
      (runId: string) => agent.resumeStream({ size: 'S' }, { runId }),
    ]) {
      const asked = await agent.stream('Next.', { memory })
      expect(await asked.finishReason).toBe('suspended')
      expect((await asked.suspended).length).toBe(1)
      const stream = await answer(asked.runId)
      const chunks = await readUntil(stream.fullStream, () => false)
      expect(chunks[0]?.type).toMatch(/^tool-/)
      expect(chunks.at(-1)?.type).toBe('finish')
      texts.push(await stream.text)
    }
    expect(texts).toEqual(['One.', 'Two.', 'Three.'])
    expect(paid).toEqual([1])
    await expect(agent.approveToolCall({ runId: 'unknown' })).rejects.toMatchObject({ code: 'run_not_suspended' })
  })

  it('gives each decider of several calls the stream of the continued run', async () => {
    const { agent } = shop([{ toolCalls: [pay('c1', 1), pay('c2', 2)] }, 'Both.'])
    openHeed({ agent }, make().store())
    const { runId } = await suspend(agent)
    const first = await agent.approveToolCall({ runId, toolCallId: 'c1' })
    const second = await agent.declineToolCall({ runId, toolCallId: 'c2' })
    expect(await Promise.all([first.text, second.text])).toEqual(['Both.', 'Both.'])
  })

  it('continues with the tools and callbacks of its call', async () => {
    const { agent, model } = shop([{ toolCalls: [{ toolName: 'gift', toolCallId: 'c1' }] }, 'Given.'])
    openHeed({ agent }, make().store())
    const gift = createTool({ id: 'gift', requireApproval: true, execute: () => 'a ribbon' })
    let finished = 0
    const asked = await agent.stream('A gift.', { memory, tools: { gift }, onFinish: () => void finished++ })
    expect(await asked.finishReason).toBe('suspended')
    await (await agent.approveToolCall({ runId: asked.runId })).consumeStream()
    expect(texts(model.calls[1]?.prompt ?? []).at(-1)).toContain('a ribbon')
    expect(finished).toBe(1)
  })

  it('[A4.1] keeps input pending and listed, and lets it enter after the result', async () => {
    const { agent, model } = shop([{ toolCalls: [pay('c1', 5)] }, 'Bought.'])
    openHeed({ agent }, make().store())
    const { reader, runId } = await suspend(agent)
    const more = agent.sendMessage('And wrap it.', thread)
    expect(await more.outcome).toEqual({ action: 'queued', reason: 'suspended', runId })
    expect((await agent.listQueued(thread)).map(({ signal, runId: into }) => [signal?.contents, into])).toEqual([['And wrap it.', runId]])
    const note = agent.sendSignal({ type: 'reactive', contents: 'kept' }, { ...thread, ifActive: { behavior: 'persist' } })
    expect(await note.outcome).toEqual({ action: 'persisted' })
    expect((await readUntil(reader, () => true))[0]).toMatchObject({ type: 'data-signal', data: { contents: 'kept' } })
    await agent.sendToolApproval({ ...thread, approved: true })
    const rest = await readUntil(reader, isType('finish'))
    expect(types(rest).slice(0, 3)).toEqual(['tool-result', 'data-user-message', 'step-finish'])
    expect(userTexts(model.calls[1])).toEqual(['Buy it.', 'And wrap it.'])
    expect(await agent.explain({ ...thread, signalId: more.signal.id })).toMatchObject({ state: 'consumed', runId, step: 1 })
  })

  it('[A4.1] resolves the outcomes of sends made before the suspension', async () => {
    const running = gate()
    const go = gate()
    const model = scriptedModel([{ toolCalls: [{ toolName: 'both', toolCallId: 'c1' }] }, 'Done.'])
    const both = createTool({ id: 'both', execute: async (_, { resumeData, suspend }) => (running.open(), await go.promise, resumeData ?? suspend({})) })
    const agent = new Agent({ id: 'shop', model, tools: { both } })
    openHeed({ agent }, make().store())
    const { runId } = await agent.sendMessage('Go.', thread).outcome
    await running.promise
    const steer = agent.sendMessage('steer', thread)
    const call = expect(agent.generate('a turn', { memory })).rejects.toMatchObject({ code: 'thread_suspended' })
    await soon(async () => (await agent.listQueued(thread)).length).toBe(2)
    go.open()
    expect(await steer.outcome).toEqual({ action: 'queued', reason: 'suspended', runId })
    await call
    expect((await agent.listQueued(thread)).map(({ signal }) => signal?.contents)).toEqual(['steer'])
    await (await agent.resumeStream({ ok: true }, { runId: runId ?? '' })).consumeStream()
    expect(userTexts(model.calls[1])).toEqual(['Go.', 'steer'])
  })

  it('rejects generate() and stream() instead of blocking them', async () => {
    const { agent } = shop([{ toolCalls: [pay('c1', 5)] }])
    openHeed({ agent }, make().store())
    await suspend(agent)
    await expect(agent.generate('Hello?', { memory })).rejects.toMatchObject({ code: 'thread_suspended' })
    await expect(agent.stream('Hello?', { memory })).rejects.toMatchObject({ code: 'thread_suspended' })
    expect(await agent.listQueued(thread)).toEqual([])
  })

  it('[R2.3] is declined by an interrupt, and the input enters', async () => {
    const { agent, model, paid } = shop([{ toolCalls: [pay('c1', 1), pay('c2', 2)] }, 'Never mind.'])
    openHeed({ agent }, make().store())
    const { reader, runId } = await suspend(agent)
    await readUntil(reader, () => true)
    const instead = agent.sendMessage('Stop, something else.', { ...thread, ifActive: { behavior: 'interrupt' } })
    expect(await instead.outcome).toEqual({ action: 'delivered', runId, step: 1 })
    const rest = await readUntil(reader, isType('finish'))
    expect(types(rest).filter((type) => type === 'tool-output-denied')).toHaveLength(2)
    expect(userTexts(model.calls[1])).toEqual(['Buy it.', 'Stop, something else.'])
    expect(paid).toEqual([])
  })

  it('[R2.3] is declined by an interrupt sent before the suspension', async () => {
    const running = gate()
    const go = gate()
    const model = scriptedModel([{ toolCalls: [{ toolName: 'both', toolCallId: 'c1' }] }, 'Done.'])
    const both = createTool({ id: 'both', execute: async (_, { suspend }) => (running.open(), await go.promise, suspend({})) })
    const agent = new Agent({ id: 'shop', model, tools: { both } })
    openHeed({ agent }, make().store())
    await agent.sendMessage('Go.', thread).outcome
    await running.promise
    const instead = agent.sendMessage('Stop.', { ...thread, ifActive: { behavior: 'interrupt' } })
    await instead.stored
    go.open()
    expect(await instead.outcome).toMatchObject({ action: 'delivered', step: 1 })
    await idle(agent, thread)
    expect(userTexts(model.calls[1])).toEqual(['Go.', 'Stop.'])
  })

  it('[R6.7] is listed by the time of its suspension', async () => {
    const clock = virtualClock(1_000)
    const { agent } = shop(async () => {
      await clock.advance(60_000)
      return { toolCalls: [pay('c1', 5)] }
    })
    openHeed({ agent }, make({ clock }).store())
    await suspend(agent)
    const found = async (from: number, to: number) => {
      const { runs, total } = await agent.listSuspendedRuns({ fromDate: new Date(from), toDate: new Date(to), total: true })
      expect(total).toBe(runs.length)
      return runs.map(({ suspendedAt }) => suspendedAt.getTime())
    }
    expect(await found(61_000, 61_000)).toEqual([61_000])
    expect(await found(0, 60_999)).toEqual([])
    expect(await found(61_001, 99_000)).toEqual([])
  })

  it('[R8.5] is reported to the model as not run after an abort; a call that had started has an unknown result', async () => {
    const { agent, model, paid } = shop([{ toolCalls: [pay('c1', 5), { toolName: 'look', toolCallId: 'c2', input: {} }, { toolName: 'order', toolCallId: 'c3', input: {} }] }, 'I see.'])
    openHeed({ agent }, make().store())
    const { reader } = await suspend(agent)
    await expect.poll(async () => (await agent.listSuspendedRuns({ threadId: 'thread-1' })).runs[0]?.toolCalls.length).toBe(2)
    expect(await agent.abortRun(thread)).toMatchObject({ aborted: true })
    const told = await readUntil(reader, isType('abort'))
    expect(told.filter(isType('tool-output-denied'))).toMatchObject([{ payload: { toolCallId: 'c1', toolName: 'pay', reason: expect.stringContaining('was not run') as string } }])
    await agent.sendMessage('What happened?', thread).outcome
    await idle(agent, thread)
    expect(paid).toEqual([])
    const results = model.calls.at(-1)?.prompt.flatMap(({ role, content }) => (role === 'tool' ? content : [])).map((part) => (part.type === 'tool-result' ? [part.toolCallId, part.output.type] : []))
    expect(results?.toSorted()).toEqual([['c1', 'execution-denied'], ['c2', 'text'], ['c3', 'error-text']])
  })

  it('[R8.6] was not run if its run is aborted while another call of the step runs', async () => {
    const [asking, running] = [gate(), gate()]
    const { agent, model, paid } = shop([{ toolCalls: [pay('c1', 5), { toolName: 'ask', toolCallId: 'c2' }, { toolName: 'slow', toolCallId: 'c3' }] }, 'I see.'])
    const ask = createTool({ id: 'ask', execute: (_, { suspend }) => (asking.open(), suspend({})) })
    const slow = createTool({ id: 'slow', execute: (_, { abortSignal }) => (running.open(), new Promise((resolve) => abortSignal.addEventListener('abort', resolve))) })
    openHeed({ agent }, make().store())
    const reader = (await agent.subscribeToThread(thread)).stream[Symbol.asyncIterator]()
    const call = expect(agent.generate('Buy it.', { memory, tools: { ask, slow } })).rejects.toMatchObject({ code: 'aborted' })
    await Promise.all([asking.promise, running.promise])
    expect(await agent.abortRun(thread)).toMatchObject({ aborted: true })
    await call
    const shown = (await readUntil(reader, isType('abort'))).filter(isType('tool-output-denied', 'tool-error')) as Array<{ payload: { toolCallId: string } }>
    expect(shown.toSorted((one, other) => (one.payload.toolCallId < other.payload.toolCallId ? -1 : 1))).toMatchObject([
      { type: 'tool-output-denied', payload: { toolCallId: 'c1', reason: expect.stringContaining('was not run') as string } },
      { type: 'tool-error', payload: { toolCallId: 'c2', error: { message: expect.stringContaining('was stopped') as string } } },
      { type: 'tool-error', payload: { toolCallId: 'c3' } },
    ])
    await agent.sendMessage('What happened?', thread).outcome
    await idle(agent, thread)
    expect(paid).toEqual([])
    const results = model.calls.at(-1)?.prompt.flatMap(({ role, content }) => (role === 'tool' ? content : [])).map((part) => (part.type === 'tool-result' ? [part.toolCallId, part.output.type] : []))
    expect(results).toEqual([['c1', 'execution-denied'], ['c2', 'error-text'], ['c3', 'error-text']])
    expect(JSON.stringify(model.calls.at(-1)?.prompt)).not.toContain('may or may not have taken effect')
  })

  it('[R8.6] and is decided, has a result if its run is aborted before it continues', async () => {
    const continues = gate()
    let prepared = 0
    const instructions = () => (++prepared === 2 ? (continues.open(), new Promise<string>(() => {})) : '')
    const { agent, model, paid } = shop([{ toolCalls: [pay('c1', 5), pay('c2', 6)] }, 'I see.'], instructions)
    openHeed({ agent }, make().store())
    const { reader } = await suspend(agent)
    await agent.sendToolApproval({ ...thread, toolCallId: 'c1', approved: true })
    await agent.sendToolApproval({ ...thread, toolCallId: 'c2', approved: false, by: 'ann', declineContext: { reason: 'Too dear.' } })
    await continues.promise
    expect(await agent.abortRun(thread)).toMatchObject({ aborted: true })
    expect((await readUntil(reader, isType('abort'))).filter(isType('tool-output-denied'))).toMatchObject([
      { payload: { toolCallId: 'c1', reason: expect.stringContaining('was not run') as string } },
      { payload: { toolCallId: 'c2', by: 'ann', reason: 'Too dear.' } },
    ])
    await agent.sendMessage('What happened?', thread).outcome
    await idle(agent, thread)
    expect(paid).toEqual([])
    const results = model.calls.at(-1)?.prompt.flatMap(({ role, content }) => (role === 'tool' ? content : [])).map((part) => (part.type === 'tool-result' ? [part.toolCallId, part.output] : []))
    expect(results).toMatchObject([['c1', { type: 'execution-denied' }], ['c2', { type: 'execution-denied', reason: 'Too dear.' }]])
  })

  it('[R8.2] ends with an abort, and the pending signals behind it are answered', async () => {
    const { agent, model, paid } = shop([{ toolCalls: [pay('c1', 5)] }, 'Answered.'])
    openHeed({ agent }, make().store())
    const { reader, runId } = await suspend(agent)
    const waiting = agent.sendMessage('And?', thread)
    expect(await waiting.outcome).toMatchObject({ action: 'queued', reason: 'suspended' })
    expect(agent.abortThreadStream(thread)).toBe(true)
    expect((await readUntil(reader, isType('abort'))).at(-1)).toMatchObject({ type: 'abort', runId })
    const rest = await readUntil(reader, isType('finish'))
    expect(rest[0]?.runId).not.toBe(runId)
    expect(userTexts(model.calls[1])).toEqual(['Buy it.', 'And?'])
    expect(paid).toEqual([])
    expect((await agent.listSuspendedRuns()).runs).toEqual([])
  })

  it('[R8.2] ends with an abort from a process that did not run it, and subscribers receive the abort', async () => {
    const place = make()
    const before = shop([{ toolCalls: [pay('c1', 1), pay('c2', 2)] }])
    const first = openHeed({ agent: before.agent }, place.store())
    await suspend(before.agent)
    await first.close()

    const { agent } = shop(['Unused.'])
    openHeed({ agent }, place.store())
    const run = await agent.activeRun(thread)
    const following = await agent.approveToolCall({ runId: run?.runId ?? '', toolCallId: 'c1' })
    agent.abortThreadStream(thread)
    await idle(agent, thread)
    await expect(following.text).rejects.toMatchObject({ code: 'aborted' })
  })

  it('[R6.2] is approved after a restart', async () => {
    const place = make()
    const before = shop([{ toolCalls: [pay('c1', 5)] }])
    const first = openHeed({ agent: before.agent }, place.store())
    const { runId } = await suspend(before.agent)
    expect(await before.agent.sendMessage('And wrap it.', thread).outcome).toMatchObject({ action: 'queued' })
    await first.close()

    const { agent, model, paid } = shop(['Bought.'])
    openHeed({ agent }, place.store())
    expect(await agent.activeRun(thread)).toEqual({ runId, agentId: 'shop', status: 'suspended' })
    const watcher = await agent.subscribeToThread({ ...thread, snapshot: true })
    const reader = watcher.stream[Symbol.asyncIterator]()
    const [snapshot] = await readUntil(reader, () => true)
    expect(snapshot).toMatchObject({ type: 'data-thread-snapshot', data: { status: 'suspended', runId, suspended: [{ toolCallId: 'c1', args: { amount: 5 } }] } })
    expect(watcher.activeRunId()).toBe(runId)
    await agent.sendToolApproval({ ...thread, toolCallId: 'c1', approved: true })
    await readUntil(reader, isType('finish'))
    expect(paid).toEqual([5])
    expect(texts(model.calls[0]?.prompt ?? [])).toEqual(['user: Buy it.', 'assistant: pay({"amount":5})', 'tool: = {"type":"text","value":"paid"}', 'user: And wrap it.'])
  })

  it('[R5.2] does not run twice if the process dies after the approval', async () => {
    const place = make()
    const running = gate()
    const model = scriptedModel([{ toolCalls: [pay('c1', 5)] }])
    const stuck = createTool({ id: 'pay', requireApproval: true, execute: (_, { abortSignal }) => (running.open(), new Promise((resolve) => abortSignal.addEventListener('abort', resolve))) })
    const agent = new Agent({ id: 'shop', model, tools: { pay: stuck } })
    const first = openHeed({ agent }, place.store())
    await agent.sendMessage('Buy it.', thread).outcome
    await soon(async () => (await agent.activeRun(thread))?.status).toBe('suspended')
    await agent.sendToolApproval({ ...thread, approved: true })
    await running.promise
    await first.close()

    const after = shop(['I shall check.'])
    const second = openHeed({ agent: after.agent }, place.store())
    await second.start()
    await idle(after.agent, thread)
    expect(after.paid).toEqual([])
    expect(texts(after.model.calls[0]?.prompt ?? []).at(-1)).toContain('It is not known whether it took effect')
  })
})

async function signalIds(agent: Shop): Promise<string[]> {
  const { messages } = await (await agent.getMemory()).recall(thread)
  return messages.filter(({ role }) => role === 'signal').map(({ id }) => id)
}
