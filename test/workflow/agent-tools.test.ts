import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent, createTool, Heed, InMemoryStore, silentLogger, type RunLike, type WorkflowLike } from '../../src/index.ts'
import type { Storage } from '../../src/store/contract/storage.ts'
import { LibSQLStore } from '../../src/store/sqlite/store.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { createStep, createWorkflow } from '../../src/workflow/index.ts'
import { newFile } from '../new-file.ts'

const number = z.object({ n: z.number() })
const add = createStep({ id: 'add', inputSchema: number, outputSchema: number, execute: async ({ inputData }) => ({ n: inputData.n + 1 }) })
const ask = createStep({
  id: 'ask', inputSchema: number, outputSchema: number, resumeSchema: number,
  execute: ({ inputData, resumeData, suspend }) => (resumeData ? { n: inputData.n + resumeData.n } : suspend({ question: 'How much?' })),
})
const sums = (asks = false) => {
  const begun = createWorkflow({ id: 'sums', description: 'Adds.', inputSchema: number, outputSchema: number }).then(add)
  return (asks ? begun.then(ask) : begun).commit()
}
const call = (input: unknown = { inputData: { n: 1 } }) => ({ toolCalls: [{ toolName: 'workflow-sums', toolCallId: 'c1', input }] })
const memory = { thread: 't', resource: 'u' }

const open: Heed[] = []
function agentWith(workflow: WorkflowLike, storage: Storage = new InMemoryStore(), script: Parameters<typeof scriptedModel>[0] = [call(), 'Done.']) {
  const model = scriptedModel(script as [])
  const agent = new Agent({ id: 'clerk', model, workflows: { sums: workflow } })
  const heed = new Heed({ agents: { agent }, storage, logger: silentLogger })
  open.push(heed)
  return { agent, model, heed }
}
afterEach(async () => {
  await Promise.all(open.splice(0).map((heed) => heed.close()))
})

describe('a workflow of an agent', () => {
  it('[F5.1] is the tool workflow-<key>: the model reads its result, and subscribers its chunks', async () => {
    const { agent, model } = agentWith(sums())
    const stream = await agent.stream('Add.', { memory })
    const nested: string[] = []
    for await (const chunk of stream.fullStream) if (chunk.type === 'tool-output') nested.push((chunk.payload.output as { type: string }).type)
    const [result] = await stream.toolResults.then((results) => results.length > 0 ? results : stream.steps.then((steps) => steps.flatMap(({ toolResults }) => toolResults)))
    expect(result?.result).toEqual({ result: { n: 2 }, runId: expect.stringMatching(/\/0\/c1$/) as string })
    expect(nested).toContain('workflow-step-result')
    expect(model.calls[0]?.tools).toMatchObject([{ name: 'workflow-sums', description: 'Adds.', inputSchema: { properties: { inputData: { properties: { n: { type: 'number' } } } } } }])
  })

  it('[F5.2] that suspends suspends the call; the answer reaches the step in another process', async () => {
    const url = `file:${newFile()}`
    const first = agentWith(sums(true), new LibSQLStore({ url }))
    const { runId, suspended } = await first.agent.generate('Add.', { memory })
    expect(suspended).toMatchObject([{ toolName: 'workflow-sums', kind: 'suspend', payload: { workflowId: 'sums', path: '1', payload: { question: 'How much?' } } }])
    await first.heed.close()
    const second = agentWith(sums(true), new LibSQLStore({ url }), ['Done.'])
    const stream = await second.agent.resumeStream({ n: 10 }, { runId })
    expect(await stream.text).toBe('Done.')
    expect(JSON.stringify(second.model.calls[0]?.prompt.at(-1))).toContain('"n":12')
  })

  it('[F5.3] that fails is an error of the tool, with its status, and wrong input one that names it', async () => {
    const failing = createWorkflow({ id: 'sums', inputSchema: number }).then(createStep({ id: 'no', inputSchema: number, execute: () => { throw new Error('No money.') } })).commit()
    for (const [workflow, input, words] of [[failing, { inputData: { n: 1 } }, "Workflow 'sums' ended as failed: No money."], [sums(), { inputData: { n: 'x' } }, 'n']] as const) {
      const { agent, model } = agentWith(workflow, new InMemoryStore(), [call(input), 'Sorry.'])
      expect((await agent.generate('Add.', { memory })).text).toBe('Sorry.')
      expect(JSON.stringify(model.calls[1]?.prompt.at(-1))).toContain(words)
      expect(JSON.stringify(model.calls[1]?.prompt.at(-1))).toContain('error-text')
    }
  })

  it('[F5.4] may be of another engine, by a small interface: started under the name of the call, and once', async () => {
    const runs = new Map<string, number>()
    const foreign: WorkflowLike = {
      id: 'foreign', description: 'Elsewhere.',
      createRun({ runId, resourceId }): RunLike {
        const outcome = () => (runs.has(runId) ? { status: 'success', result: { n: runs.get(runId), resourceId } } : null)
        return {
          async start(args) {
            if (!runs.has(runId)) runs.set(runId, Number((args?.inputData as { n: number } | undefined)?.n) * 2)
            return outcome() ?? { status: 'failed' }
          },
          resume: () => Promise.reject(new Error('It asks nothing.')),
          cancel: async () => {},
          status: async () => outcome(),
        }
      },
    }
    const { agent, model } = agentWith(foreign)
    await agent.generate('Add.', { memory })
    expect(JSON.stringify(model.calls[1]?.prompt.at(-1))).toContain('"result":{"n":2,"resourceId":"u"}')
    expect(runs.size).toBe(1)
    expect(() => new Agent({ id: 'x', workflows: 1 as never })).toThrow('workflows')
    await expect(new Agent({ id: 'x', model, workflows: { w: {} as never } }).generate('x')).rejects.toMatchObject({ code: 'invalid_agent', message: expect.stringContaining("'w' in workflows") as string })
  })

  it('[F5.5] may have an agent or a tool as a step', async () => {
    const poet = new Agent({ id: 'poet', model: scriptedModel(['Roses are red.']) })
    const lookup = createTool({ id: 'lookup', inputSchema: z.object({ city: z.string() }), outputSchema: z.object({ sky: z.string() }), execute: async ({ city }) => ({ sky: `rain in ${city}` }) })
    const guarded = createTool({ id: 'pay', inputSchema: z.object({ text: z.string() }), outputSchema: z.string(), requireApproval: true, execute: async ({ text }) => `paid for ${text}` })
    const workflow = createWorkflow({ id: 'all', inputSchema: z.object({ city: z.string() }), outputSchema: z.string() })
      .then(createStep(lookup)).map(({ inputData }) => ({ prompt: inputData.sky })).then(createStep(poet)).then(createStep(guarded)).commit()
    const run = workflow.createRun()
    expect(await run.start({ inputData: { city: 'Ulm' } })).toMatchObject({ status: 'suspended', suspendPayload: { 3: { type: 'approval', toolName: 'pay', args: { text: 'Roses are red.' } } } })
    expect(await run.resume({ resumeData: { approved: true } })).toMatchObject({ status: 'success', result: 'paid for Roses are red.' })
  })
})
