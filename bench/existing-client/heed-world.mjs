import { serve } from '../../src/http/server.ts'
import { Agent, createTool, Heed, InMemoryStore, Memory, silentLogger } from '../../src/index.ts'
import { paySchema } from './script.mjs'

/** Heed's server, with an agent that has a memory and a tool which needs an approval. */
export async function world(model) {
  const pay = createTool({ id: 'pay', requireApproval: true, inputSchema: paySchema, execute: ({ to }) => `paid ${to}` })
  const agent = new Agent({ id: 'guide', model, tools: { pay }, memory: new Memory({ workingMemory: { enabled: true, scope: 'thread' } }) })
  const heed = new Heed({ agents: { guide: agent }, storage: new InMemoryStore(), logger: silentLogger })
  const server = await serve(heed, { port: 0, handleSignals: false })
  return {
    url: server.url,
    activeRunId: async (scope) => (await agent.activeRun(scope))?.runId,
    close: () => server.close(),
  }
}
