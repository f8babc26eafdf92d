import { expect } from 'vitest'
import { z } from 'zod'
import type { Agent, AgentConfig, AgentExecutionOptions, MemoryOptions, Processor } from '../../../src/index.ts'
import type { Script } from '../../../src/testing/index.ts'
import { memory, open, rejects, thread, type Probe } from '../probe.ts'
import { heed, scorers, testing } from '../walked.ts'

const { createTool, RequestContext, stepCountIs } = heed
const { scriptedModel } = testing

type Options = AgentExecutionOptions
type Started = ReturnType<typeof open>

type Start = (options: Options, config?: Partial<AgentConfig>, script?: Script) => Promise<Started>
/** A call that starts a run with options; it ends with the run. `config` and `script` are those of its agent. */
interface Door {
  start: Start
  /** Options that it rejects by name. */
  rejected: readonly string[]
}

const called = (call: (agent: Agent, options: Options) => Promise<unknown>): Door => ({
  rejected: [],
  async start(options, config, script) {
    const started = open(config, script)
    await call(started.agent, options)
    return started
  },
})

/** A run that a send starts: its options are those of `ifIdle`. */
const sent = (send: (agent: Agent, target: never) => unknown): Door => ({
  rejected: ['save'],
  async start(options, config, script) {
    const started = open(config, script)
    const sending = send(started.agent, { ...thread, ifIdle: { streamOptions: options } } as never) as { outcome?: Promise<unknown> }
    await (sending.outcome ?? sending)
    await started.idle()
    return started
  },
})

const byDefault = (name: 'defaultOptions' | 'defaultGenerateOptionsLegacy' | 'defaultStreamOptionsLegacy', call: (agent: Agent) => Promise<unknown>): Door => ({
  rejected: ['runId'],
  async start(options, config, script) {
    const started = open({ ...config, [name]: options }, script)
    await call(started.agent)
    return started
  },
})

/** Cases of an evaluation: a case has its own context, and `runEvals()` the signal that aborts. */
const evaluated: Door = {
  rejected: ['runId', 'requestContext', 'abortSignal'],
  async start(options, config, script) {
    const started = open(config, script)
    await scorers.runEvals({ target: started.agent, data: [{ input: 'Lisbon.' }], scorers: [() => ({ name: 'any', score: 1 })], targetOptions: options })
    return started
  },
}

const read = async (stream: Promise<{ getFullOutput(): Promise<unknown> }>) => (await stream).getFullOutput()

const runDoors: Record<string, Door> = {
  'Agent.generate': called((agent, options) => agent.generate('Lisbon.', options)),
  'Agent.stream': called((agent, options) => read(agent.stream('Lisbon.', options))),
  'Agent.generateLegacy': called((agent, options) => agent.generateLegacy('Lisbon.', options)),
  'Agent.streamLegacy': called((agent, options) => read(agent.streamLegacy('Lisbon.', options))),
  'new Agent defaultOptions': byDefault('defaultOptions', (agent) => agent.generate('Lisbon.')),
  'new Agent defaultGenerateOptionsLegacy': byDefault('defaultGenerateOptionsLegacy', (agent) => agent.generateLegacy('Lisbon.')),
  'new Agent defaultStreamOptionsLegacy': byDefault('defaultStreamOptionsLegacy', (agent) => read(agent.streamLegacy('Lisbon.'))),
  'Agent.sendMessage': sent((agent, target) => agent.sendMessage('Lisbon.', target)),
  'Agent.queueMessage': sent((agent, target) => agent.queueMessage('Lisbon.', target)),
  'Agent.sendSignal': sent((agent, target) => agent.sendSignal({ type: 'reactive', contents: 'Lisbon.' }, target)),
  'Agent.sendStateSignal': sent((agent, target) => agent.sendStateSignal({ id: 'lane', cacheKey: 'a', contents: 'Lisbon.' }, target)),
  'runEvals targetOptions': evaluated,
  'Agent.sendNotificationSignal': sent((agent, target) => agent.sendNotificationSignal({ source: 'ci', kind: 'status', summary: 'Lisbon.', priority: 'urgent' }, target)),
}

const look = (id = 'look') => createTool({ id, inputSchema: z.object({}), execute: () => 'seen' })
const callsLook = [{ toolCalls: [{ toolName: 'look', input: {} }, { toolName: 'look', input: {} }] }, 'Done.']
const settled = (run: Promise<unknown>) => run.then(() => undefined, () => undefined)

const settings = { maxOutputTokens: 9, temperature: 0.1, topP: 0.2, topK: 3, presencePenalty: 0.4, frequencyPenalty: 0.5, stopSequences: ['X'], seed: 7 }

/** A run on a thread that has three questions and their answers. */
async function withHistory(start: Start, options: MemoryOptions) {
  const own = new heed.Memory({ storage: new heed.InMemoryStore() })
  await own.createThread(thread)
  const messages = ['One. Lisbon', 'Two.', 'Three.'].flatMap((content) => [{ role: 'user' as const, content }, { role: 'assistant' as const, content: 'Yes.' }])
  await own.saveMessages({ ...thread, messages })
  const { model } = await start({ memory: { ...memory, options } }, { memory: own })
  const call = model.calls.at(-1)
  return { own, texts: JSON.stringify(call?.prompt).match(/(One|Two|Three)\./g) ?? [], tools: call?.tools?.map(({ name }) => name) ?? [] }
}

const shownFor: Record<string, (start: Start, rejected: readonly string[]) => Promise<void>> = {
  async 'what the model is called with'(start, rejected) {
    const model = scriptedModel(() => 'Other.')
    const context = { requestContext: new RequestContext({ user: 'Ada' }) }
    const given = rejected.includes('requestContext') ? {} : context
    if (given !== context) await rejects(() => start(context), 'requestContext')
    const modelSettings = { ...settings, headers: { 'x-trace': '1' }, reasoning: 'low' as const }
    await start(
      {
        model, modelSettings, tools: { look: look() }, toolsets: { more: { find: look('find') } }, clientTools: { ask: { inputSchema: z.object({}) } },
        providerOptions: { x: { y: 1 } }, toolChoice: { type: 'tool', toolName: 'look' }, system: 'Briefly.', ...given,
      },
      { instructions: ({ requestContext }) => `For ${String(requestContext.get('user'))}.` },
    )
    const call = model.calls[0]
    expect(call).toMatchObject({ ...modelSettings, providerOptions: { x: { y: 1 } }, toolChoice: { type: 'tool', toolName: 'look' } })
    expect(call?.tools?.map(({ name }) => name)).toEqual(['ask', 'find', 'look'])
    expect(call?.prompt.filter(({ role }) => role === 'system').map(({ content }) => content)).toEqual([given === context ? 'For Ada.' : 'For undefined.', 'Briefly.'])
  },
  async 'instructions and active tools'(start) {
    const { model } = await start({ activeTools: [], instructions: 'Only this.' }, { instructions: 'Not this.', tools: { look: look() } })
    expect([model.calls[0]?.tools ?? [], model.calls[0]?.prompt[0]?.content]).toEqual([[], 'Only this.'])
  },
  async 'the most steps'(start) {
    expect((await start({ maxSteps: 1 }, { tools: { look: look() } }, callsLook)).model.callCount).toBe(1)
  },
  async 'the condition to stop'(start) {
    expect((await start({ stopWhen: stepCountIs(1) }, { tools: { look: look() } }, callsLook)).model.callCount).toBe(1)
  },
  async 'the approval of tools'(start) {
    const heard: string[] = []
    void settled(start({ requireToolApproval: true, onChunk: ({ type }) => void heard.push(type) }, { tools: { look: look() } }, callsLook))
    await expect.poll(() => heard).toContain('tool-call-approval')
    expect(heard).not.toContain('tool-result')
  },
  async 'tools at a time'(start) {
    let active = 0
    let most = 0
    const tool = createTool({
      id: 'look',
      async execute() {
        most = Math.max(most, ++active)
        await Promise.resolve()
        active--
      },
    })
    await start({ toolCallConcurrency: 1 }, { tools: { look: tool } }, callsLook)
    expect(most).toBe(1)
  },
  async 'callbacks and raw chunks'(start) {
    const heard: string[] = []
    const { model } = await start({
      includeRawChunks: true, onStepFinish: () => void heard.push('step'), onFinish: () => void heard.push('end'), onChunk: ({ type }) => void heard.push(type),
    })
    expect(heard).toEqual(expect.arrayContaining(['text-delta', 'step', 'end']))
    expect(model.calls[0]?.includeRawChunks).toBe(true)
  },
  async 'the id of the run'(start, rejected) {
    const ids = new Set<string | undefined>()
    const run = () => start({ runId: 'run-7', onChunk: ({ runId }) => void ids.add(runId) })
    if (rejected.includes('runId')) return rejects(run, 'runId')
    await run()
    expect([...ids]).toEqual(['run-7'])
  },
  async 'a signal that aborts'(start, rejected) {
    const stop = new AbortController()
    if (rejected.includes('abortSignal')) return rejects(() => start({ abortSignal: stop.signal }), 'abortSignal')
    let aborted = 0
    const gate = Promise.withResolvers<void>()
    const done = settled(start({ abortSignal: stop.signal, onAbort: () => void aborted++ }, {}, () => (stop.abort(), { text: 'Long.', gate: gate.promise })))
    await expect.poll(() => aborted).toBe(1)
    gate.resolve()
    await done
  },
  async 'attempts, and the failure'(start) {
    const errors: string[] = []
    let attempts = 0
    const model = scriptedModel(() => (attempts++, { error: Object.assign(new Error('busy'), { isRetryable: true, statusCode: 503 }) }), { loop: true })
    await settled(start({ model, modelSettings: { maxRetries: 0 }, onError: ({ error }) => void errors.push(error.message) }))
    expect([attempts, errors]).toEqual([1, [expect.stringContaining('busy')]])
  },
  async 'structured output'(start) {
    const structuredOutput = { schema: z.object({ n: z.number() }), name: 'number', description: 'A number.', jsonPromptInjection: true }
    const { model } = await start({ structuredOutput }, {}, () => '{"n":1}')
    expect(model.calls[0]?.responseFormat).toMatchObject({ type: 'json', name: 'number', description: 'A number.' })
    expect(JSON.stringify(model.calls[0]?.prompt)).toContain('JSON')
  },
  async 'processors and their retries'(start) {
    const seen: string[] = []
    const input: Processor = { id: 'in', processInput: ({ messages }) => (seen.push('in'), messages) }
    const output: Processor = { id: 'out', processOutputStep: ({ abort }) => (seen.push('out'), abort('Again.', { retry: true })) }
    await settled(start({ inputProcessors: [input], outputProcessors: [output], maxProcessorRetries: 1 }))
    expect(seen).toEqual(['in', 'out', 'out'])
  },
  async 'the transform of tool payloads'(start) {
    for (const [target, result] of [['display', 'hidden'], ['transcript', 'seen']] as const) {
      const results: unknown[] = []
      const transform = { targets: [target], transformToolPayload: () => 'hidden' }
      await start({ transform, onChunk: (chunk) => void (chunk.type === 'tool-result' && results.push(chunk.payload.result)) }, { tools: { look: look() } }, callsLook)
      expect(results).toEqual([result, result])
    }
  },
  async 'the thread of its memory'(start) {
    const { agent } = await start({ memory: { thread: { id: thread.threadId, title: 'A trip', metadata: { a: 1 } }, resource: thread.resourceId } })
    expect(await (await agent.getMemory()).getThreadById(thread)).toMatchObject({ title: 'A trip', metadata: { a: 1 } })
  },
  async 'the history of its memory'(start) {
    for (const options of [{ lastMessages: 2 }, { window: { low: 2, high: 2 } }])
      expect((await withHistory(start, { ...options, semanticRecall: false })).texts).not.toContain('One.')
    expect((await withHistory(start, { lastMessages: 2, semanticRecall: { enabled: true } })).texts).toContain('One.')
  },
  async 'working memory, and to read only'(start) {
    expect((await withHistory(start, { workingMemory: { enabled: true } })).tools).toEqual(['updateWorkingMemory'])
    expect((await withHistory(start, { workingMemory: { enabled: true }, readOnly: true })).tools).toEqual([])
  },
  async 'to save nothing'(start, rejected) {
    const run = () => withHistory(start, { save: false })
    if (rejected.includes('save')) return rejects(run, 'save')
    expect((await (await run()).own.recall({ ...thread, perPage: false })).messages).toHaveLength(6)
  },
  async 'the title of its memory'(start) {
    const titles = scriptedModel(() => 'A title')
    const { own } = await withHistory(start, { generateTitle: { model: titles, instructions: 'One word.' } })
    await expect.poll(async () => (await own.getThreadById(thread))?.title, { timeout: 20_000 }).toBe('A title')
    expect(JSON.stringify(titles.calls[0]?.prompt)).toContain('One word.')
  },
}

/** Every option of a run, through every call that starts one. */
export const startedRuns: Probe[] = Object.entries(runDoors).flatMap(([door, { start, rejected }]) =>
  Object.entries(shownFor).map(([what, show]) => ({ title: `${door}: ${what}`, run: () => show(start, rejected) })))
