import { expect } from 'vitest'
import type { Agent } from '../../../src/index.ts'
import { open, rejects, thread, type Probe } from '../probe.ts'
import { client, heed, processors, testing } from '../walked.ts'

const { createTool, Memory, InMemoryStore, RequestContext } = heed
const { scriptedModel } = testing

const { threadId, resourceId } = thread
const forbidden = { code: 'thread_forbidden' }
const settings = { maxOutputTokens: 9, temperature: 0.1, topP: 0.2, topK: 3, presencePenalty: 0.4, frequencyPenalty: 0.5, stopSequences: ['X'], seed: 7 }

/** A thread with a run that waits, and a message in the queue. */
async function working() {
  const { promise: gate, resolve: release } = Promise.withResolvers<void>()
  const opened = open({}, ({ index }) => (index === 0 ? { text: 'First.', gate } : 'Later.'))
  const first = opened.agent.sendMessage('One.', thread)
  await first.outcome
  await opened.agent.queueMessage('Two.', thread).stored
  return { ...opened, release, runId: first.runId ?? '' }
}

/** A run that waits for a decision about a call. */
async function suspended(toolName: 'pay' | 'ask') {
  const pay = createTool({ id: 'pay', requireApproval: true, execute: () => 'paid' })
  const ask = createTool({ id: 'ask', execute: (_, { resumeData, suspend }) => (resumeData === undefined ? suspend({ q: 1 }) : `answer ${String(resumeData)}`) })
  const opened = open({ tools: { pay, ask } }, [{ toolCalls: [{ toolName, toolCallId: 'c1', input: {} }] }, 'Done.'])
  opened.agent.sendMessage('Go.', thread)
  await expect.poll(async () => (await opened.agent.activeRun(thread))?.status).toBe('suspended')
  const { runs } = await opened.agent.listSuspendedRuns(thread)
  const { id: approvalId, digest } = runs[0]?.toolCalls[0]?.request ?? { id: '', digest: '' }
  const decidedBy = async () => {
    const { messages } = await (await opened.agent.getMemory()).recall({ ...thread, perPage: false })
    return JSON.stringify(messages)
  }
  return { ...opened, decidedBy, runId: runs[0]?.runId ?? '', call: { toolCallId: 'c1', approvalId, digest, by: 'the-one-who-decides', resourceId } }
}

type Send = (agent: Agent, ifIdle: never) => unknown
const sends: Record<string, Send> = {
  sendMessage: (agent, ifIdle) => agent.sendMessage('x', { ...thread, ifIdle }),
  queueMessage: (agent, ifIdle) => agent.queueMessage('x', { ...thread, ifIdle }),
  sendSignal: (agent, ifIdle) => agent.sendSignal({ type: 'reactive', contents: 'x' }, { ...thread, ifIdle }),
  sendStateSignal: (agent, ifIdle) => agent.sendStateSignal({ id: 'l', cacheKey: 'k', contents: 'x' }, { ...thread, ifIdle }),
  sendNotificationSignal: (agent, ifIdle) => agent.sendNotificationSignal({ source: 's', kind: 'k', summary: 'x', priority: 'urgent' }, { ...thread, ifIdle }),
}

export const steering: Probe[] = [
  ...Object.entries(sends).map(([name, send]): Probe => ({
    title: `Agent.${name}: the thread of its run is that of the send`,
    async run() {
      const { agent } = open()
      const woken = (own: object) => send(agent, { streamOptions: { memory: own } } as never)
      await rejects(() => woken({ thread: { id: 'other' } }), 'thread')
      await rejects(() => woken({ thread: { id: threadId }, resource: 'other' }), 'resource')
    },
  })),
  {
    title: 'Agent: what aborts a run, and its queue',
    async run() {
      const one = await working()
      await expect(one.agent.abortRun({ threadId, resourceId: 'other' })).rejects.toMatchObject(forbidden)
      await expect(one.agent.listQueued({ threadId, resourceId: 'other' })).rejects.toMatchObject(forbidden)
      await expect((async () => one.agent.subscribeToThread({ threadId, resourceId: 'other' }))()).rejects.toMatchObject(forbidden)
      expect(await one.agent.listQueued(thread)).toHaveLength(1)
      await one.agent.abortRun({ ...thread, clearPendingSignals: true })
      one.release()
      await one.idle()
      expect(one.model.callCount).toBe(1)
      const two = await working()
      expect(two.agent.abortThreadStream({ ...thread, clearPendingSignals: true })).toBe(true)
      two.release()
      await two.idle()
      expect([two.model.callCount, await two.agent.listQueued(thread)]).toEqual([1, []])
      const three = await working()
      three.agent.sendMessage('Also.', { ...thread, threadId: 'thread-2' })
      await expect.poll(async () => (await three.agent.listActiveThreads({ resourceId })).length).toBeGreaterThan(0)
      await expect(three.agent.retryParked({ ...thread, runId: 'none' })).rejects.toMatchObject({ details: { runId: 'none' } })
      await rejects(() => three.agent.listActiveThreads({ limit: 0 }), 'limit')
      await rejects(() => three.agent.listSuspendedRuns({ perPage: -1 }), 'perPage')
      three.release()
      await three.idle()
    },
  },
  {
    title: 'Agent: who decided about a call, and about which',
    async run() {
      const one = await suspended('pay')
      await (await one.agent.approveToolCall({ runId: one.runId, ...one.call })).text
      expect(await one.decidedBy()).toContain('the-one-who-decides')
      const two = await suspended('pay')
      await (await two.agent.declineToolCall({ runId: two.runId, ...two.call, reason: 'No.' })).text
      expect(await two.decidedBy()).toContain('the-one-who-decides')
      const three = await suspended('ask')
      expect((await three.agent.sendStreamResume({ ...thread, ...three.call, resumeData: 3 })).decided.by).toBe('the-one-who-decides')
      await three.idle()
      const four = await suspended('ask')
      const wrong = { toolCallId: 'c9', approvalId: 'none', digest: 'none', resourceId: 'other', runId: 'none' }
      for (const [name, value] of Object.entries(wrong))
        await expect(four.agent.resumeStream(4, { runId: four.runId, ...four.call, [name]: value }), name).rejects.toBeInstanceOf(Error)
      await (await four.agent.resumeStream(4, { runId: four.runId, ...four.call })).text
      expect(four.lastText()).toContain('answer 4')
      const again = four.agent.sendStreamResume({ ...thread, ...four.call, runId: four.runId, by: 'another', resumeData: 5 })
      await expect(again).rejects.toThrow('the-one-who-decides')
    },
  },
  {
    title: 'Agent: what depends on the request context',
    async run() {
      const requestContext = new RequestContext({ user: 'Ada' })
      const asked: unknown[] = []
      const own = new Memory({ storage: new InMemoryStore() })
      const tools = ({ requestContext: of }: { requestContext: InstanceType<typeof RequestContext> }) => ({ [String(of.get('user'))]: createTool({ id: 'look', execute: () => 'seen' }) })
      const { agent } = open({ tools, memory: ({ requestContext: of }) => (asked.push(of.get('user')), own), watches: true })
      await agent.getMemory({ requestContext })
      expect(asked.at(-1)).toBe('Ada')
      expect(JSON.stringify(await agent.describe({ requestContext }))).toContain('Ada')
      asked.length = 0
      await (await agent.forRequest({ requestContext })).listQueued(thread).catch(() => {})
      expect(asked).toContain('Ada')
      const { id } = await agent.awaitSignal({ description: 'a code', expected_channels: ['sms'] }, thread)
      await rejects(() => agent.cancelWatch({ id, threadId: 'other' }), id)
      await agent.sendStateSignal({ id: 'lane', cacheKey: 'a', contents: 'x', metadata: { by: 'me' } }, { ...thread, ifIdle: { behavior: 'persist' } })
      expect(JSON.stringify((await own.recall({ ...thread, perPage: false })).messages)).toContain('"by":"me"')
    },
  },
  {
    title: 'ModelConfig: the settings of an entry',
    async run() {
      const model = scriptedModel(() => 'Fine.')
      const modelSettings = { ...settings, headers: { 'x-trace': '1' }, reasoning: 'low' as const }
      const { agent } = open()
      await agent.generate('Go.', { model: [{ model, modelSettings }] })
      expect(model.calls[0]).toMatchObject(modelSettings)
      let attempts = 0
      const busy = scriptedModel(() => (attempts++, { error: { status: 503, headers: { 'retry-after-ms': '1' } } }), { loop: true })
      await agent.generate('Go.', { model: [{ model: busy, modelSettings: { maxRetries: 1 } }] }).catch(() => {})
      expect(attempts).toBe(2)
    },
  },
  {
    title: 'Memory: its options, in both places',
    async run() {
      const window = { low: 2, high: 4 }
      expect([new Memory({ window }).options.window, new Memory({ options: { window } }).options.window]).toEqual([window, window])
      expect(new Memory({ readOnly: true }).options.readOnly).toBe(true)
      const given = { readOnly: true, semanticRecall: false, workingMemory: { enabled: true }, generateTitle: true }
      expect(new Memory({ options: given }).options).toMatchObject(given)
      await rejects(() => new Memory({ options: { save: false } }), 'save')
    },
  },
  {
    title: 'WorkingMemory: its options',
    async run() {
      for (const [option, value] of Object.entries({ enabled: 'yes', maxLength: 0, scope: 'all', schema: 7, template: 7 }))
        await rejects(() => new processors.WorkingMemory({ [option]: value } as never), option)
    },
  },
  {
    title: 'ThreadListSubscription.changes: how it connects again',
    async run() {
      let opened = 0
      const heard: string[] = []
      const fetching: typeof fetch = () => {
        opened += 1
        return opened === 1 ? Promise.resolve(new Response('', { headers: { 'content-type': 'text/event-stream' } })) : Promise.reject(new Error('away'))
      }
      const asked = new client.HeedClient({ baseUrl: 'http://localhost:1', retries: 0, fetch: fetching })
      const subscription = await asked.subscribeToThreads({})
      const reconnect = { maxRetries: 2, delayMs: 1, onLost: () => void heard.push('lost'), onOpen: () => void heard.push('open') }
      const begun = performance.now()
      await subscription.changes(reconnect).next().catch(() => {})
      expect([opened, heard.includes('lost'), heard.includes('open'), performance.now() - begun < 500]).toEqual([3, true, true, true])
    },
  },
]
