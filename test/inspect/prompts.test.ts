import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { Agent, createTool, Heed, InMemoryStore, Memory, silentLogger, type Storage } from '../../src/index.ts'
import { TokenLimiter } from '../../src/processors/index.ts'
import { commonPrefix, fingerprint } from '../../src/prompt/explain.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel, type ScriptedModel } from '../../src/testing/index.ts'
import { readStepPrompt, type StepPrompt } from '../../src/thread/control/step-prompt.ts'

const thread = { threadId: 'thread-1', resourceId: 'user-1' }

/** All steps of the thread with their prompts, in the order of the calls. */
async function prompts(agent: Agent, scope = thread): Promise<StepPrompt[]> {
  const { store } = agent.threads()
  const runs = (await store.listRunDetails(scope, { limit: 1_000 })).toReversed()
  const made: StepPrompt[] = []
  for (const { runId, steps } of runs) {
    for (const { step } of steps) made.push((await readStepPrompt(store, scope, runId, step)) as StepPrompt)
  }
  return made
}

/** As the model received them, and as JSON has them. */
const sent = ({ calls }: ScriptedModel) => calls.map(({ prompt, tools = [] }) => JSON.stringify({ prompt, tools }))
const rebuilt = (made: StepPrompt[]) => made.map(({ prompt, tools }) => JSON.stringify({ prompt, tools }))

function world(storage: Storage, model: ScriptedModel, extra: Partial<ConstructorParameters<typeof Agent>[0]> = {}) {
  const look = createTool({
    id: 'look', description: 'Looks up a fact.', inputSchema: z.object({ about: z.string() }), execute: async ({ about }) => ({ fact: `${about} is known` }),
  })
  const agent = new Agent({ id: 'guide', instructions: 'You know the way.', model, tools: { look }, ...extra })
  const heed = new Heed({ agents: { agent }, storage, logger: silentLogger })
  onTestFinished(() => heed.close())
  return { agent, heed }
}

const script = ({ index }: { index: number }) =>
  index % 3 === 0 ? { text: 'I look.', toolCalls: [{ toolName: 'look', input: { about: `place ${index}` } }] } : `Answer ${index}.`

/** Turns with states of a lane, notifications, plain signals and queued messages. */
async function turns(agent: Agent, count: number, from = 0): Promise<void> {
  for (let turn = from; turn < from + count; turn++) {
    if (turn % 3 === 1) await agent.sendStateSignal({ id: 'browser', mode: turn % 2 ? 'snapshot' : 'delta', cacheKey: `v${turn}`, contents: `page ${turn}` }, thread)
    if (turn % 4 === 2) await agent.sendNotificationSignal({ source: 'github', kind: 'ci', summary: `Build ${turn} failed`, priority: 'urgent' }, thread)
    if (turn % 5 === 3) await agent.sendSignal({ type: 'reactive', tagName: 'note', contents: `Note <b>${turn}</b>` }, { ...thread, ifIdle: { behavior: 'persist' } }).stored
    await agent.generate(`Question ${turn} about the mill`, { memory: { thread: thread.threadId, resource: thread.resourceId } })
  }
  await expect.poll(async () => (await agent.activeRun(thread)) === null).toBe(true)
}

describe('the prompt of a past step', () => {
  it('[I1.1] has the bytes that the model received, over turns with tools, lanes, notifications, signals and recall', async () => {
    const model = scriptedModel(script)
    const { agent } = world(new InMemoryStore(), model, { memory: new Memory({ options: { lastMessages: 12, semanticRecall: { topK: 2 }, workingMemory: { enabled: true } } }) })
    await turns(agent, 24)
    const made = await prompts(agent)
    expect(made.length).toBe(model.calls.length)
    expect(made.every(({ exact }) => exact), JSON.stringify(made.find(({ exact }) => !exact))).toBe(true)
    expect(rebuilt(made)).toEqual(sent(model))
    expect(new Set(made.flatMap(({ parts }) => parts.map(({ source }) => source)))).toEqual(new Set(['tools', 'instructions', 'history', 'input', 'signal', 'context', 'response']))
  })

  it('[I1.1] has them after a restart, in which the instructions changed, and names the changed part as the first that broke the prefix', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'heed-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const storage = () => new LibSQLStore({ url: `file:${join(folder, 'heed.db')}` })
    const before = scriptedModel(script)
    const first = world(storage(), before)
    await turns(first.agent, 6)
    await first.heed.close()
    const after = scriptedModel(script)
    const { agent } = world(storage(), after, { instructions: 'You know another way.' })
    await turns(agent, 6, 6)
    const made = await prompts(agent)
    expect(rebuilt(made)).toEqual([...sent(before), ...sent(after)])
    expect(made.every(({ exact }) => exact)).toBe(true)
    const changed = made[before.calls.length]
    expect(changed?.brokenAt).toBe(1)
    expect(changed?.parts[1]).toMatchObject({ source: 'instructions', index: 0 })
  })

  it('[I1.2] is compared with the call before it by its parts: the prefix is that of commonPrefix over what was sent', async () => {
    const model = scriptedModel(script)
    const { agent } = world(new InMemoryStore(), model)
    await turns(agent, 8)
    const made = await prompts(agent)
    const prints = model.calls.map(({ prompt, tools = [] }) => [...tools, ...prompt].map(fingerprint))
    for (const [index, { prefix, previous }] of made.entries()) {
      expect(prefix).toEqual(commonPrefix(prints[index - 1] ?? [], prints[index] ?? []))
      expect(previous === undefined).toBe(index === 0)
    }
  })

  it('[I1.1] has them where a processor changed the messages of one call, and says so', async () => {
    const model = scriptedModel(script)
    const shorten = { id: 'shorten', processInputStep: ({ messages }: { messages: unknown[] }) => ({ messages: messages.slice(-3) }) }
    const { agent } = world(new InMemoryStore(), model, { inputProcessors: [new TokenLimiter(200), shorten as never] })
    await turns(agent, 10)
    const made = await prompts(agent)
    expect(rebuilt(made)).toEqual(sent(model))
    expect(made.every(({ exact }) => exact)).toBe(true)
    expect(made.filter(({ altered }) => altered).length).toBeGreaterThan(5)
  })

  it('[I1.1] has them for a provider that needs cache markers, and for one with an earlier interface', async () => {
    for (const options of [{ provider: 'anthropic.messages', modelId: 'claude-x' }, { specificationVersion: 'v3' }, { specificationVersion: 'v2' }] as const) {
      const model = scriptedModel(script as never, options as never) as unknown as ScriptedModel
      const { agent } = world(new InMemoryStore(), model)
      await turns(agent, 4)
      expect(rebuilt(await prompts(agent)).map((text) => JSON.parse(text).prompt)).toEqual(sent(model).map((text) => JSON.parse(text).prompt))
    }
  })

  it('[I1.3] says that it is not exact once a message of it was deleted or changed', async () => {
    const model = scriptedModel(() => 'Yes.')
    const { agent } = world(new InMemoryStore(), model)
    for (const text of ['One', 'Two', 'Three']) await agent.generate(text, { memory: { thread: thread.threadId, resource: thread.resourceId } })
    const { store } = agent.threads()
    expect((await prompts(agent)).map(({ exact }) => exact)).toEqual([true, true, true])
    const [first] = (await store.listRows(thread, { after: -1, limit: 10 })).rows
    await store.deleteMessages(thread, [first?.messageId ?? ''])
    const made = await prompts(agent)
    expect(made.map(({ exact }) => exact)).toEqual([false, false, false])
    expect(made[2]?.why).toMatch(/deleted, changed or withdrawn/)
    expect(await readStepPrompt(store, thread, 'no-run', 0)).toBeNull()
  })

  it('[I1.4] needs no storage for a second call: instructions and tools are stored once for all threads, and removed with the last step', async () => {
    const storage = new InMemoryStore()
    const model = scriptedModel(() => 'Yes.')
    const { agent } = world(storage, model)
    const scopes = ['a', 'b', 'c'].map((threadId) => ({ threadId, resourceId: 'user-1' }))
    for (const scope of scopes) await agent.generate('Hi', { memory: { thread: scope.threadId, resource: scope.resourceId } })
    const heads = await Promise.all(scopes.map(async (scope) => (await prompts(agent, scope)).length))
    expect(heads).toEqual([1, 1, 1])
    const { store } = agent.threads()
    const later = Date.now() + 2 * 86_400_000
    expect(await store.pruneHeads({ before: later, limit: 10 })).toEqual({ removed: 0 })
    for (const scope of scopes) await store.deleteThread(scope)
    expect(await store.pruneHeads({ before: later, limit: 10 })).toEqual({ removed: 1 })
  })
})
