import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { Channel, standardWebhook, type ChannelAdapter } from '../../src/channel/index.ts'
import { Agent, Heed, silentLogger, type ReplyRecord } from '../../src/index.ts'
import { signStandardWebhook } from '../../src/sources/signature.ts'
import type { StoreDomains } from '../../src/store/contract/storage.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { jumpingClock } from '../watch/shifted-clock.ts'

/**
 * One process of the campaign of kills between a message and its reply. It receives the messages, as often as it is started, and works
 * until nothing is due. `killAt`: it kills itself at the so manieth call of the store, the model or the provider, before or after it. 0: it
 * goes to the end, and reports what is stored.
 */
const { file, url, shift, killAt } = JSON.parse(process.argv[2] ?? '{}') as { file: string; url: string; shift: number; killAt: number }

/** The names of the messages, with their conversations. The provider refuses what is answered to one, and fails at first for another. */
const messages: Readonly<Record<string, string>> = { one: 'a', two: 'a', three: 'b', refused: 'c', shaky: 'd' }

export interface Report {
  replies: Array<Pick<ReplyRecord, 'id' | 'inboundId' | 'threadId' | 'state' | 'text' | 'error'>>
  /** For each thread the ids of the messages in its history, those of its runs, and how many answers it has. */
  threads: Record<string, { signals: string[]; runs: string[]; answers: number }>
  /** What a caller finds who lists the dead letters. */
  dead: string[]
}

let calls = 0
function reached(): void {
  calls += 1
  if (killAt > 0 && calls === killAt) process.kill(process.pid, 'SIGKILL')
}

/** Every call that writes is a place where a process may end, before and after. */
const writes = /^(add|claim|annotate|defer|settle|release|confirm|wake|send)/

async function around<Result>(work: () => Promise<Result>): Promise<Result> {
  reached()
  const result = await work()
  reached()
  return result
}

function fragile<Target extends object>(target: Target): Target {
  return new Proxy(target, {
    get(_, key) {
      const value: unknown = Reflect.get(target, key)
      if (typeof value !== 'function') return value
      const method = value as (...args: unknown[]) => unknown
      if (!writes.test(String(key))) return method.bind(target)
      return (...args: unknown[]) => around(async () => method.apply(target, args))
    },
  })
}

class FragileStore extends LibSQLStore {
  override accept(...args: Parameters<LibSQLStore['accept']>): ReturnType<LibSQLStore['accept']> {
    return around(() => super.accept(...args))
  }

  override beginRun(...args: Parameters<LibSQLStore['beginRun']>): ReturnType<LibSQLStore['beginRun']> {
    return around(() => super.beginRun(...args))
  }

  override commitStep(...args: Parameters<LibSQLStore['commitStep']>): ReturnType<LibSQLStore['commitStep']> {
    return around(() => super.commitStep(...args))
  }

  override async getStore<Domain extends keyof StoreDomains>(domain: Domain): Promise<StoreDomains[Domain] | undefined> {
    const store = await super.getStore(domain)
    return domain === 'watches' && store ? (fragile(store as object) as StoreDomains[Domain]) : store
  }
}

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 },
} as const

/** Other words in each process: a reply that was made twice would differ. */
const model: LanguageModelV4 = {
  specificationVersion: 'v4', provider: 'instant', modelId: 'instant', supportedUrls: {},
  doGenerate: () => Promise.reject(new Error('Only streams are read.')),
  async doStream({ prompt }) {
    reached()
    const name = /message (\w+)/.exec(JSON.stringify(prompt.at(-1)))?.[1] ?? 'nothing'
    const parts: LanguageModelV4StreamPart[] = [
      { type: 'stream-start', warnings: [] },
      { type: 'text-start', id: 't' }, { type: 'text-delta', id: 't', delta: `Answer to ${name}, of process ${process.pid}.` }, { type: 'text-end', id: 't' },
      { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage },
    ]
    return {
      stream: new ReadableStream({
        start(controller) {
          for (const part of parts) controller.enqueue(part)
          controller.close()
        },
      }),
    }
  },
}

const secret = `whsec_${Buffer.from('a secret of twenty-four b').toString('base64')}`
const clock = jumpingClock(shift)
const agent = new Agent({ id: 'assistant', model })
const adapter: ChannelAdapter = fragile(standardWebhook({ secret, replies: { url } }))
const channel = new Channel({ id: 'hook', adapter, resourceId: 'ada', mode: 'message', agent })
const storage = new FragileStore({ url: `file:${file}`, clock })
const heed = new Heed({ agents: { assistant: agent }, storage, channels: [channel], clock, logger: silentLogger })

/** The provider repeats what was not answered, and more. */
async function receive(): Promise<void> {
  for (const [name, conversation] of Object.entries(messages)) {
    const body = JSON.stringify({ sender: { address: `user-${conversation}`, verified: true }, text: `This is message ${name}.`, conversation })
    await channel.receive({ headers: new Headers(signStandardWebhook(name, body, secret, clock.now())), body })
  }
}

async function settle(): Promise<void> {
  for (let quiet = 0; quiet < 2;) quiet = (await heed.tick()).watches > 0 ? 0 : quiet + 1
}

async function open(): Promise<Array<{ threadId: string; resourceId: string }>> {
  const { replies } = await heed.channels.listReplies()
  return replies.filter(({ state }) => ['received', 'asked', 'pending'].includes(state)).map(({ threadId }) => ({ threadId, resourceId: 'ada' }))
}

/** Until each message is answered, or has a dead letter: what is due later is due now, unless something runs. */
async function finish(): Promise<void> {
  for (let left = await open(), turns = 0; left.length > 0 && turns < 5_000; left = await open(), turns += 1) {
    const runs = await Promise.all(left.map((thread) => agent.activeRun(thread)))
    if (!runs.some(Boolean)) clock.jump(5_000)
    await settle()
  }
}

async function report(): Promise<Report> {
  const { replies } = await heed.channels.listReplies()
  const threads: Report['threads'] = {}
  for (const { threadId } of replies) {
    const { messages: rows } = await (await agent.getMemory()).recall({ threadId, resourceId: 'ada', perPage: false })
    const runs = await storage.listRuns({ threadId })
    threads[threadId] = {
      signals: rows.filter(({ role }) => role === 'signal').map(({ id }) => id),
      runs: runs.toReversed().map(({ runId, status }) => `${runId} ${status}`),
      answers: rows.filter(({ role }) => role === 'assistant').length,
    }
  }
  const { replies: dead } = await heed.channels.listReplies({ state: 'dead' })
  return { replies, threads, dead: dead.map(({ id }) => id) }
}

await heed.start()
await receive()
await settle()
if (killAt === 0) {
  await finish()
  process.stdout.write(JSON.stringify(await report()))
}
await heed.close()
