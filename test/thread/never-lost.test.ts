import { describe, expect, it } from 'vitest'
import { Agent, createTool, Memory, type SignalOutcome } from '../../src/index.ts'
import type { Chance } from '../../src/store/conformance/fixture.ts'
import { instant, seeded } from './instants.ts'
import { ListeningModel } from './listening-model.ts'
import { openHeed, placeKinds } from './places.ts'
import { idle, soon } from './said.ts'

/** HEED_MESSAGES=10000 is the campaign, `npm run test:messages`. */
const messages = Number(process.env.HEED_MESSAGES ?? 1_500)
const each = 100
const threads = messages / each

interface Told {
  agent: Agent
  model: ListeningModel
  thread: { threadId: string; resourceId: string }
}

/** How many of the outcomes were which: a test whose messages all fell into the same moment would show little. */
function counter() {
  const counts: Record<string, number> = {}
  return {
    counts,
    count(outcomes: readonly SignalOutcome[]) {
      for (const { action } of outcomes) counts[action] = (counts[action] ?? 0) + 1
    },
  }
}

/** A model received everything that was sent: each once, in its order, and by one call at a time. */
function expectAllHeard({ model }: Told, sent: readonly string[]): void {
  expect(model.heard.flat()).toEqual(sent)
  expect(model.mostOpen).toBe(1)
}

async function expectAllKept({ agent, thread }: Told, sent: readonly string[]): Promise<void> {
  const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
  const signals = messages.filter(({ role }) => role === 'signal').map(({ content }) => content.parts.map((part) => ('text' in part ? part.text : '')).join(''))
  expect(signals).toEqual(sent)
}

const small = () => new Memory({ lastMessages: 2, semanticRecall: false })

describe.each(placeKinds())(`${messages.toLocaleString('en')} messages, $name`, ({ make }) => {
  it('[R3.2] sent around the end of runs are all answered, once and in order', { timeout: 600_000 }, () =>
    seeded(1, async (chance) => {
      const store = make().store()
      const { counts, count } = counter()
      const told = await Promise.all(Array.from({ length: threads }, async (_, index) => {
        const ended = new EventTarget()
        const model = new ListeningModel(() => ({ text: 'Yes.', said: () => ended.dispatchEvent(new Event('end')) }))
        const agent = new Agent({ id: `agent-${index}`, model, memory: small() })
        return { agent, model, ended, thread: { threadId: `thread-${index}`, resourceId: 'user' } }
      }))
      openHeed(Object.fromEntries(told.map(({ agent }) => [agent.id, agent])), store)

      await Promise.all(told.map(async ({ agent, model, ended, thread }) => {
        const sent: string[] = []
        const outcomes: Array<Promise<SignalOutcome>> = []
        const send = () => {
          sent.push(`message ${sent.length}`)
          outcomes.push(agent.sendMessage(sent.at(-1) ?? '', thread).outcome)
        }
        send()
        while (sent.length < each) {
          // Whatever was sent is followed by the last part of an answer; what comes next falls into the moments after that.
          await new Promise((resolve) => ended.addEventListener('end', resolve, { once: true }))
          await instant(chance, { milliseconds: 30 })
          for (let burst = 1 + chance.below(2); burst > 0 && sent.length < each; burst--) send()
        }
        const came = await Promise.all(outcomes)
        await idle(agent, thread)
        count(came)
        expectAllHeard({ agent, model, thread }, sent)
        await expectAllKept({ agent, model, thread }, sent)
      }))
      expect(Object.keys(counts).toSorted()).toEqual(['delivered', 'woke'])
      expect(Math.min(...Object.values(counts))).toBeGreaterThan(messages / 100)
    }))

  it('[R2.2] sent at any moment of runs with tools are all answered, once and in order', { timeout: 600_000 }, () =>
    seeded(2, async (chance) => {
      const store = make().store()
      const { counts, count } = counter()
      const told = Array.from({ length: threads }, (_, index) => {
        let tools = 0
        const model = new ListeningModel(() => {
          tools = tools < 3 && chance.below(2) === 0 ? tools + 1 : 0
          return { text: 'One moment.', ...(tools > 0 ? { tools: ['look', 'look'].slice(chance.below(2)) } : {}), pause: () => instant(chance) }
        })
        const look = createTool({ id: 'look', execute: async () => (await instant(chance), 'seen') })
        const agent = new Agent({ id: `agent-${index}`, model, tools: { look }, memory: small() })
        return { agent: agent as unknown as Agent, model, thread: { threadId: `thread-${index}`, resourceId: 'user' } }
      })
      openHeed(Object.fromEntries(told.map(({ agent }) => [agent.id, agent])), store)

      await Promise.all(told.map(async ({ agent, model, thread }) => {
        const sent: string[] = []
        const outcomes: Array<Promise<SignalOutcome>> = []
        while (sent.length < each) {
          sent.push(`message ${sent.length}`)
          outcomes.push(agent.sendMessage(sent.at(-1) ?? '', thread).outcome)
          await instant(chance)
          // Messages that come this fast find the run at work; some are to find the thread idle.
          if (chance.below(30) === 0) await idle(agent, thread)
        }
        const came = await Promise.all(outcomes)
        await idle(agent, thread)
        count(came)
        expectAllHeard({ agent, model, thread }, sent)
        await expectAllKept({ agent, model, thread }, sent)
      }))
      expect(Object.keys(counts).toSorted()).toEqual(['delivered', 'woke'])
      expect(Math.min(...Object.values(counts))).toBeGreaterThan(messages / 100)
    }))
})

const few = 20

describe.each(placeKinds())('1,000 messages, $name', ({ make }) => {
  /** A tool user whose every pause is drawn; `ask` needs an approval, which comes at a drawn moment, or a refusal. */
  function restless(chance: Chance, index: number, tools: string[], maxSteps = 20) {
    let steps = 0
    const model = new ListeningModel(() => {
      steps = steps < 3 && chance.below(3) > 0 ? steps + 1 : 0
      return { text: 'One moment please.', ...(steps > 0 && tools.length > 0 ? { tools: [chance.pick(tools)] } : {}), pause: () => instant(chance) }
    })
    const look = createTool({ id: 'look', execute: async () => (await instant(chance), 'seen') })
    const ask = createTool({ id: 'ask', requireApproval: true, execute: async () => (await instant(chance), 'asked') })
    const agent = new Agent({ id: `agent-${index}`, model, tools: { look, ask }, memory: new Memory({ lastMessages: 1_000, semanticRecall: false }), defaultOptions: { maxSteps } })
    return { agent: agent as unknown as Agent, model, thread: { threadId: `thread-${index}`, resourceId: 'user' } }
  }

  function all(chance: Chance, tools: string[], maxSteps?: number) {
    const told = Array.from({ length: few }, (_, index) => restless(chance, index, tools, maxSteps))
    openHeed(Object.fromEntries(told.map(({ agent }) => [agent.id, agent])), make().store())
    return told
  }

  async function sendAll({ agent, thread }: Told, chance: Chance, also?: (index: number) => { ifActive?: { behavior: 'interrupt' } } | undefined) {
    const sent: string[] = []
    const outcomes: Array<Promise<SignalOutcome>> = []
    while (sent.length < 50) {
      const more = also?.(sent.length)
      sent.push(`message ${sent.length}`)
      outcomes.push(agent.sendMessage(sent.at(-1) ?? '', { ...thread, ...more }).outcome)
      // The first opens the store. On a busy machine all others would have been sent by then.
      if (sent.length === 1) await outcomes[0]
      await instant(chance)
    }
    return { sent, outcomes: await Promise.all(outcomes) }
  }

  it('[R3.2] at maxSteps are all answered, once and in order', () =>
    seeded(3, async (chance) => {
      const { counts, count } = counter()
      await Promise.all(all(chance, ['look'], 1).map(async (told) => {
        const { sent, outcomes } = await sendAll(told, chance)
        await idle(told.agent, told.thread)
        // With one step a run, nothing enters one after its beginning.
        expect(new Set(outcomes.map(({ step }) => step))).toEqual(new Set([0]))
        count(outcomes)
        expectAllHeard(told, sent)
        await expectAllKept(told, sent)
      }))
      expect(counts.woke).toBeGreaterThan(counts.delivered ?? 0)
    }))

  it('[R3.2] while calls wait for approvals are all answered, once and in order', () =>
    seeded(4, async (chance) => {
      const { counts, count } = counter()
      await Promise.all(all(chance, ['look', 'ask']).map(async (told) => {
        const { agent, thread } = told
        const watcher = await agent.subscribeToThread(thread)
        const deciding = (async () => {
          for await (const chunk of watcher.stream) {
            if (chunk.type !== 'tool-call-approval' || !('payload' in chunk)) continue
            await instant(chance)
            await agent.sendToolApproval({ ...thread, toolCallId: chunk.payload.toolCallId, approved: chance.below(2) === 0 })
          }
        })()
        const { sent, outcomes } = await sendAll(told, chance)
        await idle(agent, thread)
        watcher.unsubscribe()
        await deciding
        count(outcomes)
        expectAllHeard(told, sent)
        await expectAllKept(told, sent)
      }))
      expect(Object.keys(counts).toSorted()).toEqual(['delivered', 'queued', 'woke'])
    }))

  it('[R2.3] that interrupt each other are all answered, once and in order', () =>
    seeded(5, async (chance) => {
      const { counts, count } = counter()
      await Promise.all(all(chance, ['look', 'ask']).map(async (told) => {
        const { agent, thread } = told
        const { sent, outcomes } = await sendAll(told, chance, () => (chance.below(2) === 0 ? { ifActive: { behavior: 'interrupt' } } : undefined))
        // The last word: whatever waits for an approval is declined by it.
        // Accepted first: a thread that is idle now would pass for one that is done.
        await agent.sendMessage('last', { ...thread, ifActive: { behavior: 'interrupt' } }).stored
        await soon(async () => {
          if ((await agent.activeRun(thread))?.status === 'suspended') await agent.sendToolApproval({ ...thread, approved: false }).catch(() => {})
          return agent.activeRun(thread)
        }).toBeNull()
        count(outcomes)
        // A call that was cut before its first word is made again: it has the same input again, and nothing is out of order.
        expect([...new Set(told.model.heard.flat())]).toEqual([...sent, 'last'])
        expect(told.model.last).toEqual([...sent, 'last'])
        await expectAllKept(told, [...sent, 'last'])
      }))
      expect(counts.delivered).toBeGreaterThan(100)
    }))

  it('[R8.2] between aborts are all kept and in order, and answered unless their own run was aborted', () =>
    seeded(6, async (chance) => {
      const { counts, count } = counter()
      let aborts = 0
      await Promise.all(all(chance, ['look']).map(async (told) => {
        const { agent, thread, model } = told
        const { sent, outcomes } = await sendAll(told, chance, () => {
          if (chance.below(4) === 0 && agent.abortThreadStream(thread)) aborts++
          return undefined
        })
        await idle(agent, thread)
        count(outcomes)
        await agent.sendMessage('last', thread).outcome
        await idle(agent, thread)
        expect(model.last).toEqual([...sent, 'last'])
        await expectAllKept(told, [...sent, 'last'])
        const heard = new Set(model.heard.slice(0, -1).flat())
        const store = await agent.getMemory()
        const { messages } = await store.recall({ ...thread, perPage: false })
        const ids = new Map(messages.filter(({ role }) => role === 'signal').map(({ id, content }) => [content.parts.map((part) => ('text' in part ? part.text : '')).join(''), id]))
        for (const text of sent.filter((one) => !heard.has(one))) {
          expect((await agent.explain({ ...thread, signalId: ids.get(text) ?? '' }))?.run?.status).toBe('aborted')
        }
      }))
      expect(aborts).toBeGreaterThan(20)
      expect((counts.delivered ?? 0) + (counts.woke ?? 0)).toBe(few * 50)
    }))
})
