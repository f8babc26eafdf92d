import { DefaultChatTransport, readUIMessageStream, type UIMessage } from 'ai'
import { describe, expect, it } from 'vitest'
import { apiKeys } from '../../src/http/server.ts'
import { Agent, createTool, toUIMessages } from '../../src/index.ts'
import { scriptedModel, type ScriptedStep } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

const user = (id: string, text: string): UIMessage => ({ id, role: 'user', parts: [{ type: 'text', text }] })
const pay = createTool({ id: 'pay', requireApproval: true, execute: async () => 'paid' })
const send = { trigger: 'submit-message', chatId: thread.threadId, messageId: undefined, abortSignal: undefined } as const

const said = (message: UIMessage | undefined) =>
  message?.parts.filter(({ type }) => type !== 'step-start').map((part) => (part.type === 'text' ? part.text : `${part.type} ${(part as { state?: string }).state ?? ''}`.trim()))

async function last(stream: ReadableStream<never> | null, message?: UIMessage): Promise<UIMessage | undefined> {
  let seen: UIMessage | undefined = message
  for await (const value of readUIMessageStream({ stream: stream as ReadableStream<never>, terminateOnError: true, ...(message ? { message } : {}) })) seen = value
  return seen
}

/** The AI SDK's own transport, as it is, on a real server. */
async function chatting(script: Array<string | ScriptedStep>, tools = {}, options: Parameters<typeof served>[1] = {}) {
  const agent = new Agent({ id: 'guide', model: scriptedModel(script), tools })
  const { server } = await served({ guide: agent }, options)
  const transport = new DefaultChatTransport<UIMessage>({ api: `${server.url}/api/agents/guide/chat`, body: { resourceId: thread.resourceId } })
  const history = async () => toUIMessages((await (await agent.getMemory()).recall({ ...thread, perPage: false })).messages)
  return { agent, server, transport, history }
}

describe("the AI SDK's own transport", () => {
  it.each([[{}], [{ type: 5 }], [{ type: 'tool-pay', state: 'approval-responded', toolCallId: 'a', approval: null }], [{ type: 'tool-pay', state: 5 }]])('[H4.1] a part that is none is refused by name: %o', async (part) => {
    const { ask } = await served({ guide: new Agent({ id: 'guide', model: scriptedModel([]) }) })
    for (const role of ['user', 'assistant', 'system']) {
      const answer = await ask('/agents/guide/chat', { json: { id: 'c', resourceId: 'user-1', messages: [{ id: 'm', role, parts: [part] }] } })
      expect([role, answer.status, ((await answer.json()) as { code: string }).code]).toEqual([role, 400, 'invalid_argument'])
    }
  })

  it('[H1.12] sends the last message to the thread and reads the answer, with the ids of history', async () => {
    const look = createTool({ id: 'look', execute: async () => 'seen' })
    const { transport, history } = await chatting([{ reasoning: 'Hm.', text: 'I look.', toolCalls: [{ toolName: 'look', input: {} }] }, 'Seen.', 'Two.'], { look })
    const one = await last(await transport.sendMessages({ ...send, messages: [user('m1', 'Look.')] }) as ReadableStream<never>)
    expect(said(one)).toEqual(['reasoning done', 'I look.', 'tool-look output-available', 'Seen.'])
    const two = await last(await transport.sendMessages({ ...send, messages: [user('m1', 'Look.'), one as UIMessage, user('m2', 'And?')] }) as ReadableStream<never>)
    expect(said(two)).toEqual(['Two.'])
    expect((await history()).map(({ id }) => id)).toEqual(['m1', one?.id, 'm2', two?.id])
    // The answer was lost on the way, and the page sends the message again.
    expect(await last(await transport.sendMessages({ ...send, messages: [user('m2', 'And?')] }) as ReadableStream<never>)).toMatchObject({ id: two?.id })
    expect(await history()).toHaveLength(4)
  })

  it('[M1.22] keeps the metadata that the page gave its message, and takes the message for the same when it is sent again', async () => {
    const { transport, history } = await chatting(['One.'])
    const message: UIMessage = { ...user('m1', 'Go.'), metadata: { page: '/trip', sendError: 'unreachable', createdAt: '2020-01-01T00:00:00.000Z' } }
    const one = await last(await transport.sendMessages({ ...send, messages: [message] }) as ReadableStream<never>)
    const [stored] = await history()
    expect(stored?.metadata).toMatchObject({ signal: { metadata: { page: '/trip' } } })
    expect(JSON.stringify(stored)).not.toMatch(/sendError|2020-01-01/)
    expect(await last(await transport.sendMessages({ ...send, messages: [stored as UIMessage] }) as ReadableStream<never>)).toMatchObject({ id: one?.id })
    expect(await history()).toHaveLength(2)
  })

  it('[H1.12] takes an answer up again that is being written, and answers 204 when there is none', async () => {
    const go = Promise.withResolvers<void>()
    const { transport, server } = await chatting([{ text: ['By car ', 'over the pass.'], gate: { parts: 2, until: go.promise } }])
    expect(await transport.reconnectToStream({ chatId: thread.threadId })).toBeNull()
    const first = await transport.sendMessages({ ...send, messages: [user('m1', 'Go.')] })
    // The page is loaded again: the run goes on.
    await first.cancel()
    const again = last(await transport.reconnectToStream({ chatId: thread.threadId }) as ReadableStream<never>)
    go.resolve()
    expect(said(await again)).toEqual(['By car over the pass.'])
    expect((await fetch(`${server.url}/api/agents/guide/chat/${thread.threadId}/stream`)).status).toBe(204)
  })

  it('[H1.12] approves a call and gets the rest of the answer', async () => {
    const { transport } = await chatting([{ toolCalls: [{ toolName: 'pay', input: {} }] }, 'Paid.'], { pay })
    const asked = await last(await transport.sendMessages({ ...send, messages: [user('m1', 'Pay.')] }) as ReadableStream<never>)
    expect(said(asked)).toEqual(['tool-pay approval-requested'])
    const decided = { ...asked, parts: asked?.parts.map((part) => ('state' in part && part.state === 'approval-requested' ? { ...part, state: 'approval-responded', approval: { ...part.approval, approved: true } } : part)) } as UIMessage
    const rest = await last(await transport.sendMessages({ ...send, messages: [user('m1', 'Pay.'), decided] }) as ReadableStream<never>, decided)
    expect(said(rest)).toEqual(['tool-pay output-available', 'Paid.'])
  })

  it('[H1.12] is held to the resources of its principal, and its context is that of the server', async () => {
    const seen: unknown[] = []
    const instructions = ({ requestContext }: { requestContext: { get(name: string): unknown } }) => (seen.push([requestContext.get('user'), requestContext.get('locale')]), '')
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Hi.', 'Hi.']), instructions: instructions as never })
    const auth = apiKeys({ 'the-key-of-one-user': { id: 'one', resources: ['one'] }, 'the-key-of-two-user': { id: 'two', resources: ['two'] } })
    const { server } = await served({ guide: agent }, { auth, requestContext: ({ principal, given, request }) => ({ user: `${principal.id} ${request.headers.get('x-from')}`, locale: given.locale }) })
    const as = (who: string) => new DefaultChatTransport<UIMessage>({ api: `${server.url}/api/agents/guide/chat`, headers: { authorization: `Bearer the-key-of-${who}-user`, 'x-from': 'page' }, body: { requestContext: { locale: 'de' } } })
    expect(said(await last(await as('one').sendMessages({ ...send, messages: [user('m1', 'Hi')] }) as ReadableStream<never>))).toEqual(['Hi.'])
    expect(seen).toEqual([['one page', 'de']])
    await expect(as('two').sendMessages({ ...send, messages: [user('m2', 'Hi')] })).rejects.toThrow(/thread_forbidden|another resource/)
    expect(await as('two').reconnectToStream({ chatId: thread.threadId })).toBeNull()
    await expect(as('nobody').sendMessages({ ...send, messages: [user('m3', 'Hi')] })).rejects.toThrow(/unauthorized/)
  })

  it('[H1.12] a failed run is an error of the chat, and what can not be sent is refused', async () => {
    const { transport } = await chatting([{ error: new Error('The provider is away.') }])
    await expect(last(await transport.sendMessages({ ...send, messages: [user('m1', 'Hi')] }) as ReadableStream<never>)).rejects.toThrow(/provider is away/)
    await expect(transport.sendMessages({ ...send, trigger: 'regenerate-message', messages: [user('m1', 'Hi')] })).rejects.toThrow(/regenerated/)
    await expect(transport.sendMessages({ ...send, messages: [] })).rejects.toThrow(/messages/)
  })

  it('[H7.4] is one stream of its principal while it is open, and none when it has ended or its caller has left', async () => {
    const key = 'the-key-of-one-user'
    const headers = { authorization: `Bearer ${key}` }
    const auth = apiKeys({ [key]: { id: 'one', resources: ['user-1'] }, 'the-key-of-operator': { id: 'root', resources: '*' } })
    const go = Promise.withResolvers<void>()
    const model = scriptedModel(['Hi.', 'Hi.', 'Hi.', { text: ['By car ', 'over the pass.'], gate: { parts: 2, until: go.promise } }])
    const { server, ask } = await served({ guide: new Agent({ id: 'guide', model }) }, { auth, limits: { streamsPerPrincipal: 1 } })
    const transport = new DefaultChatTransport<UIMessage>({ api: `${server.url}/api/agents/guide/chat`, headers })
    const open = async () => Number(/^heed_event_streams (\d+)$/m.exec(await (await ask('/metrics', { headers: { authorization: 'Bearer the-key-of-operator' } })).text())?.[1])
    const chat = (id: string, options = {}) => transport.sendMessages({ ...send, chatId: id, messages: [user(`m-${id}`, 'Hi')], ...options })
    for (const id of ['a', 'b', 'c']) {
      expect(said(await last(await chat(id) as ReadableStream<never>))).toEqual(['Hi.'])
      await expect.poll(open).toBe(0)
    }
    const long = await chat('d')
    const refused = await ask('/agents/guide/chat', { json: { id: 'e', messages: [user('m-e', 'Hi')] }, headers })
    expect([refused.status, refused.headers.get('retry-after'), model.calls.length]).toEqual([429, '5', 4])
    await long.cancel()
    await expect.poll(open).toBe(0)
    go.resolve()
  })
})
