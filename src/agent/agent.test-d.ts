import { tool } from 'ai'
import { expectTypeOf } from 'vitest'
import { z } from 'zod'
import { Memory } from '../memory/memory.ts'
import { RequestContext } from '../run/request-context.ts'
import { createTool } from '../run/tools/tool.ts'
import { Agent } from './agent.ts'

const weather = createTool({ id: 'weather', inputSchema: z.object({ city: z.string() }), execute: async () => ({ sky: 'rain' }) })
const timer = createTool({ id: 'timer', inputSchema: z.object({ days: z.string().transform(Number) }), execute: async ({ days }) => days })
const add = createTool({ id: 'add', inputSchema: z.object({ a: z.number(), b: z.number() }), execute: async ({ a, b }) => a + b })
const clock = tool({ inputSchema: z.object({ zone: z.string() }), execute: async ({ zone }) => ({ zone, at: 7 }) })
const agent = new Agent({ id: 'helper', model: 'openai/gpt-5.5', tools: { weather, add, clock } })

// The id is a literal, and the tools are known.
expectTypeOf(agent.id).toEqualTypeOf<'helper'>()
expectTypeOf(agent).toEqualTypeOf<Agent<'helper', { weather: typeof weather; add: typeof add; clock: typeof clock }>>()

// The name of the tool distinguishes calls and results.
const result = await agent.generate('Hi')
for (const call of result.toolCalls) {
  expectTypeOf(call.toolName).toEqualTypeOf<'weather' | 'add' | 'clock'>()
  if (call.toolName === 'weather') expectTypeOf(call.args).toEqualTypeOf<{ city: string }>()
  if (call.toolName === 'add') expectTypeOf(call.args).toEqualTypeOf<{ a: number; b: number }>()
  if (call.toolName === 'clock') expectTypeOf(call.args).toEqualTypeOf<{ zone: string }>()
}
for (const { toolName, result: output, isError } of result.toolResults) {
  // What failed has words in place of the tool's output.
  if (isError) expectTypeOf(output).toEqualTypeOf<string>()
  else if (toolName === 'weather') expectTypeOf(output).toEqualTypeOf<{ sky: string }>()
  else if (toolName === 'add') expectTypeOf(output).toEqualTypeOf<number>()
  else if (toolName === 'clock') expectTypeOf(output).toEqualTypeOf<{ zone: string; at: number }>()
}
expectTypeOf(result.object).toEqualTypeOf<undefined>()
expectTypeOf((await agent.stream('Hi')).toolCalls).resolves.toEqualTypeOf<typeof result.toolCalls>()

// Arguments are what the model wrote, before the schema made something of them.
const [timed] = (await new Agent({ id: 'timed', tools: { timer } }).generate('Hi')).toolCalls
expectTypeOf(timed?.args).toEqualTypeOf<{ days: string } | undefined>()

// Also of tools that are found for the request.
const dynamic = new Agent({ id: 'dynamic', tools: async () => ({ add }) })
expectTypeOf((await dynamic.generate('Hi')).toolResults[0]?.result).toEqualTypeOf<number | string | undefined>()

// And of tools that there are at times only.
const cond = Math.random() > 0.5
const sometimes = [
  new Agent({ id: 's', tools: cond ? { weather, add } : {} }),
  new Agent({ id: 's', tools: { weather: cond ? weather : undefined, add } }),
  new Agent({ id: 's', tools: () => (cond ? { weather, add } : {}) }),
  new Agent({ id: 's', tools: async () => ({ weather: cond ? weather : undefined, add }) }),
] as const
for (const one of sometimes) {
  const said = await one.generate('Hi', {
    tools: { add: cond ? add : undefined },
    toolsets: { clocks: cond ? { clock } : {} },
    clientTools: cond ? { clock } : {},
  })
  for (const call of said.toolCalls) {
    expectTypeOf(call.toolName).toEqualTypeOf<'weather' | 'add'>()
    if (call.toolName === 'weather') expectTypeOf(call.args).toEqualTypeOf<{ city: string }>()
  }
  for (const { toolName, result: output, isError } of said.toolResults) {
    if (!isError && toolName === 'weather') expectTypeOf(output).toEqualTypeOf<{ sky: string }>()
    if (!isError && toolName === 'add') expectTypeOf(output).toEqualTypeOf<number>()
  }
  expectTypeOf<Agent>(one)
}
const never = new Agent({ id: 'never', tools: { weather: undefined } })
expectTypeOf((await never.generate('Hi')).toolCalls[0]?.args).toEqualTypeOf<undefined>()
// @ts-expect-error null is no tool
void new Agent({ id: 'x', tools: { weather: cond ? weather : null } })

// Structured output is typed by its schema, in both ways to ask.
const schema = z.object({ city: z.string(), at: z.string().transform((text) => text.length) })
expectTypeOf((await agent.generate('Hi', { structuredOutput: { schema } })).object).toEqualTypeOf<{ city: string; at: number }>()
expectTypeOf((await agent.stream('Hi', { structuredOutput: { schema } })).object).resolves.toEqualTypeOf<{ city: string; at: number }>()

// Any agent may be the agent of another, whatever its tools are.
void new Agent({ id: 'lead', agents: { agent, dynamic } })
void new Agent({ id: 'lead', agents: async ({ requestContext }) => (requestContext.has('x') ? { agent } : { agent: dynamic }) })

// Everything that the request decides.
void new Agent({
  id: 'all',
  instructions: ({ requestContext }) => `For ${String(requestContext.get('user'))}`,
  model: () => ['openai/gpt-5.5', { model: 'anthropic/claude-sonnet-4-6', maxRetries: 1 }],
  defaultOptions: () => ({ maxSteps: 3 }),
  inputProcessors: () => [{ id: 'p', processInput: ({ messages }) => messages }],
  metadata: async () => ({ team: 'a' }),
  requestContextSchema: z.object({ user: z.string() }),
  editor: false,
})

// @ts-expect-error there is no such parameter
void new Agent({ id: 'x', instuctions: 'a typo' })
// @ts-expect-error a workflow has runs
void new Agent({ id: 'x', workflows: { w: { id: 'w' } } })
void new Agent({ id: 'x', editor: { tools: true } })
// A model may come from the environment, or from a function that reads a setting. A name that is not provider/model is rejected when it is used.
void new Agent({ id: 'x', model: process.env.MODEL ?? 'openai/gpt-5.5' })
void new Agent({ id: 'x', model: async () => 'openai/gpt-5.5' })
// @ts-expect-error a model is a name or an object
void new Agent({ id: 'x', model: 7 })

// A send names a thread with its resource, or a run.
agent.sendMessage('Hi', { threadId: 't', resourceId: 'r', ifIdle: { streamOptions: { memory: { options: { lastMessages: 4 } } } } })
agent.sendMessage('Hi', { runId: 'run-1' })
agent.sendMessage('Hi', { runId: 'run-1', threadId: 't', resourceId: 'r' })
// @ts-expect-error neither a thread nor a run
agent.sendMessage('Hi', {})
// @ts-expect-error a thread without its resource
agent.sendMessage('Hi', { threadId: 't' })
// @ts-expect-error a resource without a thread
agent.queueMessage('Hi', { resourceId: 'r' })
// @ts-expect-error neither a thread nor a run
void agent.sendStateSignal({ id: 'browser', cacheKey: 'a', contents: 'a' }, { ifIdle: { behavior: 'persist' } })
// @ts-expect-error that is no tool
void new Agent({ id: 'x', tools: { t: { description: 'x' } } })
// @ts-expect-error that is no agent
void new Agent({ id: 'x', agents: { t: {} } })
// @ts-expect-error a processor has an id
void new Agent({ id: 'x', inputProcessors: [{ processInput: () => undefined }] })
// @ts-expect-error no hook of that name
void new Agent({ id: 'x', inputProcessors: [{ id: 'p', procesInput: () => undefined }] })

// @ts-expect-error there is no such option
void agent.generate('Hi', { maxStep: 3 })
// @ts-expect-error a number
void agent.generate('Hi', { maxSteps: '3' })
// @ts-expect-error no such choice
void agent.generate('Hi', { toolChoice: 'maybe' })
// @ts-expect-error a number
void agent.generate('Hi', { modelSettings: { temperature: 'hot' } })
// @ts-expect-error a schema
void agent.generate('Hi', { structuredOutput: { schema: 7 } })
// @ts-expect-error a RequestContext
void agent.generate('Hi', { requestContext: { user: 'u' } })
void agent.generate('Hi', { requestContext: new RequestContext({ user: 'u' }) })
// @ts-expect-error no message
void agent.generate(7)
// @ts-expect-error no such role
void agent.generate([{ role: 'boss', content: 'x' }])

// An agent of certain tools is an agent.
const any: Agent = agent
void any

// Instructions that were written down before they are given.
const tone = { role: 'system', content: 'Be brief.' }
export const mixed = new Agent({ id: 'mixed', model: 'openai/gpt-5.5', instructions: ['You help.', tone] })
// @ts-expect-error a number is no instruction
export const wrong = new Agent({ id: 'wrong', model: 'openai/gpt-5.5', instructions: [7] })

// Where sends go, and what becomes of them.
const target = { resourceId: 'u', threadId: 't' }
expectTypeOf(agent.sendMessage('Hi', { ...target, ifIdle: { streamOptions: { maxSteps: 3 } } }).persisted).toEqualTypeOf<
  Promise<void> | undefined
>()
expectTypeOf(
  agent.queueMessage({ contents: [{ type: 'text', text: 'Hi' }], attributes: { name: 'Ada', n: 1 } }, target).runId,
).toEqualTypeOf<string>()
const state = await agent.sendStateSignal({ id: 'lane', cacheKey: 'k', contents: 'x' }, target)
if (state.skipped) expectTypeOf(state.reason).toEqualTypeOf<'unchanged'>()
else expectTypeOf(state.runId).toEqualTypeOf<string>()
const subscription = await agent.subscribeToThread({ threadId: 't' })
expectTypeOf(subscription.activeRunId()).toEqualTypeOf<string | null>()
expectTypeOf(subscription.abort()).toEqualTypeOf<boolean>()
expectTypeOf(await agent.forRequest({ requestContext: new RequestContext() })).toEqualTypeOf<typeof agent>()
void new Agent({ id: 'tenants', memory: ({ requestContext }) => new Memory({ lastMessages: requestContext.has('x') ? 1 : 2 }) })

// @ts-expect-error where it goes
void agent.sendMessage('Hi')
// @ts-expect-error no such behavior while active
void agent.sendMessage('Hi', { ...target, ifActive: { behavior: 'wake' } })
// @ts-expect-error no such behavior while idle
void agent.sendMessage('Hi', { ...target, ifIdle: { behavior: 'deliver' } })
// @ts-expect-error a typo
void agent.sendMessage('Hi', { ...target, ifIdle: { behaviour: 'persist' } })
// @ts-expect-error no options of a run while one is active
void agent.sendMessage('Hi', { ...target, ifActive: { streamOptions: {} } })
// @ts-expect-error a message has no tag
void agent.sendMessage({ contents: 'Hi', tagName: 'note' }, target)
// @ts-expect-error no such type
void agent.sendSignal({ type: 'github', contents: 'x' }, target)
// @ts-expect-error a signal needs its contents
void agent.sendSignal({ type: 'user' }, target)
// @ts-expect-error a state needs its key
void agent.sendStateSignal({ id: 'lane', contents: 'x' }, target)
// @ts-expect-error no such mode
void agent.sendStateSignal({ id: 'lane', cacheKey: 'k', contents: 'x', mode: 'patch' }, target)
// @ts-expect-error no such priority
void agent.sendNotificationSignal({ source: 's', kind: 'k', summary: 'x', priority: 'huge' }, target)
// @ts-expect-error a notification belongs to a resource
void agent.sendNotificationSignal({ source: 's', kind: 'k', summary: 'x' }, { threadId: 't' })
// @ts-expect-error which thread
void agent.subscribeToThread({ resourceId: 'u' })
// @ts-expect-error a decision about whose call
void agent.sendToolApproval({ approved: true })
// @ts-expect-error that is no memory
void new Agent({ id: 'x', memory: () => ({ lastMessages: 3 }) })
// @ts-expect-error a list of pending signals
void agent.cancelQueued({ threadId: 't' })
