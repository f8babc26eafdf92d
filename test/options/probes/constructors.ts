import { expect, onTestFinished } from 'vitest'
import { z } from 'zod'
import { HeedEditor } from '../../../src/editor/index.ts'
import type { Processor } from '../../../src/index.ts'
import { LocalBus } from '../../../src/bus/local.ts'
import { memory, open, rejects, thread, type Probe } from '../probe.ts'
import { heed, sources, testing } from '../walked.ts'

const { Agent, createTool, Heed, InMemoryStore, Memory, RequestContext, silentLogger } = heed
const { WebhookSignals } = sources
const { scriptedModel, virtualClock } = testing

const event = { source: 'ci', kind: 'status', summary: 'Failed.' }

export const constructors: Probe[] = [
  {
    title: 'the parameters of an agent',
    async run() {
      const look = createTool({ id: 'look', inputSchema: z.object({}), execute: () => 'seen' })
      const seen: string[] = []
      const input: Processor = { id: 'in', processInput: ({ messages }) => (seen.push('in'), messages) }
      const output: Processor = { id: 'out', processOutputStep: ({ abort }) => (seen.push('out'), abort('Again.', { retry: true })) }
      const model = scriptedModel(() => 'Fine.')
      const heed = new Heed({ storage: new InMemoryStore(), logger: silentLogger })
      const agent = new Agent({
        id: 'one', name: 'One', description: 'The first.', metadata: { team: 'a' }, instructions: 'Be brief.', model, tools: { look }, heed, editor: false,
        agents: { two: new Agent({ id: 'two', model }) }, defaultOptions: { modelSettings: { seed: 4 } }, requestContextSchema: z.object({ plan: z.string() }),
        inputProcessors: [input], outputProcessors: [output], maxProcessorRetries: 1, memory: new Memory({ lastMessages: 2 }), signalTags: ['alarm'],
      })
      const requestContext = new RequestContext({ plan: 'gold' })
      const { tripwire } = await agent.generate('<alarm>x</alarm>', { requestContext, memory })
      expect([seen, tripwire?.processorId]).toEqual([['in', 'out', 'out'], 'out'])
      expect([agent.id, agent.name, agent.description, await agent.getMetadata(), heed.getAgentById('one')]).toEqual(['one', 'One', 'The first.', { team: 'a' }, agent])
      expect(model.calls[0]).toMatchObject({ seed: 4, prompt: [{ role: 'system', content: 'Be brief.' }, { role: 'user' }] })
      expect(model.calls[0]?.tools?.map(({ name }) => name)).toEqual(['agent-two', 'look'])
      expect(JSON.stringify(model.calls[0]?.prompt.at(-1))).toContain('&lt;alarm')
      await expect(agent.generate('x')).rejects.toMatchObject({ code: 'invalid_request_context' })
      expect((await agent.getMemory()).options.lastMessages).toBe(2)
      await heed.close()
      const hidden = open({ tools: { look }, transform: { transformToolPayload: () => 'hidden' } }, [{ toolCalls: [{ toolName: 'look', input: {} }] }, 'Done.'])
      const results: unknown[] = []
      for await (const chunk of (await hidden.agent.stream('Go.')).fullStream) if (chunk.type === 'tool-result') results.push(chunk.payload.result)
      expect(results).toEqual(['hidden'])
      const seenByReader = open({ tools: { look }, transform: { transformToolPayload: () => 'hidden', targets: ['transcript'] } }, [{ toolCalls: [{ toolName: 'look', input: {} }] }, 'Done.'])
      for await (const chunk of (await seenByReader.agent.stream('Go.')).fullStream) if (chunk.type === 'tool-result') results.push(chunk.payload.result)
      expect(results).toEqual(['hidden', 'seen'])
      await rejects(() => new Agent({ id: 'x', model, maxAgentDepth: 0 }), 'maxAgentDepth')
      for (const option of ['instruction', 'tool']) await rejects(() => new Agent({ id: 'x', [option]: {} } as never), option)
      const editor = new HeedEditor()
      const fixed = new Heed({ agents: { fixed: new Agent({ id: 'fixed', model, editor: false }) }, storage: new InMemoryStore(), editor, logger: silentLogger })
      onTestFinished(() => fixed.close())
      await rejects(() => editor.save('fixed', { base: 0, by: 'ann', instructions: 'Other.' }), 'fixed')
    },
  },
  {
    title: 'the policy of notifications',
    async run() {
      const at = new Date(Date.now() + 60_000)
      const decided = async (deliveryPolicy: object, priority: 'low' | 'urgent' = 'low') => {
        const { agent } = open({ notifications: { deliveryPolicy } })
        return (await agent.sendNotificationSignal({ ...event, priority }, thread)).record
      }
      expect(await decided({ default: 'discard' })).toMatchObject({ status: 'discarded' })
      expect(await decided({ default: 'persist', priorities: { urgent: 'discard' } }, 'urgent')).toMatchObject({ status: 'discarded' })
      expect(await decided({ default: 'persist', sources: { ci: 'discard' } })).toMatchObject({ status: 'discarded' })
      expect(await decided({ decide: () => ({ action: 'defer', deliverAt: at, reason: 'later' }) })).toMatchObject({ deliverAt: at, deliveryReason: 'later' })
      expect(await decided({ decide: () => ({ action: 'summarize', summaryAt: at }) })).toMatchObject({ summaryAt: at })
      for (const where of [(one: object) => ({ default: one }), (one: object) => ({ default: 'persist', priorities: { low: one } }), (one: object) => ({ default: 'persist', sources: { ci: one } })]) {
        expect(await decided(where({ action: 'defer', deliverAt: at, reason: 'later' }))).toMatchObject({ deliverAt: at, deliveryReason: 'later' })
        expect(await decided(where({ action: 'summarize', summaryAt: at }))).toMatchObject({ summaryAt: at })
        expect(await decided(where({ action: 'discard' }))).toMatchObject({ status: 'discarded' })
      }
      for (const policy of [{ fallback: 'deliver' }, { default: { action: 'sing' } }, { default: { action: 'defer', at } }])
        await rejects(() => new Agent({ id: 'x', notifications: { deliveryPolicy: policy as never } }), Object.keys(policy)[0] === 'fallback' ? 'fallback' : 'default')
      await rejects(() => new Agent({ id: 'x', notifications: { policy: 1 } as never }), 'policy')
    },
  },
  {
    title: 'the parameters of a Heed',
    async run() {
      const clock = virtualClock()
      const storage = new InMemoryStore({ clock })
      const lines: string[] = []
      const say = (line: string) => void lines.push(line)
      const logger = { debug: say, info: say, warn: say, error: say }
      const asked: unknown[] = []
      const model = scriptedModel(() => 'Fine.')
      const agent = new Agent({ id: 'one', model, memory: ({ requestContext }) => (asked.push(requestContext.get('tenant')), new Memory()) })
      const failing = new Agent({ id: 'two', model: () => { throw new Error('no model') } })
      const sources = [new WebhookSignals({ id: 'hook', secret: `whsec_${'a'.repeat(40)}` })]
      const notifications = { dispatch: { enabled: false, batchSize: 1 }, batching: { quietMs: 1_000, maxWaitMs: 1_000 }, dedupeMemoryMs: 60_000, decideTimeoutMs: 10, maxAttempts: 1 }
      const bus = new LocalBus()
      const connected: string[] = []
      const connect = bus.connect.bind(bus)
      bus.connect = (options) => (connected.push(options.id), connect(options))
      const heed = new Heed({ agents: { agent, failing }, storage, bus, notifications, sources, logger, tracing: false, clock })
      expect([heed.clock, heed.sources.get('hook'), heed.getAgent('agent')]).toEqual([clock, sources[0], agent])
      await heed.start({ requestContexts: [new RequestContext({ tenant: 'acme' })] })
      expect(asked).toContain('acme')
      expect(connected).toHaveLength(1)
      failing.sendMessage('Go.', thread)
      await expect.poll(() => lines).toContain('a run failed')
      const other = { ...thread, threadId: 'thread-2' }
      for (const summary of ['A.', 'B.']) await agent.sendNotificationSignal({ ...event, summary, priority: 'low' }, other)
      await clock.advance(1_000)
      expect(model.callCount).toBe(0)
      expect((await heed.tick({ requestContexts: [new RequestContext({ tenant: 'globex' })] })).notifications).toBeGreaterThan(0)
      expect(asked).toContain('globex')
      expect(await new Memory({ storage }).getThreadById({ threadId: thread.threadId })).not.toBeNull()
      await heed.close()
      for (const [config, name] of [
        [{ stores: 1 }, 'stores'], [{ notifications: { dispatch: { cron: 'no' } } }, 'cron'], [{ notifications: { dispatch: { batchSize: 0 } } }, 'batchSize'],
        [{ notifications: { batching: { quietMs: -1 } } }, 'quietMs'], [{ notifications: { batching: { maxWaitMs: -1 } } }, 'maxWaitMs'],
        [{ notifications: { dedupeMemoryMs: -1 } }, 'dedupeMemoryMs'], [{ notifications: { decideTimeoutMs: 0 } }, 'decideTimeoutMs'],
        [{ notifications: { maxAttempts: 0 } }, 'maxAttempts'], [{ notifications: { dispatch: { enable: true } } }, 'enable'], [{ tracing: { inputs: true } }, 'inputs'],
        [{ storage: {} }, 'storage'], [{ storage: null }, 'storage'], [{ bus: {} }, 'bus'], [{ logger: {} }, 'logger'], [{ logger: null }, 'logger'],
        [{ clock: {} }, 'clock'], [{ agents: [] }, 'agents'], [{ workflows: [] }, 'workflows'], [{ sources: {} }, 'sources'], [{ channels: {} }, 'channels'],
      ] as const) await rejects(() => new Heed(config as never), name)
      await rejects(() => heed.start({ contexts: [] } as never), 'contexts')
      await rejects(() => heed.tick({ max: 1 } as never), 'max')
    },
  },
  {
    title: 'Heed.tick: how much it does, and how long',
    async run() {
      const clock = virtualClock()
      const storage = new InMemoryStore({ clock })
      const deliveryPolicy = { default: { action: 'defer' as const, deliverAt: new Date(clock.now() + 1_000) } }
      const { agent, heed, model } = open({ notifications: { deliveryPolicy } }, () => ({ text: 'Long.', hang: true }), { clock, storage, notifications: { dispatch: { enabled: false } } })
      for (const threadId of ['thread-1', 'thread-2', 'thread-3']) await agent.sendNotificationSignal({ ...event, priority: 'low' }, { ...thread, threadId })
      await clock.advance(1_000)
      const ticked = heed.tick({ limit: 2, timeoutMs: 1_000 })
      ticked.catch(() => {})
      await expect.poll(() => model.callCount).toBe(2)
      await clock.advance(1_000)
      expect((await ticked).notifications).toBe(2)
    },
  },
]
