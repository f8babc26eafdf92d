import { readUIMessageStream, type UIMessage } from 'ai'
import { describe, expect, it } from 'vitest'
import { answersWhatWaits, HeedChatTransport, type UIChunk } from '../../src/client/ai-sdk/index.ts'
import { HeedClient } from '../../src/client/index.ts'
import { Agent, createTool, type UIMessage as OwnMessage } from '../../src/index.ts'
import { scriptedModel, type ScriptedStep } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

const user = (id: string, text: string): UIMessage => ({ id, role: 'user', parts: [{ type: 'text', text }] })
const send = { trigger: 'submit-message', chatId: thread.threadId } as const
const pay = createTool({ id: 'pay', requireApproval: true, execute: async () => 'paid' })

async function last(stream: ReadableStream<UIChunk> | null, message?: UIMessage): Promise<UIMessage | undefined> {
  let seen: UIMessage | undefined = message
  for await (const value of readUIMessageStream({ stream: stream as ReadableStream<never>, ...(message ? { message } : {}) })) seen = value
  return seen
}

/** The message as the page has it, growing. */
function shownBy(stream: ReadableStream<UIChunk>) {
  const page: { message: UIMessage | undefined; over: Promise<void> } = { message: undefined, over: Promise.resolve() }
  page.over = (async () => {
    for await (const value of readUIMessageStream({ stream: stream as ReadableStream<never> })) page.message = value
  })()
  return page
}

const said = (message: UIMessage | undefined) =>
  message?.parts.filter(({ type }) => type !== 'step-start').map((part) => (part.type === 'text' ? part.text : `${part.type} ${(part as { state?: string }).state ?? ''}`.trim()))

/** A transport on a real server, and how many subscriptions it has open. */
async function chatting(script: Array<string | ScriptedStep>, tools = {}) {
  const agent = new Agent({ id: 'guide', model: scriptedModel(script), tools })
  const { server } = await served({ guide: agent })
  let open = 0
  const counted: typeof fetch = async (input, init) => {
    const response = await fetch(input, init)
    if (!String(input).endsWith('/subscribe') || !response.body) return response
    open++
    const body = response.body.pipeThrough(new TransformStream({}))
    init?.signal?.addEventListener('abort', () => open--, { once: true })
    return new Response(body, { status: response.status, headers: response.headers })
  }
  const remote = new HeedClient({ baseUrl: server.url, fetch: counted, retries: 0 }).getAgent('guide')
  return { agent, remote, transport: new HeedChatTransport({ agent: remote, resourceId: thread.resourceId }), open: () => open }
}

/** A page that follows. */
function followed(transport: HeedChatTransport) {
  let messages: OwnMessage[] = []
  const stop = transport.follow<OwnMessage>(thread.threadId, (update) => void (messages = update(messages)))
  const change = (changed: (message: OwnMessage) => OwnMessage) => void (messages = messages.map(changed))
  return { stop, change, messages: () => messages.map(({ role, parts }) => `${role}: ${said({ parts } as UIMessage)?.join('|')}`) }
}

const decided = (message: UIMessage | undefined, which: (index: number) => boolean = () => true) =>
  ({ ...message, parts: message?.parts.map((part, index) => ('state' in part && part.state === 'approval-requested' && which(index) ? { ...part, state: 'approval-responded', approval: { ...part.approval, approved: true } } : part)) }) as UIMessage

describe('a chat page', () => {
  it('[U1.9] a send that is refused leaves nothing behind, and what follows the thread goes on', async () => {
    const { transport, remote, open } = await chatting(['Hello.'])
    const page = followed(transport)
    await expect.poll(open).toBe(1)
    const huge = user('m0', 'x'.repeat(12_000_000))
    await expect(transport.sendMessages({ ...send, messages: [huge] })).rejects.toMatchObject({ code: 'too_large' })
    await remote.sendMessage({ message: 'From another tab.', ...thread })
    await expect.poll(page.messages).toEqual(['user: From another tab.', 'assistant: Hello.'])
    expect(open()).toBe(1)
    page.stop()
    await expect.poll(open).toBe(0)
  })

  it('[U1.8] has one subscription for all its streams and for what follows, and none when they are over', async () => {
    const running = Promise.withResolvers<void>()
    const go = Promise.withResolvers<void>()
    const look = createTool({ id: 'look', execute: async () => (running.resolve(), await go.promise, 'ok') })
    const { transport, open } = await chatting([{ toolCalls: [{ toolName: 'look', input: {} }] }, 'Seen.'], { look })
    const first = shownBy(await transport.sendMessages({ ...send, messages: [user('m1', 'Look.')] }))
    await running.promise
    await expect.poll(() => said(first.message)).toEqual(['tool-look input-available'])
    const resumed = last(await transport.reconnectToStream({ chatId: thread.threadId }))
    const others = await Promise.all([2, 3, 4].map((n) => transport.sendMessages({ ...send, messages: [user(`m${n}`, 'More.')] })))
    expect(open()).toBe(1)
    go.resolve()
    await first.over
    expect(said(first.message)).toEqual(['tool-look output-available'])
    expect(said(await resumed)).toEqual(['tool-look output-available'])
    expect((await Promise.all(others.map((stream) => last(stream)))).flatMap((message) => said(message) ?? [])).toEqual(['Seen.'])
    await expect.poll(open).toBe(0)
  })

  it('[U1.8] a stream that is taken up amid a text goes on with it', async () => {
    const go = Promise.withResolvers<void>()
    const { transport } = await chatting([{ reasoning: 'Hm.', text: ['By car ', 'over the pass.'], gate: { parts: 5, until: go.promise } }])
    const page = followed(transport)
    const shown = shownBy(await transport.sendMessages({ ...send, messages: [user('m1', 'Go.')] }))
    await expect.poll(() => said(shown.message)?.at(-1)).toBe('By car ')
    const resumed = last(await transport.reconnectToStream({ chatId: thread.threadId }))
    go.resolve()
    await shown.over
    expect(said(await resumed)).toEqual(said(shown.message))
    expect(said(shown.message)?.at(-1)).toBe('By car over the pass.')
    await expect.poll(page.messages).toEqual(['user: Go.', expect.stringMatching(/\|By car over the pass\.$/)])
    page.stop()
  })

  it('[U1.7] tells all calls that wait, shows what still waits when one is answered, and goes on when all are', async () => {
    const { transport, agent } = await chatting([{ toolCalls: [{ toolName: 'pay', input: { n: 1 } }, { toolName: 'pay', input: { n: 2 } }] }, 'Done.'], { pay })
    const asked = await last(await transport.sendMessages({ ...send, messages: [user('m1', 'Pay.')] }))
    expect(said(asked)).toEqual(['tool-pay approval-requested', 'tool-pay approval-requested'])
    const half = decided(asked, (index) => index < 2)
    expect(said(half)).toEqual(['tool-pay approval-responded', 'tool-pay approval-requested'])
    expect([answersWhatWaits({ messages: [half] }), answersWhatWaits({ messages: [decided(half)] })]).toEqual([false, true])
    expect(said(await last(await transport.sendMessages({ ...send, messages: [half] }), half))).toEqual(said(half))
    expect(await agent.activeRun(thread)).toMatchObject({ status: 'suspended' })
    const all = decided(half)
    expect(said(await last(await transport.sendMessages({ ...send, messages: [all] }), all))).toEqual(['tool-pay output-available', 'tool-pay output-available', 'Done.'])
  })

  it('[U1.7] a decision that another caller made first is no error: the answer has its outcome', async () => {
    const { transport, agent } = await chatting([{ toolCalls: [{ toolName: 'pay', input: {} }] }, 'Done.'], { pay })
    const asked = await last(await transport.sendMessages({ ...send, messages: [user('m1', 'Pay.')] }))
    await agent.sendToolApproval({ ...thread, approved: true })
    await expect.poll(() => agent.activeRun(thread)).toBeNull()
    const mine = decided(asked)
    expect(said(await last(await transport.sendMessages({ ...send, messages: [mine] }), mine))).toEqual(['tool-pay output-available', 'Done.'])
  })

  it('[U1.7] a tool that waits for data ends the stream with what it asks, may ask again, and is given what the page has', async () => {
    const given: unknown[] = []
    const ask = createTool({
      id: 'ask',
      execute: async (_, { resumeData, suspend }) => {
        if (resumeData !== undefined) given.push(resumeData)
        return given.length < 2 ? suspend?.({ question: `Number ${given.length}?` }) : 'noted'
      },
    })
    const { transport } = await chatting([{ toolCalls: [{ toolName: 'ask', input: {} }] }, 'Done.'], { ask })
    const questions = (message: UIMessage | undefined) => message?.parts.flatMap((part) => (part.type === 'data-suspended' ? [part.data] : []))
    let message = await last(await transport.sendMessages({ ...send, messages: [user('m1', 'Ask.')] }))
    for (const n of [0, 1]) {
      expect(questions(message)).toEqual([{ toolCallId: 'call_0_0', toolName: 'ask', args: {}, payload: { question: `Number ${n}?` } }])
      expect([message?.parts[1], answersWhatWaits({ messages: [message as UIMessage] })]).toMatchObject([{ state: 'input-available' }, false])
      const mine = { ...message, parts: message?.parts.map((part) => ('toolCallId' in part ? { ...part, state: 'output-available', output: n } : part)) } as UIMessage
      expect(answersWhatWaits({ messages: [mine] })).toBe(true)
      message = await last(await transport.sendMessages({ ...send, messages: [mine] }), mine)
    }
    expect(given).toEqual([0, 1])
    expect(message?.parts).toMatchObject([{}, { state: 'output-available', output: 'noted' }, { type: 'data-suspended', data: { isOver: true } }, {}, { text: 'Done.' }])
    expect(answersWhatWaits({ messages: [message as UIMessage] })).toBe(false)
  })

  it('[U1.7] what the user answered and the page has not sent stays, whatever is shown meanwhile', async () => {
    const ask = createTool({ id: 'ask', execute: async (_, { resumeData, suspend }) => (resumeData === undefined ? suspend?.({ question: 'Which?' }) : 'noted') })
    const { transport, agent } = await chatting([{ toolCalls: ['pay', 'pay', 'ask'].map((toolName) => ({ toolName, input: {} })) }], { pay, ask })
    const page = followed(transport)
    agent.sendMessage('Go.', thread)
    await expect.poll(page.messages).toEqual(['user: Go.', 'assistant: tool-pay approval-requested|tool-pay approval-requested|tool-ask input-available|data-suspended'])
    page.change((message) => decided(message as UIMessage, (index) => index < 2) as OwnMessage)
    page.change((message) => ({ ...message, parts: message.parts.map((part) => (part.type === 'tool-ask' ? { ...part, state: 'output-available', output: 1 } : part)) }) as OwnMessage)
    await agent.sendSignal({ type: 'reactive', tagName: 'weather', contents: 'It rains.' }, { ...thread, ifActive: { behavior: 'persist' } }).stored
    await expect.poll(page.messages).toEqual(['user: Go.', 'assistant: tool-pay approval-responded|tool-pay approval-requested|tool-ask output-available|data-suspended', 'system: data-signal'])
    page.stop()
  })

  it('[U1.7] [R8.5] answers to calls whose run was aborted are taken back, and sent no more', async () => {
    const ask = createTool({ id: 'ask', execute: async (_, { resumeData, suspend }) => (resumeData === undefined ? suspend?.({ question: 'Which?' }) : 'noted') })
    const { transport, agent } = await chatting([{ toolCalls: [{ toolName: 'pay', input: {} }, { toolName: 'ask', input: {} }] }], { pay, ask })
    const asked = decided(await last(await transport.sendMessages({ ...send, messages: [user('m1', 'Go.')] })))
    const mine = { ...asked, parts: asked.parts.map((part) => (part.type === 'tool-ask' ? { ...part, state: 'output-available', output: 1 } : part)) } as UIMessage
    expect(answersWhatWaits({ messages: [mine] })).toBe(true)
    await agent.abortRun(thread)
    const told = await last(await transport.sendMessages({ ...send, messages: [mine] }), mine)
    expect(told?.parts).toMatchObject([{}, { type: 'tool-pay', state: 'output-denied' }, { type: 'tool-ask', state: 'input-available' }, { type: 'data-suspended', data: { isOver: true } }])
    expect(answersWhatWaits({ messages: [told as UIMessage] })).toBe(false)
  })

  it('[U1.2] the same message again ends with what history says, however old it is', async () => {
    const { transport, agent } = await chatting(Array.from({ length: 60 }, (_, n) => `Answer ${n}.`))
    const first = await last(await transport.sendMessages({ ...send, messages: [user('m1', 'Hi.')] }))
    expect(await last(await transport.sendMessages({ ...send, messages: [user('m1', 'Hi.')] }))).toMatchObject({ id: first?.id, parts: [{}, { text: 'Answer 0.' }] })
    for (let n = 0; n < 55; n++) await agent.generate('More.', { memory: { thread: thread.threadId, resource: thread.resourceId } })
    expect(await last(await transport.sendMessages({ ...send, messages: [user('m1', 'Hi.')] }))).toBeUndefined()
  })

  it('[U1.9] a message that is taken back before a run took it ends its stream', async () => {
    const { transport, agent } = await chatting([{ text: ['I write ', 'and write'], hang: { parts: 2 } }])
    const first = last(await transport.sendMessages({ ...send, messages: [user('m1', 'Write.')] }))
    await expect.poll(() => agent.activeRun(thread)).toMatchObject({ status: 'running' })
    const second = last(await transport.sendMessages({ ...send, messages: [user('m2', 'And steer.')] }))
    await agent.abortRun({ ...thread, clearPendingSignals: true })
    expect(said(await first)?.length).toBe(1)
    expect(await second).toBeUndefined()
  })

  it('[U1.8] [U1.17] a page that takes an answer up again, or leaves while it connects, aborts nothing; one that stops it does', async () => {
    const { transport, agent } = await chatting([{ text: ['I write ', 'and write'], hang: { parts: 2 } }])
    agent.sendMessage('Write.', thread)
    await expect.poll(() => agent.activeRun(thread)).toMatchObject({ status: 'running' })
    const [gone, before, after] = [new AbortController(), new AbortController(), new AbortController()]
    const early = transport.reconnectToStream({ chatId: thread.threadId, abortSignal: gone.signal })
    gone.abort()
    await expect(early).rejects.toMatchObject({ name: 'AbortError' })
    const first = await transport.reconnectToStream({ chatId: thread.threadId, abortSignal: before.signal })
    before.abort()
    const second = shownBy((await transport.reconnectToStream({ chatId: thread.threadId, abortSignal: after.signal }))!)
    await last(first)
    await expect.poll(() => said(second.message)?.[0]).toMatch(/^I write/)
    expect(await agent.activeRun(thread)).toMatchObject({ status: 'running' })
    after.abort()
    await expect.poll(() => agent.activeRun(thread)).toBeNull()
    await second.over
    expect(said(second.message)?.[0]).toMatch(/^I write/)
  })
})
