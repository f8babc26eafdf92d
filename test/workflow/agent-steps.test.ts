import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent, createTool, Heed, InMemoryStore, silentLogger } from '../../src/index.ts'
import type { Storage } from '../../src/store/contract/storage.ts'
import { LibSQLStore } from '../../src/store/sqlite/store.ts'
import { scriptedModel, type Script } from '../../src/testing/index.ts'
import { cloneStep, createStep, createWorkflow, type WorkflowChunk } from '../../src/workflow/index.ts'
import { newFile } from '../new-file.ts'

const payCall = (toolCallId = 'c1') => ({ toolName: 'pay', toolCallId, input: { sum: 7 } })
const open: Heed[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((heed) => heed.close()))
})

interface Opened {
  storage?: Storage | undefined
  script?: Script
  /** Without a Heed: the run is in memory. */
  inMemory?: boolean
}

/** A workflow whose second step asks a clerk, who pays when a person approves it. */
function shop({ storage = new InMemoryStore(), script = [{ toolCalls: [payCall()] }, 'Paid 7.'], inMemory = false }: Opened = {}) {
  const paid: number[] = []
  const pay = createTool({
    id: 'pay', inputSchema: z.object({ sum: z.number() }), requireApproval: true,
    execute: async ({ sum }) => {
      paid.push(sum)
      return `paid ${sum}`
    },
  })
  const ask = createTool({
    id: 'ask', inputSchema: z.object({}), resumeSchema: z.object({ answer: z.string() }),
    execute: async (_, { resumeData, suspend }) => (resumeData ? resumeData.answer : suspend({ question: 'Which colour?' })),
  })
  const model = scriptedModel(script)
  const clerk = new Agent({ id: 'clerk', instructions: 'You pay.', model, tools: { pay, ask } })
  const order = createWorkflow({ id: 'order', inputSchema: z.object({ item: z.string() }), outputSchema: z.object({ receipt: z.string() }) })
    .map(({ inputData }) => ({ prompt: `Buy ${inputData.item}.` }))
    .then(createStep(clerk))
    .map(({ inputData }) => ({ receipt: inputData.text }))
    .commit()
  const heed = inMemory ? undefined : new Heed({ workflows: { order }, storage, logger: silentLogger })
  if (heed) open.push(heed)
  const run = order.createRun({ runId: 'r1', resourceId: 'ada' })
  return { clerk, heed, order, model, paid, run }
}

const start = { inputData: { item: 'a bicycle' } }
const asked = { type: 'approval', agentId: 'clerk', toolName: 'pay', toolCallId: 'c1', args: { sum: 7 } }

describe.each([['in memory', true], ['on a thread', false]])('an agent in a step of a run %s', (_, inMemory) => {
  it('[F5.6] whose tool needs approval suspends the run; resume() approves it', async () => {
    const { run, paid, model } = shop({ inMemory })
    const first = await run.start(start)
    expect(first).toMatchObject({ status: 'suspended', suspended: ['1'], suspendPayload: { 1: asked } })
    expect(paid).toEqual([])
    await expect(run.resume({ resumeData: { ok: true } })).rejects.toMatchObject({ code: 'invalid_argument', message: expect.stringContaining('approved') as string })
    await expect(run.resume()).rejects.toMatchObject({ code: 'invalid_argument' })
    const done = await run.resume({ resumeData: { approved: true } })
    expect(done).toMatchObject({ status: 'success', result: { receipt: 'Paid 7.' }, usage: { outputTokens: expect.any(Number) as number } })
    expect(paid).toEqual([7])
    expect(model.callCount).toBe(2)
    await expect(run.resume({ resumeData: { approved: true } })).rejects.toMatchObject({ code: 'run_not_suspended' })
  })

  it('[F5.6] reads why a call was declined, and answers all the same', async () => {
    const { run, paid, model } = shop({ inMemory, script: [{ toolCalls: [payCall()] }, 'Then not.'] })
    await run.start(start)
    expect(await run.resume({ resumeData: { approved: false, reason: 'too dear' } })).toMatchObject({ status: 'success', result: { receipt: 'Then not.' } })
    expect(paid).toEqual([])
    expect(JSON.stringify(model.calls[1]?.prompt.at(-1))).toContain('too dear')
  })

  it('[F5.6] asks for one decision after the other, and a tool that suspends itself gets its data', async () => {
    const { run, paid } = shop({ inMemory, script: [{ toolCalls: [payCall('c1')] }, { toolCalls: [{ toolName: 'ask', toolCallId: 'c2', input: {} }] }, 'A red one.'] })
    await run.start(start)
    expect(await run.resume({ resumeData: { approved: true } })).toMatchObject({ status: 'suspended', suspendPayload: { 1: { type: 'suspend', toolName: 'ask', payload: { question: 'Which colour?' } } } })
    expect(await run.resume({ resumeData: { answer: 'red' } })).toMatchObject({ status: 'success', result: { receipt: 'A red one.' } })
    expect(paid).toEqual([7])
  })

  it('[F5.6] shows the chunks of the agent as output of the step', async () => {
    const { run } = shop({ inMemory, script: ['Bought.'] })
    const chunks: WorkflowChunk[] = []
    for await (const chunk of run.stream(start).fullStream) chunks.push(chunk)
    const output = chunks.filter(({ type }) => type === 'workflow-step-output').map(({ payload }) => (payload.output as { type: string }).type)
    expect(output).toContain('text-delta')
    expect(chunks.at(-1)).toMatchObject({ type: 'workflow-finish', payload: { workflowStatus: 'success', output: { usage: { outputTokens: expect.any(Number) as number } } } })
  })
})

describe('an agent in a step of a stored run', () => {
  it('[F5.7] is decided on its own thread: the run goes on', async () => {
    const { run, clerk, paid } = shop()
    const first = await run.start(start)
    const { runs } = await clerk.listSuspendedRuns({ resourceId: 'ada' })
    expect(runs).toMatchObject([{ agentId: 'clerk', toolCalls: [{ toolName: 'pay', requiresApproval: true }] }])
    const { threadId } = (first.status === 'suspended' ? first.suspendPayload['1'] : {}) as { threadId: string }
    expect(runs[0]?.threadId).toBe(threadId)
    // The same start again, while the step is suspended, has the same answer.
    expect((await run.start(start)).status).toBe('suspended')
    await clerk.sendToolApproval({ threadId, resourceId: 'ada', approved: true })
    await expect.poll(async () => (await run.status())?.status).toBe('success')
    expect(paid).toEqual([7])
    await expect(run.resume({ resumeData: { approved: false } })).rejects.toMatchObject({ code: 'run_not_suspended' })
  })

  it('[F5.7] goes on in another process with what was decided there, by the run and on the thread of the agent', async () => {
    for (const onThread of [false, true]) {
      const url = `file:${newFile()}`
      const first = shop({ storage: new LibSQLStore({ url }), script: [{ toolCalls: [payCall()] }] })
      await first.run.start(start)
      await first.heed?.close()
      const next = shop({ storage: new LibSQLStore({ url }), script: ['Paid 7.'] })
      await next.heed?.start()
      if (onThread) {
        const { runs: [waiting] } = await next.clerk.listSuspendedRuns()
        await next.clerk.sendToolApproval({ threadId: waiting?.threadId ?? '', resourceId: 'ada', approved: true })
      } else await next.run.resumeAsync({ resumeData: { approved: true } })
      await expect.poll(async () => next.run.status()).toMatchObject({ status: 'success', result: { receipt: 'Paid 7.' } })
      expect([first.paid, next.paid]).toEqual([[], [7]])
      await next.heed?.close()
    }
  })

  it('[F5.7] ends with the run: cancel() ends the call that waits', async () => {
    const { run, clerk, paid, order } = shop()
    await run.start(start)
    await run.cancel()
    expect(await run.status()).toMatchObject({ status: 'canceled', path: [{ stepId: 'clerk', status: 'canceled' }] })
    expect((await clerk.listSuspendedRuns()).runs).toEqual([])
    expect(paid).toEqual([])
    // What the agent wrote goes with the run.
    expect(await order.deleteWorkflowRunById('r1')).toBe(true)
    expect((await clerk.threads().store.listThreads({ resourceId: 'ada', limit: 9 })).threads).toEqual([])
  })

  it('[F5.7] that a person aborts on its own thread fails the step', async () => {
    const { run, clerk } = shop()
    await run.start(start)
    const { runs: [waiting] } = await clerk.listSuspendedRuns()
    await clerk.abortRun({ threadId: waiting?.threadId ?? '' })
    await expect.poll(async () => run.status()).toMatchObject({ status: 'failed', error: { code: 'aborted' } })
  })

  it('[F5.7] that fails is asked again on a new thread, as often as retries says', async () => {
    const model = scriptedModel([{ error: { status: 400, message: 'no' } }, 'Second.'])
    const poet = new Agent({ id: 'poet', model })
    const step = createStep(poet)
    const workflow = createWorkflow({ id: 'retried', retryConfig: { attempts: 1 } }).map(() => ({ prompt: 'A verse.' })).then(step).commit()
    const heed = new Heed({ workflows: { workflow }, storage: new InMemoryStore(), logger: silentLogger })
    open.push(heed)
    expect(await workflow.createRun().start()).toMatchObject({ status: 'success', result: { text: 'Second.' } })
    expect(JSON.stringify(model.calls[1]?.prompt)).toBe(JSON.stringify(model.calls[0]?.prompt))
  })

  it('[F5.7] gives the value of its schema, also where its run ended in another process', async () => {
    const url = `file:${newFile()}`
    const poem = z.object({ title: z.string(), lines: z.coerce.number() })
    const make = (script: Script) => {
      const poet = new Agent({ id: 'poet', model: scriptedModel(script), tools: { pay: createTool({ id: 'pay', requireApproval: true, execute: async () => 'paid' }) } })
      const workflow = createWorkflow({ id: 'poems' }).map(() => ({ prompt: 'A poem.' })).then(createStep(poet, { structuredOutput: { schema: poem } }))
        .then(createStep({ id: 'double', inputSchema: poem, execute: ({ inputData }) => inputData.lines * 2 })).commit()
      const heed = new Heed({ workflows: { workflow }, storage: new LibSQLStore({ url }), logger: silentLogger })
      open.push(heed)
      return { heed, poet, run: workflow.createRun({ runId: 'p' }) }
    }
    const first = make([{ toolCalls: [{ toolName: 'pay', toolCallId: 'c1', input: {} }] }])
    expect(await first.run.start()).toMatchObject({ status: 'suspended' })
    await first.heed.close()
    const next = make(['{"title":"Rain","lines":4}'])
    expect(await next.run.resume({ resumeData: { approved: true } })).toMatchObject({ status: 'success', result: 8 })
  })

  it('[F5.7] in steps beside each other waits for decisions of its own, in any order', async () => {
    const { clerk, model } = shop({ script: (call) => (JSON.stringify(call.prompt).includes('output-') || JSON.stringify(call.prompt).includes('tool-result') ? 'Paid.' : { toolCalls: [payCall(`c${Math.random()}`)] }) })
    const both = createWorkflow({ id: 'both' }).map(() => ({ prompt: 'Pay.' }))
      .parallel([createStep(clerk), cloneStep(createStep(clerk), { id: 'other' })]).commit()
    const heed = new Heed({ workflows: { both }, storage: new InMemoryStore(), logger: silentLogger })
    open.push(heed)
    const run = both.createRun({ runId: 'b', resourceId: 'ada' })
    const first = await run.start()
    expect(first).toMatchObject({ status: 'suspended', suspended: ['1.0', '1.1'] })
    const { threadId } = (first.status === 'suspended' ? first.suspendPayload['1.1'] : {}) as { threadId: string }
    await clerk.sendToolApproval({ threadId, resourceId: 'ada', approved: true })
    await expect.poll(async () => (await run.status())?.path.map(({ status }) => status)).toEqual(['suspended', 'success'])
    expect(await run.resume({ step: '1.0', resumeData: { approved: true } })).toMatchObject({ status: 'success', result: { clerk: { text: 'Paid.' }, other: { text: 'Paid.' } } })
    expect(model.callCount).toBe(4)
  })
})
