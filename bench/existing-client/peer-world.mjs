import { createAdaptorServer } from '@hono/node-server'
import { Mastra } from '@mastra/core'
import { Agent } from '@mastra/core/agent'
import { createTool } from '@mastra/core/tools'
import { createStep, createWorkflow } from '@mastra/core/workflows'
import { MastraServer } from '@mastra/hono'
import { LibSQLStore } from '@mastra/libsql'
import { Memory } from '@mastra/memory'
import { Hono } from 'hono'
import { z } from 'zod'
import { answerSchema, listSchema, numberSchema, paySchema } from './script.mjs'

/** The server that the client was made for, with the same agent. */
export async function world(model) {
  const pay = createTool({ id: 'pay', description: 'Pays', requireApproval: true, inputSchema: paySchema, execute: async ({ to }) => `paid ${to}` })
  const execute = async (_input, { agent: { resumeData, suspend } }) => (resumeData === undefined ? suspend({ question: 'Which?' }) : `noted ${JSON.stringify(resumeData)}`)
  const ask = createTool({ id: 'ask', description: 'Asks', inputSchema: z.object({}), suspendSchema: z.object({ question: z.string() }), resumeSchema: z.object({ color: z.string() }), execute })
  const agent = new Agent({ id: 'guide', name: 'guide', instructions: '', model, tools: { pay, ask }, memory: new Memory({ options: { workingMemory: { enabled: true, scope: 'thread' } } }) })
  const mastra = new Mastra({ agents: { guide: agent }, workflows: workflows(), storage: new LibSQLStore({ id: 'checks', url: ':memory:' }), logger: false })
  const app = new Hono()
  await new MastraServer({ app, mastra }).init()
  const server = createAdaptorServer({ fetch: app.fetch })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    activeRunId: async (scope) => agent.getActiveThreadRunId(scope),
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function workflows() {
  const double = createStep({ id: 'double', inputSchema: numberSchema, outputSchema: numberSchema, execute: async ({ inputData: { n } }) => ({ n: n * 2 }) })
  const ask = createStep({
    id: 'ask', inputSchema: numberSchema, outputSchema: numberSchema, resumeSchema: answerSchema,
    execute: async ({ inputData: { n }, resumeData, suspend }) => (resumeData ? { n: n + resumeData.by } : suspend({ question: 'By how much?' })),
  })
  const stateSchema = z.object({ extra: z.number().optional() })
  const last = createStep({ id: 'last', inputSchema: numberSchema, outputSchema: numberSchema, stateSchema, execute: async ({ inputData: { n }, state }) => ({ n: n + (state?.extra ?? 0) }) })
  const inner = createWorkflow({ id: 'inner', inputSchema: numberSchema, outputSchema: numberSchema }).then(ask).commit()
  const fails = createStep({ id: 'throw', inputSchema: numberSchema, outputSchema: numberSchema, execute: async () => { throw new Error('out of paper') } })
  const each = createStep({ id: 'each', inputSchema: z.number(), outputSchema: numberSchema, resumeSchema: answerSchema, execute: async ({ inputData, resumeData, suspend }) => (resumeData ? { n: inputData + resumeData.by } : suspend({ of: inputData })) })
  return {
    sums: createWorkflow({ id: 'sums', description: 'Adds.', inputSchema: numberSchema, outputSchema: numberSchema, stateSchema }).then(double).then(ask).then(last).commit(),
    nested: createWorkflow({ id: 'nested', inputSchema: numberSchema, outputSchema: numberSchema }).then(double).then(inner).commit(),
    fails: createWorkflow({ id: 'fails', inputSchema: numberSchema, outputSchema: numberSchema }).then(fails).commit(),
    list: createWorkflow({ id: 'list', inputSchema: listSchema, outputSchema: numberSchema.array() }).foreach(each, { concurrency: 2 }).commit(),
    sleeps: createWorkflow({ id: 'sleeps', inputSchema: numberSchema, outputSchema: numberSchema, stateSchema }).then(double).sleep(3_600_000).then(last).commit(),
  }
}
