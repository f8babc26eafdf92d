import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { Channel, directChannel } from '../../src/channel/index.ts'
import { Agent, Heed, silentLogger } from '../../src/index.ts'
import type { StoreDomains } from '../../src/store/contract/storage.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { shiftedClock } from './shifted-clock.ts'

/**
 * One process of the campaign of kills. It registers the watches and receives the messages, as often as it is started, and works until
 * nothing is due. `killAt`: it kills itself at the so manieth call of a store or model, before or after it. 0: it goes to the end, and
 * reports what is wrong then.
 */
const { file, shift, killAt } = JSON.parse(process.argv[2] ?? '{}') as { file: string; shift: number; killAt: number }

export interface Report {
  wrong: string[]
}

let calls = 0
function reached(): void {
  calls += 1
  if (killAt > 0 && calls === killAt) process.kill(process.pid, 'SIGKILL')
}

/** Every method of a store is a place where a process may end, before and after. Reads are not: they leave nothing. */
const writes = /^(add|claim|annotate|defer|register|settle|release|confirm)/

function fragile<Store extends object>(store: Store): Store {
  return new Proxy(store, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key)
      if (typeof value !== 'function') return value
      const method = value as (...args: unknown[]) => unknown
      if (!writes.test(String(key))) return method.bind(target)
      return async (...args: unknown[]) => {
        reached()
        const result = await method.apply(target, args)
        reached()
        return result
      }
    },
  })
}

class FragileStore extends LibSQLStore {
  override async accept(...sends: Parameters<LibSQLStore['accept']>): ReturnType<LibSQLStore['accept']> {
    reached()
    const accepted = await super.accept(...sends)
    reached()
    return accepted
  }

  override async getStore<Domain extends keyof StoreDomains>(domain: Domain): Promise<StoreDomains[Domain] | undefined> {
    const store = await super.getStore(domain)
    return domain === 'watches' && store ? (fragile(store as object) as StoreDomains[Domain]) : store
  }
}

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 },
} as const

/** A model that answers at once: with a call of one of the tools that it is offered, or with a text. The program of the campaign is one file without packages. */
function instant(answer: (tools: readonly string[]) => { toolName: string; input: unknown } | undefined): LanguageModelV4 {
  return {
    specificationVersion: 'v4', provider: 'instant', modelId: 'instant', supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('Only streams are read.')),
    async doStream({ tools = [] }) {
      reached()
      const call = answer(tools.map(({ name }) => name))
      const parts: LanguageModelV4StreamPart[] = [
        { type: 'stream-start', warnings: [] },
        ...(call
          ? [{ type: 'tool-call' as const, toolCallId: 'call', toolName: call.toolName, input: JSON.stringify(call.input) }]
          : [{ type: 'text-start' as const, id: 't' }, { type: 'text-delta' as const, id: 't', delta: 'Noted.' }, { type: 'text-end' as const, id: 't' }]),
        { type: 'finish', finishReason: { unified: call ? 'tool-calls' : 'stop', raw: 'stop' }, usage },
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
}

const judge = instant((tools) => ({ toolName: tools.find((name) => name === 'report_signal') ?? 'complete_task', input: { result: { matched: true } } }))
const clock = shiftedClock(shift)
const agent = new Agent({ id: 'assistant', model: instant(() => undefined), watches: { model: judge } })
const adapter = directChannel({ kind: 'sms' })
const annotator = instant(() => ({ toolName: 'annotate_message', input: { categories: ['urgent'] } }))
const channel = new Channel({ id: 'phone', adapter, resourceId: 'ada', annotator })
const heed = new Heed({
  agents: { assistant: agent }, storage: new FragileStore({ url: `file:${file}`, clock }), channels: [channel], clock, logger: silentLogger,
})

const once = ['one', 'two', 'labelled']
const messages = ['1', '2', '3', '4']
const deliver = (...ids: string[]) =>
  adapter.deliver(...ids.map((providerId) => ({ providerId, text: 'Hello.', sender: { address: '+15550100', verified: true } })))

async function work(): Promise<void> {
  const input = { description: 'any message', expected_channels: ['sms'], expires_in_minutes: 6_000, look_back_seconds: 600 }
  for (const id of once)
    await agent.awaitSignal({ ...input, ...(id === 'labelled' ? { expected_categories: ['urgent'] } : {}) }, { id, threadId: id, resourceId: 'ada' })
  await agent.awaitSignal({ ...input, mode: 'continuous' }, { id: 'each', threadId: 'each', resourceId: 'ada' })
  await agent.awaitSignal({ ...input, expected_channels: ['email'] }, { id: 'open', threadId: 'open', resourceId: 'ada' })
  await deliver(...messages)
  await settle()
}

async function settle(): Promise<void> {
  for (let quiet = 0; quiet < 2;) quiet = (await heed.tick()).watches > 0 ? 0 : quiet + 1
}

/** The ids of the signals of watches in a thread, when its runs are over. */
async function signals(threadId: string): Promise<string[]> {
  const thread = { threadId, resourceId: 'ada' }
  while ((await agent.activeRun(thread)) || (await agent.listQueued(thread)).length > 0) await heed.tick()
  const memory = await agent.getMemory()
  const { messages: found } = (await memory?.recall({ threadId, resourceId: 'ada', perPage: false })) ?? { messages: [] }
  return found.map(({ id }) => id).filter((id) => /^watch(-hit)?:/.test(id))
}

async function check(): Promise<string[]> {
  // A message that was lost with three processes has failed; the next one takes its place.
  await deliver('last')
  await settle()
  const wrong: string[] = []
  const expectEqual = (what: string, actual: unknown, wanted: unknown) => {
    if (JSON.stringify(actual) !== JSON.stringify(wanted)) wrong.push(`${what}: ${JSON.stringify(actual)} instead of ${JSON.stringify(wanted)}`)
  }
  for (const id of once) {
    const watch = await agent.getWatch({ id })
    expectEqual(`end of ${id}`, [watch?.state, watch?.reason, watch?.hits], ['ended', 'matched', 1])
    expectEqual(`signals of ${id}`, await signals(id), [`watch:${id}`])
  }
  const each = await agent.getWatch({ id: 'each' })
  const matched = (each?.candidates ?? []).filter(({ state }) => state === 'matched').map(({ seq }) => seq)
  const others = (each?.candidates ?? []).filter(({ state }) => state !== 'matched')
  expectEqual('the continuous watch', [each?.state, each?.hits, each?.candidates.length], ['open', matched.length, messages.length + 1])
  expectEqual('what did not match', others.filter(({ state, detail, attempts }) => state !== 'failed' || detail !== 'claim_expired' || attempts !== 3), [])
  expectEqual('its signals', await signals('each'), matched.map((seq) => `watch-hit:${seq}:each`))
  expectEqual('the open watch', (await agent.getWatch({ id: 'open' }))?.state, 'open')
  expectEqual('signals of the open watch', await signals('open'), [])
  return wrong
}

await heed.start()
await work()
if (killAt === 0) process.stdout.write(JSON.stringify({ wrong: await check() } satisfies Report))
await heed.close()
