import { expect, onTestFinished } from 'vitest'
import { z } from 'zod'
import type { Processor } from '../../../src/index.ts'
import { memory, open, rejects, type Probe } from '../probe.ts'
import { duckdb, heed, testing } from '../walked.ts'

const { createTool, InMemoryStore, Memory, RequestContext, stepCountIs } = heed
const { scriptedModel } = testing

const look = (id = 'look') => createTool({ id, inputSchema: z.object({}), execute: () => 'seen' })
const callsLook = [{ toolCalls: [{ toolName: 'look', input: {} }, { toolName: 'look', input: {} }] }, 'Done.']

/** What `generate()`, `stream()`, their legacy forms, `explainPrompt()` and woken runs take. */
const executionOptions = [
  'memory', 'maxSteps', 'stopWhen', 'toolChoice', 'activeTools', 'modelSettings', 'providerOptions', 'requestContext', 'abortSignal',
  'structuredOutput', 'instructions', 'system', 'model', 'tools', 'toolsets', 'clientTools', 'requireToolApproval', 'toolCallConcurrency',
  'inputProcessors', 'outputProcessors', 'maxProcessorRetries', 'transform', 'runId', 'includeRawChunks', 'onChunk', 'onStepFinish', 'onFinish',
  'onError', 'onAbort',
].join(' ')

export const runs: Probe[] = [
  {
    title: 'the options of a call: what the model is called with',
    async run() {
      const { agent } = open({ instructions: ({ requestContext }) => `For ${String(requestContext.get('user'))}.` })
      const model = scriptedModel(() => 'Other.')
      const settings = { maxOutputTokens: 9, temperature: 0.1, topP: 0.2, topK: 3, presencePenalty: 0.4, frequencyPenalty: 0.5, stopSequences: ['X'], seed: 7 }
      const modelSettings = { ...settings, headers: { 'x-trace': '1' }, reasoning: 'low' as const }
      const tools = { look: look() }
      const given = { toolsets: { more: { find: look('find') } }, clientTools: { ask: { inputSchema: z.object({}) } } }
      const call = { model, tools, ...given, modelSettings, providerOptions: { x: { y: 1 } }, toolChoice: { type: 'tool' as const, toolName: 'look' } }
      await agent.generate('Go.', { ...call, system: 'Briefly.', requestContext: new RequestContext({ user: 'Ada' }) })
      expect(model.calls[0]).toMatchObject({ ...modelSettings, providerOptions: { x: { y: 1 } }, toolChoice: { type: 'tool', toolName: 'look' } })
      expect(model.calls[0]?.tools?.map(({ name }) => name)).toEqual(['ask', 'find', 'look'])
      expect(model.calls[0]?.prompt.filter(({ role }) => role === 'system').map(({ content }) => content)).toEqual(['For Ada.', 'Briefly.'])
      await agent.generate('Go.', { model: [{ model }], tools, activeTools: [], instructions: 'Only this.' })
      expect([model.calls[1]?.tools ?? [], model.calls[1]?.prompt[0]?.content]).toEqual([[], 'Only this.'])
      for (const option of ['maxStep', 'modelSettings.temprature', 'structuredOutput.shema']) {
        const [name = '', inner] = option.split('.')
        await rejects(() => agent.generate('x', { [name]: inner ? { ...(name === 'structuredOutput' && { schema: z.string() }), [inner]: 1 } : 1 } as never), option)
      }
    },
  },
  {
    title: 'the options of a call: how its run goes on and ends',
    async run() {
      let active = 0
      let most = 0
      const slow = createTool({
        id: 'look',
        async execute() {
          most = Math.max(most, ++active)
          await Promise.resolve()
          active--
          return 'seen'
        },
      })
      const tools = { look: slow }
      const made = () => open({ tools }, callsLook)
      const heard: string[] = []
      const result = await made().agent.generate('Go.', {
        runId: 'run-1', toolCallConcurrency: 1, includeRawChunks: true,
        onChunk: ({ type }) => void heard.push(type), onStepFinish: () => void heard.push('step'), onFinish: () => void heard.push('end'),
      })
      expect([result.runId, result.steps.length, most]).toEqual(['run-1', 2, 1])
      expect(heard).toEqual(expect.arrayContaining(['start', 'step', 'end']))
      expect((await made().agent.generate('Go.', { maxSteps: 1 })).steps).toHaveLength(1)
      expect((await made().agent.generate('Go.', { stopWhen: stepCountIs(1) })).steps).toHaveLength(1)
      expect((await made().agent.generate('Go.', { requireToolApproval: true })).suspended).toHaveLength(2)
      const stop = new AbortController()
      stop.abort()
      const aborted: unknown[] = []
      await expect(made().agent.generate('Go.', { abortSignal: stop.signal, onAbort: ({ steps }) => void aborted.push(steps) })).rejects.toMatchObject({ code: 'aborted' })
      expect(aborted).toHaveLength(1)
      const failing = () => scriptedModel(() => ({ error: Object.assign(new Error('busy'), { isRetryable: true, statusCode: 503 }) }), { loop: true })
      const errors: string[] = []
      for (const options of [{ model: failing(), modelSettings: { maxRetries: 0 } }, { model: [{ model: failing(), maxRetries: 0 }] }])
        await expect(made().agent.generate('Go.', { ...options, onError: ({ error }) => void errors.push(error.message) })).rejects.toBeInstanceOf(Error)
      expect(errors).toHaveLength(2)
    },
  },
  {
    title: 'the options of a call: memory, output and processors',
    async run() {
      const { agent, model } = open({}, () => '{"n":1}')
      const thread = { id: 't', title: 'A trip', metadata: { a: 1 } }
      const schema = z.object({ n: z.number() })
      const structuredOutput = { schema, name: 'number', description: 'A number.', jsonPromptInjection: true }
      const { object } = await agent.generate('Go.', { memory: { thread, resource: 'u', options: { lastMessages: 1 } }, structuredOutput })
      expect(object).toEqual({ n: 1 })
      expect(model.calls[0]?.responseFormat).toMatchObject({ type: 'json', name: 'number', description: 'A number.' })
      expect(JSON.stringify(model.calls[0]?.prompt[0])).toContain('JSON')
      expect(await (await agent.getMemory()).getThreadById({ threadId: 't', resourceId: 'u' })).toMatchObject({ title: 'A trip', metadata: { a: 1 } })
      const seen: string[] = []
      const input: Processor = { id: 'in', processInput: ({ messages }) => (seen.push('in'), messages) }
      const output: Processor = { id: 'out', processOutputStep: ({ abort }) => (seen.push('out'), abort('Again.', { retry: true })) }
      const refused = await agent.generate('Go.', { inputProcessors: [input], outputProcessors: [output], maxProcessorRetries: 1 })
      expect([seen, refused.tripwire?.processorId]).toEqual([['in', 'out', 'out'], 'out'])
      const shown = open({ tools: { look: look() } }, callsLook)
      const transform = { targets: ['display' as const], transformToolPayload: () => 'hidden' }
      const stream = await shown.agent.stream('Go.', { transform })
      const results: unknown[] = []
      for await (const chunk of stream.fullStream) if (chunk.type === 'tool-result') results.push(chunk.payload.result)
      expect(results).toEqual(['hidden', 'hidden'])
    },
  },
  {
    title: 'the options of the legacy calls',
    async run() {
      const { agent, model } = open()
      const settings = { temperature: 0.1, topP: 0.2, topK: 3, seed: 7, presencePenalty: 0.4, frequencyPenalty: 0.5, stopSequences: ['X'] }
      const result = await agent.generateLegacy('Go.', { ...settings, headers: { 'x-trace': '1' }, maxTokens: 9, maxRetries: 0, threadId: 't', resourceId: 'u' })
      expect(model.calls[0]).toMatchObject({ ...settings, headers: { 'x-trace': '1' }, maxOutputTokens: 9 })
      expect((await (await agent.getMemory()).recall({ threadId: 't', resourceId: 'u' })).messages).toHaveLength(2)
      expect(result.text).toBe('Fine.')
      // The others are those of generate(), to which they are passed.
      const received: string[] = []
      agent.generate = (async (_: unknown, options: object) => (received.push(...Object.keys(options)), {})) as never
      await agent.generateLegacy('Go.', Object.fromEntries(executionOptions.split(' ').map((name) => [name, {}])) as never)
      expect(received.toSorted()).toEqual(executionOptions.split(' ').toSorted())
    },
  },
  {
    title: 'the options of a run that a send starts are those of a call',
    async run() {
      const { agent, idle } = open()
      const callback = () => {}
      const streamOptions = {
        maxSteps: 2, stopWhen: stepCountIs(2), toolChoice: 'auto', activeTools: ['look'], modelSettings: { seed: 1 }, providerOptions: { x: {} },
        requestContext: new RequestContext(), abortSignal: new AbortController().signal, structuredOutput: { schema: z.string() }, instructions: 'A.', system: 'B.',
        model: scriptedModel(() => 'Other.'), tools: { look: look() }, toolsets: {}, clientTools: {}, requireToolApproval: false, toolCallConcurrency: 1,
        inputProcessors: [], outputProcessors: [], maxProcessorRetries: 0, transform: { transformToolPayload: () => 'x' }, runId: 'run-1', includeRawChunks: true,
        onChunk: callback, onStepFinish: callback, onFinish: callback, onError: callback, onAbort: callback,
      } as const
      expect(Object.keys(streamOptions).toSorted()).toEqual(executionOptions.replace('memory ', '').split(' ').toSorted())
      const received: object[] = []
      const prepare = agent.prepare.bind(agent)
      agent.prepare = (options, ...rest) => (received.push(options), prepare(options, ...rest))
      const { abortSignal: _, ...given } = streamOptions
      await agent.sendMessage('Go.', { resourceId: 'user-1', threadId: 'thread-1', ifIdle: { streamOptions: streamOptions as never } }).outcome
      await idle()
      expect(received[0]).toMatchObject(given)
      const stop = new AbortController()
      const gate = Promise.withResolvers<void>()
      const held = open({}, () => ({ text: 'Long.', gate: gate.promise }))
      held.agent.sendMessage('Go.', { resourceId: 'user-1', threadId: 'thread-1', ifIdle: { streamOptions: { abortSignal: stop.signal } } })
      await expect.poll(() => held.model.callCount).toBe(1)
      stop.abort()
      await held.idle()
      expect((await held.agent.threads().store.listRuns({ threadId: 'thread-1' }))[0]?.status).toBe('aborted')
    },
  },
  {
    title: 'the options of a search',
    async run() {
      const own = new Memory({ storage: new InMemoryStore() })
      const at = { threadId: 't', resourceId: 'u' }
      const texts = ['cats sleep', 'dogs bark', 'fish swim', 'birds sing']
      await own.createThread(at)
      await own.saveMessages({ messages: texts.map((content, index) => ({ id: `m-${index}`, role: index === 3 ? 'assistant' : 'user', content })) as never, ...at })
      const found = async (semanticRecall: object, vectorSearchString = 'dogs') =>
        (await own.recall({ ...at, perPage: 1, vectorSearchString, threadConfig: { semanticRecall } })).messages.map(({ id }) => id)
      expect(await found({ messageRange: { before: 1, after: 0 } })).toEqual(['m-0', 'm-1'])
      expect(await found({ messageRange: { before: 0, after: 1 } })).toEqual(['m-1', 'm-2'])
      expect(await found({ messageRange: 0, threshold: 1 }, 'dogs and horses and cows and sheep')).toEqual([])
      expect(await found({ messageRange: 0, filter: { role: 'assistant' } }, 'birds dogs')).toEqual(['m-3'])
      expect(await found({ messageRange: 0, filter: { role: 'assistant' } })).not.toContain('m-1')
      for (const indexConfig of [{ lists: 10 }, { ivf: { lists: 10 } }]) await rejects(() => found({ indexConfig }), 'indexConfig.type')
      const vector = new duckdb.DuckDBVector()
      onTestFinished(() => vector.close())
      await rejects(() => new Memory({ vector, embedder: 'openai/text-embedding-3-small', semanticRecall: { indexConfig: { type: 'flat', ivf: { lists: 10 } } } }), 'lists')
      await rejects(() => found({ messageRange: { around: 1 } }), 'around')
    },
  },
  {
    title: 'the options of memory in a call and of a Memory',
    async run() {
      const titles = scriptedModel(() => 'A title')
      const config = { generateTitle: { model: titles, instructions: 'One word.' }, workingMemory: { enabled: true, scope: 'thread', template: '# Notes' } } as const
      const { agent, model, heed } = open({ memory: new Memory({ ...config, options: { window: { low: 2, high: 2 }, semanticRecall: false } }) })
      const turn = (text: string, options = {}) => agent.generate(text, { memory: { ...memory, options } })
      for (const text of ['One.', 'Two.', 'Three.']) await turn(text)
      const questions = (call = -1) => JSON.stringify(model.calls.at(call)?.prompt).match(/(One|Two|Three|Four)\./g)
      expect(questions()).not.toContain('One.')
      await turn('Four.', { lastMessages: false, window: undefined, save: false })
      expect(questions()).toEqual(['Four.'])
      const own = await agent.getMemory()
      expect((await own.recall({ threadId: memory.thread, perPage: false })).messages.filter(({ role }) => role === 'assistant')).toHaveLength(3)
      await expect.poll(async () => (await own.getThreadById({ threadId: memory.thread }))?.title).toBe('A title')
      expect(JSON.stringify(titles.calls[0]?.prompt)).toContain('One word.')
      expect(model.calls[0]?.tools?.map(({ name }) => name)).toEqual(['updateWorkingMemory'])
      await turn('Four.', { readOnly: true })
      expect(model.calls.at(-1)?.tools ?? []).toEqual([])
      await heed.close()
      const schema = z.object({ name: z.string() })
      for (const [name, value] of Object.entries({ workingMemory: { schema, template: 'x' }, semanticRecall: { topk: 1 }, generateTitle: { modle: 1 }, window: { low: 2 } }))
        await rejects(() => new Memory({ [name]: value } as never), name === 'semanticRecall' ? 'topk' : name === 'generateTitle' ? 'modle' : name)
      await rejects(() => new Memory({ workingMemory: { enabled: true, scope: 'all' as never } }), 'scope')
      await rejects(() => new Memory({ workingMemory: { enabled: true, maxLength: 0 } }), 'maxLength')
      await rejects(() => new Memory({ save: false }), 'save')
      await rejects(() => new Memory({ storage: 7 as never }), 'storage')
      await rejects(() => new Memory({ vector: {} as never }), 'vector')
      await rejects(() => new Memory({ lastMessages: 1, options: { lastMessages: 2 } }), 'lastMessages')
      expect(new Memory({ readOnly: true, lastMessages: 3, save: true, workingMemory: { enabled: true, schema } }).options.lastMessages).toBe(3)
    },
  },
]
