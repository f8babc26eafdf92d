import { Agent, createTool, Heed, silentLogger, type AgentThreadSubscription, type Chunk, type SendOptions, type SubscribeOptions } from '../../src/index.ts'
import { systemClock } from '../../src/base/clock.ts'
import { handshakeMs } from '../../src/bus/namespaces.ts'
import { RedisBus } from '../../src/bus/redis/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel, type ScriptedCall, type ScriptedStep } from '../../src/testing/index.ts'
import { fastClock } from '../crash/fast-clock.ts'

/** One process of a cluster: it opens the file that its parent names and does what its parent asks, by messages. */

const [file = '', ...agentIds] = process.argv.slice(2)

if (process.env.HEED_PATIENT) {
  const { after } = systemClock
  systemClock.after = (ms, run, options) => after(ms === handshakeMs ? 60_000 : ms, run, options)
}

const gates = new Map<string, PromiseWithResolvers<void>>()
function gate(name: string): PromiseWithResolvers<void> {
  let found = gates.get(name)
  if (!found) gates.set(name, (found = Promise.withResolvers()))
  return found
}

/** When calls of the model were open, on a clock that all processes share, by the first word of what they answer. */
const calls: Array<{ about: string; from: number; to: number }> = []
const now = () => Number(process.hrtime.bigint() / 1000n)

/**
 * What the model does is in the last thing that a user said: `… say N [gate]`: N words, half of them before the gate; `… hang`; `… tool NAME`;
 * `… ask …`: the guide is asked what follows, by the agent `lead`.
 */
async function answer({ prompt, options }: ScriptedCall): Promise<ScriptedStep> {
  const last = prompt.at(-1)
  const text = last?.role === 'user' ? last.content.map((part) => (part.type === 'text' ? part.text : '')).join('') : ''
  const [about = '', verb, what = '', name] = text.split(' ')
  const call = { about, from: now(), to: Infinity }
  calls.push(call)
  options.abortSignal?.addEventListener('abort', () => (call.to = Math.min(call.to, now())))
  await new Promise((resolve) => setImmediate(resolve))
  call.to = Math.min(call.to, now())
  if (verb === 'hang') return { text: ['On ', 'and ', 'on'], hang: true }
  if (verb === 'ask') return { toolCalls: [{ toolName: 'agent-guide', toolCallId: `call-${about}`, input: { prompt: text.slice(text.indexOf('ask ') + 4) } }] }
  if (verb === 'tool') return { text: 'Let me see.', toolCalls: [{ toolName: what, toolCallId: `call-${about}`, input: { gate: name ?? '' } }] }
  const count = verb === 'say' ? Number(what) : 3
  const words = Array.from({ length: count }, (_, index) => `${about}-${index} `)
  return { text: words, ...(name === undefined ? {} : { gate: { parts: Math.floor(count / 2), until: gate(name).promise } }) }
}

const tools = {
  wait: createTool({
    id: 'wait',
    inputSchema: { type: 'object', properties: { gate: { type: 'string' } } } as const,
    execute: async (input) => {
      const { gate: name } = input as { gate?: string }
      if (name) await gate(name).promise
      return 'waited'
    },
  }),
  question: createTool({
    id: 'question',
    idempotent: true,
    inputSchema: { type: 'object', properties: { gate: { type: 'string' } } } as const,
    execute: async (input, { suspend, resumeData }) => {
      if (resumeData !== undefined) return `answered ${String(resumeData)}`
      await gate((input as { gate: string }).gate).promise
      return suspend({ question: 'Which?' })
    },
  }),
  /** Writes a chunk as soon as it is aborted. */
  late: createTool({
    id: 'late',
    execute: (_, { abortSignal, write }) => new Promise((_resolve, reject) => {
      abortSignal.addEventListener('abort', () => queueMicrotask(() => {
        write({ type: 'data-late', data: {} })
        reject(abortSignal.reason as Error)
      }))
    }),
  }),
  ask: createTool({ id: 'ask', requireApproval: true, execute: () => Promise.resolve('asked') }),
}

const made = (id: string, asks: Record<string, Agent> = {}) => new Agent({ id, model: scriptedModel(answer, { record: false }), tools, agents: asks })
const guide = made('guide')
const known = agentIds.length > 0 ? agentIds : ['guide']
const agents = Object.fromEntries(known.map((id) => [id, id === 'guide' ? guide : made(id, id === 'lead' ? { guide } : {})]))
const warnings: Array<{ message: string; code?: unknown }> = []
const logger = { ...silentLogger, warn: (message: string, fields: { code?: unknown } = {}) => void warnings.push({ message, code: fields.code }) }
const clock = process.env.HEED_CLOCK_START ? fastClock(4, Number(process.env.HEED_CLOCK_START)) : systemClock
const storage = new LibSQLStore({ url: `file:${file}`, clock })
const bus = process.env.HEED_REDIS ? new RedisBus({ url: process.env.HEED_REDIS }) : undefined
const runs = Number(process.env.HEED_RUNS ?? 2_000)
const heed = new Heed({ agents, storage, logger, clock, limits: { runs }, ...(bus && { bus }) })
const agent = (id = agentIds[0] ?? 'guide'): Agent => heed.getAgent(id)

const subscriptions = new Map<string, { subscription: AgentThreadSubscription; chunks: Chunk[] }>()
const outcomes = new Map<string, Promise<unknown>>()

const commands = {
  start: () => heed.start(),
  close: (drainMs = 0) => heed.close({ drainMs }),
  pid: () => process.pid,
  warnings: () => warnings,
  /** Answers when it is stored. */
  async send(text: string, options: SendOptions & { id?: string; agentId?: string; mode?: 'queue' }) {
    const { id, agentId, mode, ...rest } = options
    const message = id === undefined ? text : { contents: text, id }
    const receipt = mode === 'queue' ? agent(agentId).queueMessage(message, rest) : agent(agentId).sendMessage(message, rest)
    outcomes.set(receipt.signal.id, receipt.outcome)
    await receipt.stored
    return { id: receipt.signal.id, runId: receipt.runId }
  },
  outcome: (id: string) => outcomes.get(id),
  generate: async (text: string, threadId: string, resource: string) => (await agent().generate(text, { memory: { thread: threadId, resource } })).text,
  async subscribe(key: string, options: SubscribeOptions) {
    const subscription = await agent().subscribeToThread(options)
    const chunks: Chunk[] = []
    subscriptions.set(key, { subscription, chunks })
    void (async () => {
      for await (const chunk of subscription.stream) chunks.push(chunk)
    })()
  },
  forget() {
    for (const { subscription } of subscriptions.values()) subscription.unsubscribe()
    subscriptions.clear()
  },
  log: (key: string) => subscriptions.get(key)?.chunks,
  unsubscribe: (key: string) => subscriptions.get(key)?.subscription.unsubscribe(),
  abortSubscribed: (key: string) => subscriptions.get(key)?.subscription.abort(),
  abortRun: (options: { threadId: string; resourceId?: string; expectedRunId?: string; clearPendingSignals?: boolean }) => agent().abortRun(options),
  approve: (options: { threadId: string; resourceId: string } & { approved: boolean; resumeData?: string }, agentId?: string) => agent(agentId).sendToolApproval(options),
  /** Whether the thread is at work here. */
  runsHere: (threadId: string) => agent().threads().hostOf(threadId) !== undefined,
  activeRun: (options: { threadId: string }) => agent().activeRun(options),
  cancel: (options: { threadId: string; resourceId?: string; signalIds: string[] }) => agent().cancelQueued(options),
  queued: async (options: { threadId: string }) => (await agent().listQueued(options)).map(({ id }) => id),
  recall: async (threadId: string) => (await (await agent().getMemory()).recall({ threadId, perPage: 1_000 })).messages,
  delete: async (threadId: string) => (await agent().getMemory()).deleteThread(threadId),
  backup: (path: string) => storage.backup(path),
  restore: (path: string) => storage.restore(path),
  runs: (threadId: string) => agent().threads().store.listRuns({ threadId }),
  open: (name: string) => gate(name).resolve(),
  calls: () => calls.map((call) => ({ ...call, to: Number.isFinite(call.to) ? call.to : now() })),
}

export type Commands = typeof commands

process.on('message', ({ id, name, given }: { id: number; name: keyof Commands; given: never[] }) => {
  void (async () => {
    try {
      const result: unknown = await (commands[name] as (...given: never[]) => unknown)(...given)
      process.send?.({ id, result })
    } catch (error) {
      process.send?.({ id, error: error instanceof Error ? { message: error.message, code: 'code' in error ? error.code : undefined } : { message: String(error) } })
    }
  })()
})
process.send?.({ ready: true })
