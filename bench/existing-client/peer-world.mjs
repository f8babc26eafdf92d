import { createAdaptorServer } from '@hono/node-server'
import { Mastra } from '@mastra/core'
import { Agent } from '@mastra/core/agent'
import { createTool } from '@mastra/core/tools'
import { MastraServer } from '@mastra/hono'
import { LibSQLStore } from '@mastra/libsql'
import { Memory } from '@mastra/memory'
import { Hono } from 'hono'
import { z } from 'zod'
import { paySchema } from './script.mjs'

/** The server that the client was made for, with the same agent. */
export async function world(model) {
  const pay = createTool({ id: 'pay', description: 'Pays', requireApproval: true, inputSchema: paySchema, execute: async ({ to }) => `paid ${to}` })
  const execute = async (_input, { agent: { resumeData, suspend } }) => (resumeData === undefined ? suspend({ question: 'Which?' }) : `noted ${JSON.stringify(resumeData)}`)
  const ask = createTool({ id: 'ask', description: 'Asks', inputSchema: z.object({}), suspendSchema: z.object({ question: z.string() }), resumeSchema: z.object({ color: z.string() }), execute })
  const agent = new Agent({ id: 'guide', name: 'guide', instructions: '', model, tools: { pay, ask }, memory: new Memory({ options: { workingMemory: { enabled: true, scope: 'thread' } } }) })
  const mastra = new Mastra({ agents: { guide: agent }, storage: new LibSQLStore({ id: 'checks', url: ':memory:' }), logger: false })
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
