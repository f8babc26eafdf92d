import { describe, expect, it } from 'vitest'
import { Agent, createTool, Memory, type AgentThreadSubscription, type Chunk, type Message, type SendReceipt } from '../../src/index.ts'
import type { Chance } from '../../src/store/conformance/fixture.ts'
import { instant, seeded } from './instants.ts'
import { ListeningModel } from './listening-model.ts'
import { openHeed, placeKinds } from './places.ts'
import { collect, joinedLog, soon } from './said.ts'
import { kept, told } from './transcript.ts'

const thread = { threadId: 'thread-1', resourceId: 'user-1' }

type Kind = 'message' | 'interrupt' | 'queue' | 'signal' | 'persist'

interface Sent {
  id: string
  kind: Kind
  receipt: SendReceipt
}

/** An agent whose every moment is drawn, and which notes when two runs are at work at once. */
function restless(chance: Chance) {
  const working = new Set<string>()
  let most = 0
  let steps = 0
  const model = new ListeningModel(() => {
    steps = steps < 3 && chance.below(2) === 0 ? steps + 1 : 0
    const tools = steps === 0 ? [] : Array.from({ length: 1 + chance.below(2) }, () => chance.pick(['look', 'look', 'ask', 'order', 'fail']))
    return { text: ['One moment please.', 'Well.', ''][chance.below(tools.length > 0 ? 3 : 2)] ?? '', tools, pause: () => instant(chance) }
  })
  // A tool whose signal aborted may take its time: it is no longer a part of its run.
  const at = async ({ runId, abortSignal }: { runId: string; abortSignal: AbortSignal }) => {
    working.add(runId)
    abortSignal.addEventListener('abort', () => working.delete(runId))
    most = Math.max(most, working.size)
    await instant(chance)
    if (!abortSignal.aborted) working.delete(runId)
  }
  const tools = {
    look: createTool({ id: 'look', execute: async (_, context) => (await at(context), 'seen') }),
    ask: createTool({ id: 'ask', requireApproval: true, execute: async (_, context) => (await at(context), 'asked') }),
    order: createTool({ id: 'order', execute: async (_, context) => (await at(context), context.resumeData === undefined ? context.suspend({ which: 'size' }) : 'ordered') }),
    fail: createTool({
      id: 'fail',
      execute: async (_, context) => {
        await at(context)
        throw new Error('no luck')
      },
    }),
  }
  const agent = new Agent({ id: 'restless', model, tools, memory: new Memory({ lastMessages: 1_000, semanticRecall: false }), defaultOptions: { maxSteps: 1 + chance.below(5) } })
  return { agent: agent as unknown as Agent, model, most: () => most }
}

function send(agent: Agent, kind: Kind, id: string): SendReceipt {
  switch (kind) {
    case 'queue':
      return agent.queueMessage({ contents: id, id }, thread)
    case 'signal':
      return agent.sendSignal({ type: 'notification', contents: id, id }, thread)
    case 'interrupt':
      return agent.sendMessage({ contents: id, id }, { ...thread, ifActive: { behavior: 'interrupt' } })
    case 'persist':
      return agent.sendMessage({ contents: id, id }, { ...thread, ifActive: { behavior: 'persist' }, ifIdle: { behavior: 'persist' } })
    case 'message':
      return agent.sendMessage({ contents: id, id }, thread)
  }
}

/** Decides about every call that waits, at a drawn moment. */
async function decideAll(agent: Agent, watcher: AgentThreadSubscription, chance: Chance): Promise<void> {
  for await (const chunk of watcher.stream) {
    if (!('payload' in chunk) || (chunk.type !== 'tool-call-approval' && chunk.type !== 'tool-call-suspended')) continue
    await instant(chance)
    const call = { ...thread, toolCallId: chunk.payload.toolCallId }
    const decided = chunk.type === 'tool-call-suspended' && chance.below(3) > 0
      ? agent.sendStreamResume({ ...call, resumeData: { size: 'L' } })
      : agent.sendToolApproval({ ...call, approved: chunk.type === 'tool-call-approval' && chance.below(3) > 0 })
    // An interrupt or an abort may have decided first.
    await decided.catch((error: { code?: string }) => expect(error.code).toBe('run_not_suspended'))
  }
}

async function history(agent: Agent): Promise<Message[]> {
  return (await (await agent.getMemory()).recall({ ...thread, perPage: false })).messages
}

/** One run after the other: a start is never inside another run. */
function expectOneRunAtOnce(chunks: readonly Chunk[]): void {
  let open: string | undefined
  for (const { type, runId } of chunks) {
    if (type === 'start') {
      expect(open).toBeUndefined()
      open = runId
    } else if (type === 'finish' || type === 'abort' || type === 'error') {
      expect(runId).toBe(open)
      open = undefined
    } else if (!type.startsWith('data-')) expect(runId).toBe(open)
  }
  expect(open).toBeUndefined()
}

async function storm(agent: Agent, model: ListeningModel, chance: Chance, options: { aborts: boolean }) {
  const watchers: Array<{ subscription: AgentThreadSubscription; seen: ReturnType<typeof collect>; whole: boolean }> = []
  const watch = async (more: { snapshot?: boolean }, whole: boolean) => {
    const subscription = await agent.subscribeToThread({ ...thread, ...more })
    watchers.push({ subscription, seen: collect(subscription), whole })
  }
  await watch({}, true)
  await watch({}, true)
  const judge = await agent.subscribeToThread(thread)
  const deciding = decideAll(agent, judge, chance)

  const sent: Sent[] = []
  const kinds: Kind[] = ['message', 'message', 'message', 'interrupt', 'queue', 'signal', 'persist']
  for (let index = 0; index < 40; index++) {
    const kind = chance.pick(kinds)
    const id = `${kind}-${index}`
    sent.push({ id, kind, receipt: send(agent, kind, id) })
    if (chance.below(10) === 0) send(agent, kind, id)
    if (options.aborts && chance.below(8) === 0) agent.abortThreadStream(thread)
    if (chance.below(8) === 0 && watchers.length < 8) await watch({ snapshot: true }, false)
    for (let pauses = chance.below(6); pauses > 0; pauses--) await instant(chance)
  }
  const outcomes = await Promise.all(sent.map(({ receipt }) => receipt.outcome))
  await soon(async () => (await agent.activeRun(thread)) === null && (await agent.listQueued(thread)).length === 0).toBe(true)
  // The last word, which is shown to everyone: nothing of what came before it can be missing then.
  const last = send(agent, 'persist', 'last')
  await last.outcome
  sent.push({ id: 'last', kind: 'persist', receipt: last })
  await soon(() => watchers.every(({ seen }) => told(seen.chunks).at(-1) === 'signal last')).toBe(true)
  judge.unsubscribe()
  for (const { subscription, seen } of watchers) {
    subscription.unsubscribe()
    await seen.done
  }
  await deciding
  return { sent, outcomes, watchers: watchers.map(({ seen, whole }) => ({ chunks: seen.chunks, whole })), messages: await history(agent), model }
}

const seeds = Array.from({ length: 12 }, (_, index) => index + 1)

describe.each(placeKinds())('random operations at random moments, $name', ({ make }) => {
  it.each(seeds)('[R1.3] [R2.2] [W2.1] [A4.1] leave each accepted signal in history once, answered once, and published to all subscribers alike: seed %i', (seed) =>
    seeded(seed, async (chance) => {
      const { agent, model, most } = restless(chance)
      openHeed({ agent }, make().store())
      const { sent, outcomes, watchers, messages } = await storm(agent, model, chance, { aborts: false })

      // Once in history, in the order of acceptance within each class.
      const signals = messages.filter(({ role }) => role === 'signal').map(({ id }) => id)
      expect(signals.toSorted()).toEqual(sent.map(({ id }) => id).toSorted())
      const classOf = (id: string) => (id.startsWith('queue') ? 'queue' : id.startsWith('persist') || id === 'last' ? 'persist' : 'now')
      for (const name of ['queue', 'persist', 'now']) {
        expect(signals.filter((id) => classOf(id) === name)).toEqual(sent.map(({ id }) => id).filter((id) => classOf(id) === name))
      }

      // Every one that was to be answered was in a prompt; nothing is in a prompt twice.
      const heard = new Set(model.heard.flat().map(plain))
      for (const { id, kind } of sent) if (kind !== 'persist') expect(heard).toContain(id)
      expect(new Set(model.last).size).toBe(model.last.length)
      expect(outcomes.map(({ action }, index) => [sent[index]?.kind, action]).filter(([kind, action]) => !truthful(kind as Kind, action ?? ''))).toEqual([])

      // Never two runs, and everyone saw the same.
      expect(most()).toBeLessThanOrEqual(1)
      expect(model.mostOpen).toBeLessThanOrEqual(1)
      const [first, second, ...others] = watchers
      expectOneRunAtOnce(first?.chunks ?? [])
      expect(joinedLog(second?.chunks ?? [])).toEqual(joinedLog(first?.chunks ?? []))
      // What everyone saw is history, word for word.
      const whole = spoken(kept(messages))
      expect(spoken(told(first?.chunks ?? []))).toEqual(whole)
      for (const { chunks } of others) {
        const tail = spoken(told(chunks))
        expect(tail).toEqual(whole.slice(whole.length - tail.length))
      }
      const shown = told(first?.chunks ?? []).filter((line) => line.startsWith('signal '))
      expect(new Set(shown).size).toBe(shown.length)
    }))

  it.each([...seeds.slice(0, 6), 75])('[R8.2] [R1.3] do the same between aborts: seed %i', (seed) =>
    seeded(100 + seed, async (chance) => {
      const { agent, model, most } = restless(chance)
      openHeed({ agent }, make().store())
      const { sent, watchers, messages } = await storm(agent, model, chance, { aborts: true })
      const signals = messages.filter(({ role }) => role === 'signal').map(({ id }) => id)
      expect(signals.toSorted()).toEqual(sent.map(({ id }) => id).toSorted())
      const heard = new Set(model.heard.flat().map(plain))
      for (const { id, kind } of sent) {
        if (kind === 'persist' || heard.has(id)) continue
        expect((await agent.explain({ ...thread, signalId: id }))?.run?.status).toBe('aborted')
      }
      expect(most()).toBeLessThanOrEqual(1)
      expect(model.mostOpen).toBeLessThanOrEqual(1)
      const [first, second] = watchers
      expectOneRunAtOnce(first?.chunks ?? [])
      expect(joinedLog(second?.chunks ?? [])).toEqual(joinedLog(first?.chunks ?? []))
      expect(spoken(told(first?.chunks ?? []))).toEqual(spoken(kept(messages)))
    }))
})

/** Notifications come in their tag. */
function plain(text: string): string {
  return text.replace(/^<notification>|<\/notification>$/g, '')
}

function truthful(kind: Kind, action: string): boolean {
  if (kind === 'persist') return action === 'persisted'
  if (kind === 'queue') return action === 'queued' || action === 'woke'
  return action === 'woke' || action === 'delivered' || action === 'queued'
}

/** Without what was only kept: that is shown, if at all, when it comes, and stands in history behind the run that was active then. */
function spoken(lines: readonly string[]): string[] {
  return lines.filter((line) => !line.startsWith('signal persist'))
}
