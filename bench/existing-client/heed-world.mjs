import { serve } from '../../src/http/server.ts'
import { Agent, createTool, Heed, InMemoryStore, Memory, silentLogger } from '../../src/index.ts'
import { paySchema } from './script.mjs'

/** Heed's server, with an agent that has a memory, a tool which needs an approval, and one that asks for data. */
export async function world(model) {
  const pay = createTool({ id: 'pay', requireApproval: true, inputSchema: paySchema, execute: ({ to }) => `paid ${to}` })
  const ask = createTool({ id: 'ask', execute: (_input, { resumeData, suspend }) => (resumeData === undefined ? suspend({ question: 'Which?' }) : `noted ${JSON.stringify(resumeData)}`) })
  const agent = new Agent({ id: 'guide', model, tools: { pay, ask }, memory: new Memory({ workingMemory: { enabled: true, scope: 'thread' } }) })
  const heed = new Heed({ agents: { guide: agent }, storage: new InMemoryStore(), logger: silentLogger })
  const server = await serve(heed, { port: 0, handleSignals: false })
  return {
    url: server.url,
    activeRunId: async (scope) => (await agent.activeRun(scope))?.runId,
    close: () => server.close(),
  }
}
