import { describe, expect, it } from 'vitest'
import { Agent, createTool, type Chunk } from '../../src/index.ts'
import { scriptedModel, type ScriptedStep } from '../../src/testing/index.ts'
import { faulty } from './faulty-store.ts'
import { mortal, openHeed, sharedPlaceKinds } from './places.ts'
import { collect, gate, idle, isType, readUntil, soon, texts, userTexts } from './said.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }
const child = { resourceId: 'user-1', threadId: 'child:thread-1/ask' }
const ask = { toolName: 'agent-buyer', toolCallId: 'ask', input: { prompt: 'Buy a hat.' } }
const pay = (toolCallId = 'pay') => ({ toolName: 'pay', toolCallId, input: { amount: 5 } })

/** A clerk who has a buyer, who has to ask before it pays. What the models say follows from what they are shown. */
function office(options: { hang?: boolean; beside?: (signal: AbortSignal) => Promise<void>; pays?: string[] } = {}) {
  const { pays = ['pay'] } = options
  const paid: number[] = []
  const buyerModel = scriptedModel(({ prompt }): ScriptedStep => {
    const said = prompt.filter(({ role }) => role === 'tool').length
    if (said === 0 && pays.length > 0) return { toolCalls: pays.map(pay) }
    return { text: `Bought: ${texts(prompt).at(-1)}`, hang: options.hang ?? false }
  })
  const buyer = new Agent({
    id: 'buyer',
    model: buyerModel,
    tools: {
      pay: createTool({ id: 'pay', requireApproval: true, execute: () => `paid ${paid.push(5)}` }),
      size: createTool({ id: 'size', execute: (_, { resumeData, suspend }) => (resumeData === undefined ? suspend({ question: 'Which size?' }) : `size ${String(resumeData)}`) }),
    },
  })
  const clerkModel = scriptedModel(({ prompt }): ScriptedStep => {
    if (prompt.some(({ role }) => role === 'tool')) return `Clerk: ${texts(prompt).at(-1)}`
    return { toolCalls: [ask, ...(options.beside ? [{ toolName: 'beside', toolCallId: 'beside', input: {} }] : [])] }
  })
  const beside = createTool({ id: 'beside', execute: async (_, { abortSignal }) => (await options.beside?.(abortSignal), 'beside') })
  const clerk = new Agent({ id: 'clerk', model: clerkModel, agents: { buyer }, ...(options.beside ? { tools: { beside } } : {}) })
  return { clerk, buyer, clerkModel, buyerModel, paid }
}

type Office = ReturnType<typeof office>

/** Asks the clerk, and waits until its thread waits for a decision. */
async function suspend({ clerk }: Office): Promise<{ chunks: Chunk[]; runId: string; reader: AsyncIterator<Chunk> }> {
  const reader = (await clerk.subscribeToThread(thread)).stream[Symbol.asyncIterator]()
  const { runId = '' } = await clerk.sendMessage('A hat, please.', thread).outcome
  const chunks = await readUntil(reader, isType('tool-call-approval', 'tool-call-suspended'))
  return { chunks, runId, reader }
}

async function transcript(agent: Agent, of = thread): Promise<string[]> {
  const { messages } = await (await agent.getMemory()).recall({ ...of, perPage: false })
  return messages.map(({ role }) => role)
}

const lastText = async (agent: Agent) => {
  const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
  return messages.at(-1)?.content.parts.flatMap((part) => (part.type === 'text' ? part.text : [])).join('')
}

const untilAborted = (signal: AbortSignal) => new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))

describe.each(sharedPlaceKinds())('an agent that another agent calls, $name', ({ make }) => {
  it('[R9.1] continues after a restart, and the calling agent follows it', async () => {
    const place = make()
    const before = office({ hang: true, pays: [] })
    const first = openHeed({ clerk: before.clerk }, place.store())
    before.clerk.sendMessage('A hat, please.', thread)
    await soon(() => before.buyerModel.callCount).toBe(1)
    await first.close()

    const after = office({ pays: [] })
    await openHeed({ clerk: after.clerk }, place.store()).start()
    await idle(after.clerk, thread)
    expect(after.buyerModel.calls.map(userTexts)).toEqual([['Buy a hat.']])
    expect(after.clerkModel.callCount).toBe(1)
    expect(await transcript(after.clerk, child)).toEqual(['user', 'assistant'])
    expect(await lastText(after.clerk)).toContain('Bought: user: Buy a hat.')
  })

  it('[R9.1] is not called again if it had answered before the restart', async () => {
    const place = make()
    const before = office({ pays: [], beside: untilAborted })
    const first = openHeed({ clerk: before.clerk }, place.store())
    const seen = collect(await before.clerk.subscribeToThread(thread))
    before.clerk.sendMessage('A hat, please.', thread)
    await soon(() => seen.chunks.some(({ type }) => type === 'tool-result')).toBe(true)
    await first.close()

    const after = office({ pays: [], beside: async () => {} })
    await openHeed({ clerk: after.clerk }, place.store()).start()
    await idle(after.clerk, thread)
    expect([after.buyerModel.callCount, after.clerkModel.callCount]).toEqual([0, 1])
    expect(texts(after.clerkModel.calls[0]?.prompt ?? []).join()).toMatch(/Bought: user: Buy a hat\.[^]*interrupted/)
    expect(await transcript(after.clerk, child)).toEqual(['user', 'assistant'])
  })

  it('[R9.1] is called again by a call with the id of an earlier one', async () => {
    const buyer = new Agent({ id: 'buyer', model: scriptedModel(['One.', 'Two.']) })
    const clerk = new Agent({ id: 'clerk', model: scriptedModel([{ toolCalls: [ask] }, { toolCalls: [ask] }, 'Done.']), agents: { buyer } })
    openHeed({ clerk }, make().store())
    const { toolResults } = await clerk.generate('Twice.', { memory: { thread: thread.threadId, resource: thread.resourceId } })
    expect(toolResults.map(({ result }) => result)).toEqual([{ text: 'One.' }, { text: 'Two.' }])
  })

  describe.each(['here', 'after a restart'] as const)('that is suspended, decided %s', (when) => {
    const moved = async (at: Office, place: { store(): ReturnType<ReturnType<typeof make>['store']> }, heed: { close(): Promise<void> }): Promise<Office> => {
      if (when === 'here') return at
      await heed.close()
      const after = office()
      await openHeed({ clerk: after.clerk, buyer: after.buyer }, place.store()).start()
      return after
    }

    it.each(['on the thread above', 'by the run above', 'on the thread below', 'by the run below'] as const)('[R9.2] %s, resumes both runs', async (where) => {
      const place = make()
      const before = office()
      const heed = openHeed({ clerk: before.clerk, buyer: before.buyer }, place.store())
      const { chunks, runId } = await suspend(before)
      const waits = { threadId: child.threadId, runId: `${runId}/0/ask`, step: 0, toolCallId: 'pay', toolName: 'pay' }
      expect(chunks.at(-1)).toMatchObject({ type: 'tool-call-approval', runId, payload: { toolCallId: 'ask', toolName: 'agent-buyer', args: ask.input, child: waits } })
      const { clerk, buyer, paid, clerkModel, buyerModel } = await moved(before, place, heed)
      expect((await clerk.listSuspendedRuns()).runs).toMatchObject([{ runId, toolCalls: [{ toolCallId: 'ask', requiresApproval: true, child: waits }] }])
      if (where === 'on the thread above') await clerk.sendToolApproval({ ...thread, toolCallId: 'ask', approved: true })
      else if (where === 'by the run above') expect(await (await clerk.approveToolCall({ runId })).text).toContain('paid 1')
      else if (where === 'on the thread below') await buyer.sendToolApproval({ ...child, approved: true })
      else expect(await (await buyer.approveToolCall({ runId: waits.runId })).text).toContain('paid 1')
      await idle(clerk, thread)
      expect(paid).toEqual([5])
      expect(await lastText(clerk)).toContain('paid 1')
      const asked = when === 'here' ? 1 : 0
      expect([clerkModel.callCount, buyerModel.callCount]).toEqual([1 + asked, 1 + asked])
      expect(await clerk.listSuspendedRuns()).toEqual({ runs: [] })
    })

    it('[R9.3] and declined, reads the decision and answers', async () => {
      const place = make()
      const before = office()
      const heed = openHeed({ clerk: before.clerk, buyer: before.buyer }, place.store())
      await suspend(before)
      const { clerk, buyerModel, paid } = await moved(before, place, heed)
      await clerk.sendToolApproval({ ...thread, approved: false, declineContext: { reason: 'Too dear.' } })
      await idle(clerk, thread)
      expect(paid).toEqual([])
      expect(texts(buyerModel.calls.at(-1)?.prompt ?? []).at(-1)).toContain('Too dear.')
      expect(await lastText(clerk)).toContain('Too dear.')
    })

    it('[R9.3] ends with the calling run that is aborted', async () => {
      const place = make()
      const before = office()
      const heed = openHeed({ clerk: before.clerk, buyer: before.buyer }, place.store())
      const { runId } = await suspend(before)
      const { clerk, buyer } = await moved(before, place, heed)
      clerk.abortThreadStream({ ...thread, expectedRunId: runId })
      await idle(clerk, thread)
      await idle(buyer, child)
      expect(await buyer.listSuspendedRuns()).toEqual({ runs: [] })
    })
  })

  it('[R9.2] asks for one decision after the other', async () => {
    const { clerk, paid, ...rest } = office({ pays: ['p1', 'p2'] })
    openHeed({ clerk }, make().store())
    const { reader, chunks } = await suspend({ clerk, paid, ...rest })
    expect(chunks.at(-1)).toMatchObject({ payload: { child: { toolCallId: 'p1' } } })
    await clerk.sendToolApproval({ ...thread, approved: true })
    const again = (await readUntil(reader, isType('tool-call-approval'))).at(-1) as unknown as { payload: { request: { id: string } } }
    expect(again).toMatchObject({ payload: { toolCallId: 'ask', child: { toolCallId: 'p2' } } })
    await clerk.sendToolApproval({ ...thread, approvalId: again.payload.request.id, approved: false })
    await idle(clerk, thread)
    expect(paid).toEqual([5])
  })

  it('[R9.2] shows its suspendPayload on the calling thread, and accepts resumeData there', async () => {
    const buyer = new Agent({
      id: 'buyer',
      model: scriptedModel([{ toolCalls: [{ toolName: 'size', toolCallId: 's' }] }, 'Done.']),
      tools: { size: createTool({ id: 'size', execute: (_, { resumeData, suspend }) => (resumeData === undefined ? suspend({ question: 'Which size?' }) : `size ${String(resumeData)}`) }) },
    })
    const clerk = new Agent({ id: 'clerk', model: scriptedModel([{ toolCalls: [ask] }, 'Thanks.']), agents: { buyer } })
    openHeed({ clerk }, make().store())
    const stream = await clerk.stream('A hat.', { memory: { thread: thread.threadId, resource: thread.resourceId } })
    expect(await stream.suspended).toMatchObject([{ toolCallId: 'ask', kind: 'suspend', payload: { question: 'Which size?' } }])
    const rest = await clerk.resumeStream('L', { runId: stream.runId })
    const chunks = await readUntil(rest.fullStream, () => false)
    expect(chunks.filter(({ type }) => type === 'tool-output').map((chunk) => (chunk as { payload: { output: Chunk } }).payload.output)).toContainEqual(
      expect.objectContaining({ type: 'tool-result', payload: expect.objectContaining({ result: 'size L' }) }))
    expect(await rest.text).toBe('Thanks.')
  })

  it('[R9.2] may be decided on the child thread as soon as it is suspended', async () => {
    const { clerk, buyer, paid } = office()
    openHeed({ clerk, buyer }, make().store())
    const watcher = await buyer.subscribeToThread(child)
    clerk.sendMessage('A hat, please.', thread)
    await readUntil(watcher.stream, isType('tool-call-approval'))
    await buyer.sendToolApproval({ ...child, approved: true })
    await soon(() => lastText(clerk)).toContain('paid 1')
    await idle(clerk, thread)
    expect(paid).toEqual([5])
  })

  it('[R9.2] passes its suspension on through any number of agents', async () => {
    const { clerk, buyer, paid } = office()
    const boss = new Agent({ id: 'boss', model: scriptedModel([{ toolCalls: [{ toolName: 'agent-clerk', toolCallId: 'deep', input: { prompt: 'A hat.' } }] }, 'All done.', { toolCalls: [{ toolName: 'agent-clerk', toolCallId: 'deep2', input: { prompt: 'A hat.' } }] }, 'Again.']), agents: { clerk } })
    openHeed({ boss, buyer, clerk }, make().store())
    const memory = { thread: thread.threadId, resource: thread.resourceId }
    const first = await boss.generate('Go.', { memory })
    expect(first.suspended).toMatchObject([{ toolName: 'agent-clerk', child: { threadId: 'child:thread-1/deep', toolName: 'agent-buyer' } }])
    expect(await (await boss.approveToolCall({ runId: first.runId })).text).toBe('All done.')
    const second = await boss.generate('Again.', { memory })
    expect(second.finishReason).toBe('suspended')
    await buyer.sendToolApproval({ resourceId: 'user-1', threadId: 'child:thread-1/deep2/ask', approved: true })
    await idle(boss, thread)
    expect(await lastText(boss)).toBe('Again.')
    expect(paid).toEqual([5, 5])
  })

  it('[R9.3] is aborted with the calling run, whether it runs or is about to', async () => {
    const started = gate()
    const buyer = new Agent({ id: 'buyer', model: scriptedModel(() => (started.open(), { text: 'Well', hang: true })) })
    const clerk = new Agent({ id: 'clerk', model: scriptedModel([{ toolCalls: [ask] }, 'x']), agents: { buyer } })
    openHeed({ clerk, buyer }, make().store())
    clerk.sendMessage('A hat.', thread)
    await started.promise
    clerk.abortThreadStream(thread)
    await idle(clerk, thread)
    await idle(buyer, child)
    expect((await buyer.threads().store.listRuns({ threadId: child.threadId })).map(({ status }) => status)).toEqual(['aborted'])
  })

  it('[R8.6] is aborted while it is suspended and another call of the calling run is active', async () => {
    const at = office({ beside: untilAborted })
    const { clerk, buyer } = at
    openHeed({ clerk, buyer }, make().store())
    clerk.sendMessage('A hat, please.', thread)
    await soon(async () => (await buyer.activeRun(child))?.status).toBe('suspended')
    expect(await clerk.abortRun(thread)).toMatchObject({ aborted: true })
    await idle(clerk, thread)
    await idle(buyer, child)
    expect(await buyer.listSuspendedRuns()).toEqual({ runs: [] })
  })

  it('[R9.3] is aborted while it continues and the calling run waits for another decision', async () => {
    const signed = createTool({ id: 'sign', requireApproval: true, execute: () => 'signed' })
    const buyerModel = scriptedModel([{ toolCalls: [pay()] }, { text: 'Well', hang: true }])
    const buyer = new Agent({ id: 'buyer', model: buyerModel, tools: { pay: createTool({ id: 'pay', requireApproval: true, execute: () => 'paid' }) } })
    const clerk = new Agent({
      id: 'clerk', model: scriptedModel([{ toolCalls: [ask, { toolName: 'sign', toolCallId: 'sign', input: {} }] }]), agents: { buyer }, tools: { sign: signed },
    })
    openHeed({ clerk, buyer }, make().store())
    clerk.sendMessage('A hat, please.', thread)
    await soon(async () => (await clerk.listSuspendedRuns()).runs[0]?.toolCalls.length).toBe(2)
    await buyer.sendToolApproval({ ...child, approved: true })
    await soon(() => buyerModel.callCount).toBe(2)
    expect((await clerk.activeRun(thread))?.status).toBe('suspended')
    expect(await clerk.abortRun(thread)).toMatchObject({ aborted: true })
    await idle(buyer, child)
    expect((await buyer.threads().store.listRuns({ threadId: child.threadId })).map(({ status }) => status)).toEqual(['aborted'])
  })

  it('[R9.8] is not left suspended by a process that is killed during the abort of the calling run', async () => {
    const place = make()
    const { store, die } = mortal(place.store())
    const dying = new Proxy(store, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key)
        if (key !== 'endSuspended') return value
        return async (...given: Parameters<typeof store.endSuspended>) => {
          const ended = await target.endSuspended(...given)
          die()
          return ended
        }
      },
    })
    const before = office()
    openHeed({ clerk: before.clerk, buyer: before.buyer }, dying)
    await suspend(before)
    await before.clerk.abortRun(thread).catch((error: unknown) => expect(error).toMatchObject({ code: 'closed' }))
    const { clerk, buyer } = office()
    await openHeed({ clerk, buyer }, place.store()).start()
    expect([await clerk.listSuspendedRuns(), await buyer.listSuspendedRuns()]).toEqual([{ runs: [] }, { runs: [] }])
    expect((await buyer.threads().store.listRuns({ threadId: child.threadId })).map(({ status }) => status)).toEqual(['aborted'])
  })

  it('[R8.6] is reported as interrupted and aborted, where it had begun before a restart and the calling run is aborted before its calls continue', async () => {
    const place = make()
    const before = office({ pays: [], hang: true })
    const heed = openHeed({ clerk: before.clerk, buyer: before.buyer }, place.store())
    before.clerk.sendMessage('A hat, please.', thread)
    await soon(() => before.buyerModel.callCount).toBe(1)
    await heed.close()
    const { clerk, buyer } = office({ pays: [], hang: true })
    const { store, on } = faulty(place.store())
    // The last thing that a run reads before its calls continue.
    on('listSignals', ([scope]) => {
      if ((scope as { threadId: string }).threadId !== thread.threadId) return undefined
      on('listSignals')
      return void clerk.abortThreadStream(thread)
    })
    await openHeed({ clerk, buyer }, store).start()
    await idle(clerk, thread)
    await idle(buyer, child)
    expect((await buyer.threads().store.listRuns({ threadId: child.threadId })).map(({ status }) => status)).toEqual(['aborted'])
    const { messages } = await (await clerk.getMemory()).recall({ ...thread, perPage: false })
    expect(JSON.stringify(messages)).toContain('agent-buyer was interrupted')
    expect(JSON.stringify(messages)).not.toContain('was not run')
  })

  it('[R9.3] is aborted while it continues and the calling run is about to', async () => {
    const continues = gate()
    const buyerModel = scriptedModel([{ toolCalls: [pay()] }, { text: 'Well', hang: true }])
    const buyer = new Agent({ id: 'buyer', model: buyerModel, tools: { pay: createTool({ id: 'pay', requireApproval: true, execute: () => 'paid' }) } })
    let prepared = 0
    const clerk = new Agent({
      id: 'clerk', model: scriptedModel([{ toolCalls: [ask] }]), agents: { buyer },
      instructions: () => (++prepared === 2 ? (continues.open(), new Promise<string>(() => {})) : ''),
    })
    openHeed({ clerk, buyer }, make().store())
    clerk.sendMessage('A hat, please.', thread)
    await soon(async () => (await clerk.listSuspendedRuns()).runs.length).toBe(1)
    await buyer.sendToolApproval({ ...child, approved: true })
    await continues.promise
    await soon(() => buyerModel.callCount).toBe(2)
    expect(await clerk.abortRun(thread)).toMatchObject({ aborted: true })
    await soon(async () => (await buyer.threads().store.listRuns({ threadId: child.threadId })).map(({ status }) => status)).toEqual(['aborted'])
    const { messages } = await (await clerk.getMemory()).recall({ ...thread, perPage: false })
    expect(JSON.stringify(messages)).toContain('agent-buyer was stopped')
  })

  it('counts its token usage', async () => {
    const usage = { inputTokens: 10, outputTokens: 5 }
    const buyer = new Agent({ id: 'buyer', model: scriptedModel([{ text: 'Ok.', usage }]) })
    const clerk = new Agent({ id: 'clerk', model: scriptedModel([{ toolCalls: [ask], usage }, { text: 'Done.', usage }]), agents: { buyer } })
    openHeed({ clerk }, make().store())
    const result = await clerk.generate('A hat.', { memory: { thread: thread.threadId, resource: thread.resourceId } })
    expect(result.usage).toMatchObject({ inputTokens: 30, outputTokens: 15 })
  })
})
