import { serve } from '../../src/http/server.ts'
import { Agent, createTool, Heed, InMemoryStore, Memory, silentLogger } from '../../src/index.ts'
import { HeedEditor } from '../../src/editor/index.ts'
import { spelledRate, spelledSound, spelledText } from '../../src/testing/spelled-sound.ts'
import { CompositeVoice } from '../../src/voice/index.ts'
import { readWav, toWav } from '../../src/voice/sound/wav.ts'
import { createStep, createWorkflow } from '../../src/workflow/index.ts'
import { answerSchema, listSchema, numberSchema, paySchema } from './script.mjs'

/** Heed's server, with an agent that has a memory, a tool which needs an approval, and one that asks for data. */
export async function world(model) {
  const pay = createTool({ id: 'pay', requireApproval: true, inputSchema: paySchema, execute: ({ to }) => `paid ${to}` })
  const ask = createTool({ id: 'ask', execute: (_input, { resumeData, suspend }) => (resumeData === undefined ? suspend({ question: 'Which?' }) : `noted ${JSON.stringify(resumeData)}`) })
  const spoken = []
  const agent = new Agent({ id: 'guide', model, tools: { pay, ask }, voice: voice(spoken), memory: new Memory({ workingMemory: { enabled: true, scope: 'thread' } }) })
  const heed = new Heed({ agents: { guide: agent }, workflows: workflows(), editor: new HeedEditor(), storage: new InMemoryStore(), logger: silentLogger })
  const server = await serve(heed, { port: 0, handleSignals: false })
  return {
    url: server.url,
    spoken,
    activeRunId: async (scope) => (await agent.activeRun(scope))?.runId,
    close: () => server.close(),
  }
}

/** A voice that spells a text as sound and reads it back, with what it was asked for. */
function voice(spoken) {
  const common = { specificationVersion: 'v4', provider: 'spelled', modelId: 'spelled' }
  const response = { timestamp: new Date(0), modelId: 'spelled' }
  const output = { ...common, async doGenerate({ text, voice: speaker }) {
    spoken.push({ text, voice: speaker })
    return { audio: toWav({ pcm: spelledSound(text), rate: spelledRate }), warnings: [], response }
  } }
  const input = { ...common, async doGenerate({ audio }) {
    return { text: spelledText(readWav(audio)?.pcm ?? new Uint8Array()), segments: [], warnings: [], response }
  } }
  return new CompositeVoice({ input, output })
}

function workflows() {
  const double = createStep({ id: 'double', inputSchema: numberSchema, outputSchema: numberSchema, execute: ({ inputData: { n } }) => ({ n: n * 2 }) })
  const ask = createStep({
    id: 'ask', inputSchema: numberSchema, outputSchema: numberSchema, resumeSchema: answerSchema,
    execute: ({ inputData: { n }, resumeData, suspend }) => (resumeData ? { n: n + resumeData.by } : suspend({ question: 'By how much?' })),
  })
  const last = createStep({ id: 'last', inputSchema: numberSchema, outputSchema: numberSchema, execute: ({ inputData: { n }, state }) => ({ n: n + (state.extra ?? 0) }) })
  const inner = createWorkflow({ id: 'inner', inputSchema: numberSchema, outputSchema: numberSchema }).then(ask).commit()
  const fails = createStep({ id: 'throw', inputSchema: numberSchema, outputSchema: numberSchema, execute: () => Promise.reject(new Error('out of paper')) })
  const each = createStep({ id: 'each', outputSchema: numberSchema, resumeSchema: answerSchema, execute: ({ inputData, resumeData, suspend }) => (resumeData ? { n: inputData + resumeData.by } : suspend({ of: inputData })) })
  return {
    sums: createWorkflow({ id: 'sums', description: 'Adds.', inputSchema: numberSchema, outputSchema: numberSchema }).then(double).then(ask).then(last).commit(),
    nested: createWorkflow({ id: 'nested', inputSchema: numberSchema, outputSchema: numberSchema }).then(double).then(inner).commit(),
    fails: createWorkflow({ id: 'fails', inputSchema: numberSchema, outputSchema: numberSchema }).then(fails).commit(),
    list: createWorkflow({ id: 'list', inputSchema: listSchema, outputSchema: numberSchema.array() }).foreach(each, { concurrency: 2 }).commit(),
    sleeps: createWorkflow({ id: 'sleeps', inputSchema: numberSchema, outputSchema: numberSchema }).then(double).sleep(3_600_000).then(last).commit(),
  }
}
