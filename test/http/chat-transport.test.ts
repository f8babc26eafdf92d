import { readUIMessageStream, type ChatTransport, type UIMessage } from 'ai'
import { describe, expect, it } from 'vitest'
import { HeedChatTransport, type HeedDataTypes } from '../../src/client/ai-sdk/index.ts'
import { HeedClient } from '../../src/client/index.ts'
import { Agent, createTool } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

const user = (id: string, text: string): UIMessage => ({ id, role: 'user', parts: [{ type: 'text', text }] })
const send = { trigger: 'submit-message', chatId: thread.threadId, messageId: undefined, abortSignal: undefined } as const

async function last(stream: ReadableStream<never>, message?: UIMessage): Promise<UIMessage | undefined> {
  let seen: UIMessage | undefined
  for await (const value of readUIMessageStream({ stream, ...(message ? { message } : {}) })) seen = value
  return seen
}

describe('the chat transport', () => {
  it('[U1.2] answers a message with the stream of its run, tools included', async () => {
    const look = createTool({ id: 'look', execute: async () => ({ seen: true }) })
    const agent = new Agent({ id: 'guide', model: scriptedModel([{ text: 'I look.', toolCalls: [{ toolName: 'look', input: {} }] }, 'Seen.']), tools: { look } })
    const { client } = await served({ guide: agent })
    const transport: ChatTransport<UIMessage> = new HeedChatTransport({ agent: client.getAgent('guide'), resourceId: thread.resourceId })
    const answer = await last((await transport.sendMessages({ ...send, messages: [user('m1', 'Go.')] })) as ReadableStream<never>)
    expect(answer?.parts).toMatchObject([
      { type: 'step-start' }, { type: 'text', text: 'I look.' }, { type: 'tool-look', state: 'output-available', output: { seen: true } }, { type: 'step-start' }, { type: 'text', text: 'Seen.' },
    ])
    expect(await transport.reconnectToStream({ chatId: thread.threadId })).toBeNull()
    expect(await transport.reconnectToStream({ chatId: 'never-seen' })).toBeNull()
  })

  it('[U1.2] resumes nothing when the run ends while the page is connecting', async () => {
    const running = Promise.withResolvers<void>()
    const over = Promise.withResolvers<void>()
    const look = createTool({ id: 'look', execute: async () => (running.resolve(), await over.promise, 'ok') })
    const agent = new Agent({ id: 'guide', model: scriptedModel([{ toolCalls: [{ toolName: 'look', input: {} }] }, 'Seen.']), tools: { look } })
    const { server } = await served({ guide: agent })
    agent.sendMessage('Go.', thread)
    await running.promise
    const late: typeof fetch = async (input, init) => {
      if (String(input).includes('subscribe')) {
        over.resolve()
        await expect.poll(() => agent.activeRun(thread)).toBeNull()
      }
      return fetch(input, init)
    }
    const transport = new HeedChatTransport({ agent: new HeedClient({ baseUrl: server.url, fetch: late }).getAgent('guide'), resourceId: thread.resourceId })
    expect(await transport.reconnectToStream({ chatId: thread.threadId })).toBeNull()
  })

  it('[U1.2] stops at a call that waits, and goes on in the same message when the page approves', async () => {
    const pay = createTool({ id: 'pay', requireApproval: true, execute: async () => 'paid' })
    const agent = new Agent({ id: 'guide', model: scriptedModel([{ toolCalls: [{ toolName: 'pay', input: {} }] }, 'Done.']), tools: { pay } })
    const { client } = await served({ guide: agent })
    const transport = new HeedChatTransport({ agent: client.getAgent('guide'), resourceId: thread.resourceId })
    const asked = await last((await transport.sendMessages({ ...send, messages: [user('m1', 'Pay.')] })) as unknown as ReadableStream<never>)
    const call = asked?.parts.find(({ type }) => type === 'tool-pay') as { toolCallId: string; state: string; approval: { id: string } }
    expect(call).toMatchObject({ state: 'approval-requested', approval: { id: expect.any(String) as string } })
    expect(call.approval.id).not.toBe(call.toolCallId)
    // A page that is loaded again finds the question again.
    const again = await transport.reconnectToStream({ chatId: thread.threadId })
    expect((await last(again as unknown as ReadableStream<never>))?.parts).toMatchObject(asked?.parts ?? [])
    const decided = { ...asked, parts: asked?.parts.map((part) => (part.type === 'tool-pay' ? { ...part, state: 'approval-responded', approval: { id: call.approval.id, approved: true } } : part)) } as UIMessage
    const done = await last((await transport.sendMessages({ ...send, messages: [user('m1', 'Pay.'), decided] })) as unknown as ReadableStream<never>, decided)
    expect(done?.parts).toMatchObject([{ type: 'step-start' }, { type: 'tool-pay', state: 'output-available', output: 'paid' }, { type: 'step-start' }, { type: 'text', text: 'Done.' }])
  })

  it('[U1.2] steers a run that is at work: the first stream stops where the second begins', async () => {
    const running = Promise.withResolvers<void>()
    const steered = Promise.withResolvers<void>()
    const look = createTool({ id: 'look', execute: async () => (running.resolve(), await steered.promise, 'ok') })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'look', input: {} }] }, 'By train then.'])
    const agent = new Agent({ id: 'guide', model, tools: { look } })
    const { client } = await served({ guide: agent })
    const transport = new HeedChatTransport({ agent: client.getAgent('guide'), resourceId: thread.resourceId })
    const first = last((await transport.sendMessages({ ...send, messages: [user('m1', 'Plan.')] })) as unknown as ReadableStream<never>)
    await running.promise
    const second = last((await transport.sendMessages({ ...send, messages: [user('m1', 'Plan.'), user('m2', 'By train.')] })) as unknown as ReadableStream<never>)
    steered.resolve()
    expect((await first)?.parts).toMatchObject([{ type: 'step-start' }, { type: 'tool-look', state: 'output-available' }])
    expect((await second)?.parts.filter(({ type }) => type === 'text')).toMatchObject([{ text: 'By train then.' }])
    expect(model.callCount).toBe(2)
  })

  it('[U1.2] shows signals, lanes and notifications that enter a run as typed data parts', async () => {
    const running = Promise.withResolvers<void>()
    const go = Promise.withResolvers<void>()
    const look = createTool({ id: 'look', execute: async () => (running.resolve(), await go.promise, 'ok') })
    const agent = new Agent({ id: 'guide', model: scriptedModel([{ toolCalls: [{ toolName: 'look', input: {} }] }, 'Seen.']), tools: { look } })
    const { client } = await served({ guide: agent })
    const transport = new HeedChatTransport({ agent: client.getAgent('guide'), resourceId: thread.resourceId })
    const answer = last((await transport.sendMessages({ ...send, messages: [user('m1', 'Look.')] })) as unknown as ReadableStream<never>)
    await running.promise
    await agent.sendSignal({ type: 'reactive', tagName: 'weather', contents: 'It rains.' }, thread).stored
    await agent.sendStateSignal({ id: 'cart', contents: 'Empty.', cacheKey: 'empty', mode: 'snapshot' }, thread)
    await agent.sendNotificationSignal({ source: 'ci', kind: 'status', summary: 'CI failed.', priority: 'urgent' }, thread)
    go.resolve()
    const message = (await answer) as UIMessage<unknown, HeedDataTypes> | undefined
    const signals = message?.parts.flatMap((part) => (part.type === 'data-signal' ? [part.data] : [])) ?? []
    expect(signals.map(({ type, tagName }) => [type, tagName])).toEqual([['reactive', 'weather'], ['state', expect.any(String)], ['notification', 'notification']])
    expect(signals[0]?.contents).toBe('It rains.')
    expect(JSON.stringify(signals[2]?.contents)).toContain('CI failed.')
  })
})
