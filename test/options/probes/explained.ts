import { expect } from 'vitest'
import { z } from 'zod'
import type { ExplainOptions, MemoryOptions } from '../../../src/index.ts'
import { MessageHistory, ToolCallFilter } from '../../../src/processors/index.ts'
import { memory, open, rejects, thread, type Probe } from '../probe.ts'
import { heed, testing } from '../walked.ts'

const { createTool, InMemoryStore, Memory, RequestContext } = heed

const look = (id = 'look') => createTool({ id, inputSchema: z.object({}), execute: () => 'seen' })
const model = testing.scriptedModel(() => 'Fine.')

/** An agent on a thread with three questions and their answers, and the previews of a prompt by source. */
async function explained(options: ExplainOptions) {
  const own = new Memory({ storage: new InMemoryStore() })
  await own.createThread(thread)
  const messages = ['One. Lisbon', 'Two.', 'Three.'].flatMap((content) => [{ role: 'user' as const, content }, { role: 'assistant' as const, content: 'Yes.' }])
  await own.saveMessages({ ...thread, messages })
  const { agent } = open({ memory: own, instructions: ({ requestContext }) => `For ${String(requestContext.get('user'))}.`, tools: { other: look('other') } })
  const { parts } = await agent.explainPrompt('Lisbon?', options)
  return (source: string) => parts.filter((part) => part.source === source).map(({ preview }) => preview)
}

const asked = (options: MemoryOptions) => explained({ memory: { ...memory, options } })

/** Options that change no prompt. */
const refused = {
  abortSignal: new AbortController().signal, includeRawChunks: true, maxProcessorRetries: 1, maxSteps: 1, model, modelSettings: { seed: 1 },
  providerOptions: { x: {} }, requireToolApproval: true, runId: 'r', stopWhen: heed.stepCountIs(1), toolCallConcurrency: 1, toolChoice: 'none',
  transform: { transformToolPayload: () => 'x' }, onAbort() {}, onChunk() {}, onError() {}, onFinish() {}, onStepFinish() {},
}

export const explanations: Probe[] = [
  {
    title: 'Agent.explainPrompt: its instructions and tools',
    async run() {
      const shown = await explained({
        system: 'Briefly.', requestContext: new RequestContext({ user: 'Ada' }), tools: { look: look() }, toolsets: { more: { find: look('find') } },
        clientTools: { ask: { inputSchema: z.object({}) } }, activeTools: ['look', 'find', 'ask'],
        structuredOutput: { schema: z.number(), jsonPromptInjection: true },
      })
      expect(shown('tools')).toEqual(['ask', 'find', 'look'])
      expect(shown('instructions')).toEqual(['For Ada.', 'Briefly.', expect.stringContaining('JSON Schema')])
      expect((await explained({ instructions: 'Only this.' }))('instructions')).toEqual(['Only this.'])
    },
  },
  {
    title: 'Agent.explainPrompt: its memory',
    async run() {
      const whole = ['One. Lisbon', 'Yes.', 'Two.', 'Yes.', 'Three.', 'Yes.']
      expect((await explained({ memory: { thread: { id: thread.threadId }, resource: thread.resourceId, options: { semanticRecall: false } } }))('history')).toEqual(whole)
      for (const options of [{ lastMessages: 2 }, { window: { low: 2, high: 2 } }]) {
        const cut = await asked({ ...options, semanticRecall: false })
        expect(cut('history')).not.toContain('One. Lisbon')
        expect(cut('context')).toEqual([])
      }
      const recalled = await asked({ lastMessages: 2, semanticRecall: { enabled: true } })
      expect(recalled('context')).toEqual([expect.stringContaining('<recalled-messages>')])
      const working = { workingMemory: { enabled: true } }
      expect([(await asked(working))('tools'), (await asked({ ...working, readOnly: true }))('tools')]).toEqual([['other', 'updateWorkingMemory'], ['other']])
      await rejects(() => explained({ memory: { thread: thread.threadId, resource: 'other' } }), 'resource')
    },
  },
  {
    title: 'Agent.explainPrompt: its processors',
    async run() {
      const texts = async (more: ExplainOptions) => (await explained({ memory: { ...memory, options: { semanticRecall: false } }, ...more }))('history')
      expect(await texts({ inputProcessors: [new MessageHistory({ lastMessages: 2 })] })).not.toContain('One. Lisbon')
      await rejects(() => texts({ outputProcessors: [new ToolCallFilter()] }), 'outputProcessors')
    },
  },
  {
    title: 'Agent.explainPrompt: what changes no prompt is rejected by name',
    async run() {
      for (const [option, value] of Object.entries(refused)) {
        const error = await explained({ [option]: value }).catch((thrown: unknown) => thrown)
        expect(error, option).toMatchObject({ code: 'unsupported_option', details: { option } })
      }
      for (const [option, options] of Object.entries<object>({
        'memory.thread.title': { memory: { ...memory, thread: { id: 't', title: 'T' } } }, 'memory.thread.metadata': { memory: { ...memory, thread: { id: 't', metadata: {} } } },
        'memory.options.save': { memory: { ...memory, options: { save: false } } }, 'memory.options.generateTitle': { memory: { ...memory, options: { generateTitle: true } } },
        'structuredOutput.name': { structuredOutput: { schema: z.string(), name: 'x' } }, 'structuredOutput.description': { structuredOutput: { schema: z.string(), description: 'x' } },
      })) expect(await explained(options).catch((thrown: unknown) => thrown), option).toMatchObject({ code: 'unsupported_option', details: { option } })
    },
  },
]
