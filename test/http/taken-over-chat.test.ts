import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readUIMessageStream, type UIMessage } from 'ai'
import { describe, expect, it, onTestFinished } from 'vitest'
import { HeedChatTransport } from '../../src/client/ai-sdk/index.ts'
import { HeedClient } from '../../src/client/index.ts'
import { Agent, createTool, toUIMessages } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel, type ScriptedStep } from '../../src/testing/index.ts'
import { harmfulProxy, seeded } from './proxy.ts'
import { served, thread } from './serving.ts'

const look = createTool({ id: 'look', execute: async () => 'seen' })
const pay = createTool({ id: 'pay', requireApproval: true, execute: async () => 'paid' })
const looks: ScriptedStep = { text: 'I look.', toolCalls: [{ toolName: 'look', toolCallId: 'call-1', input: {} }] }
const pays: ScriptedStep = { text: 'I pay.', toolCalls: [{ toolName: 'pay', toolCallId: 'call-1', input: {} }] }
const begins: ScriptedStep = { text: ['Once ', 'upon ', 'a time.'], hang: { parts: 3 } }

/** Two servers on one file, one after the other, behind one address. */
async function twoServers(...scripts: ScriptedStep[][]) {
  const folder = mkdtempSync(join(tmpdir(), 'heed-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const open = async (script: ScriptedStep[]) => {
    const agent = new Agent({ id: 'guide', model: scriptedModel(script), tools: { look, pay } })
    const { server } = await served({ guide: agent }, { storage: new LibSQLStore({ url: `file:${join(folder, 'heed.db')}` }) })
    return { agent, server }
  }
  let current = await open(scripts[0] ?? [])
  const proxy = await harmfulProxy(() => ({ host: '127.0.0.1', port: Number(new URL(current.server.url).port) }), seeded(1))
  proxy.heal()
  onTestFinished(() => proxy.close())
  const next = async ({ late = false } = {}) => {
    await current.server.close()
    const other = await open(scripts[1] ?? [])
    if (late) await expect.poll(() => other.agent.activeRun(thread)).toBeNull()
    current = other
  }
  const history = async () => toUIMessages((await (await current.agent.getMemory()).recall({ ...thread, perPage: false })).messages)
  const transport = () => new HeedChatTransport({ agent: new HeedClient({ baseUrl: proxy.url }).getAgent('guide'), resourceId: thread.resourceId })
  return { next, history, transport }
}

const said = (message: UIMessage | undefined) =>
  message?.parts.filter(({ type }) => type !== 'step-start').map((part) => (part.type === 'text' ? part.text : `${part.type} ${(part as { state?: string }).state}`))

/** The message as the page has it, growing. */
function shownBy(stream: unknown, message?: UIMessage) {
  const page: { message: UIMessage | undefined; over: Promise<void> } = { message, over: Promise.resolve() }
  page.over = (async () => {
    for await (const value of readUIMessageStream({ stream: stream as ReadableStream<never>, ...(message ? { message } : {}) })) page.message = value
  })()
  return page
}

const send = { trigger: 'submit-message', chatId: thread.threadId } as const
const asked: UIMessage = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Go.' }] }

describe('a chat without a subscription, when another process takes its run over', () => {
  it('[U1.6] shows what history says: neither the finished step nor the words before are repeated', async () => {
    const { next, history, transport } = await twoServers([looks, begins], ['Once upon a time, there was a train.'])
    const page = shownBy(await transport().sendMessages({ ...send, messages: [asked] }))
    await expect.poll(() => said(page.message)).toEqual(['I look.', 'tool-look output-available', 'Once upon '])
    await next()
    await page.over
    expect(said(page.message)).toEqual(['I look.', 'tool-look output-available', 'Once upon a time, there was a train.'])
    expect(page.message?.parts.map(({ type }) => type)).toEqual((await history()).at(-1)?.parts.map(({ type }) => type))
  })

  it('[U1.6] the same of an answer that a page took up again after it was loaded', async () => {
    const { next, transport } = await twoServers([looks, begins], ['Once upon a time, there was a train.'])
    const first = shownBy(await transport().sendMessages({ ...send, messages: [asked] }))
    await expect.poll(() => said(first.message)?.at(-1)).toBe('Once upon ')
    const page = shownBy(await transport().reconnectToStream({ chatId: thread.threadId }))
    await expect.poll(() => said(page.message)).toEqual(['I look.', 'tool-look output-available', 'Once upon '])
    await next()
    await Promise.all([page.over, first.over])
    for (const { message } of [page, first]) expect(said(message)).toEqual(['I look.', 'tool-look output-available', 'Once upon a time, there was a train.'])
  })

  it('[U1.6] the same of an answer that goes on after an approval', async () => {
    const { next, transport } = await twoServers([pays, begins], ['Once upon a time, there was a train.'])
    const chat = transport()
    const first = shownBy(await chat.sendMessages({ ...send, messages: [asked] }))
    await first.over
    const decided = {
      ...first.message, parts: first.message?.parts.map((part) => (part.type === 'tool-pay' ? { ...part, state: 'approval-responded', approval: { ...(part as { approval: object }).approval, approved: true } } : part)),
    } as UIMessage
    const page = shownBy(await chat.sendMessages({ ...send, messages: [asked, decided] } as never), decided)
    await expect.poll(() => said(page.message)).toEqual(['I pay.', 'tool-pay output-available', 'Once upon '])
    await next()
    await page.over
    expect(said(page.message)).toEqual(['I pay.', 'tool-pay output-available', 'Once upon a time, there was a train.'])
  })

  it('[U1.6] an answer that was finished before the page came back is shown to its end', async () => {
    const { next, transport } = await twoServers([looks, begins], ['Once upon a time, there was a train.'])
    const page = shownBy(await transport().sendMessages({ ...send, messages: [asked] }))
    await expect.poll(() => said(page.message)).toEqual(['I look.', 'tool-look output-available', 'Once upon '])
    await next({ late: true })
    await page.over
    expect(said(page.message)).toEqual(['I look.', 'tool-look output-available', 'Once upon a time, there was a train.'])
  })

  it('[U1.6] other text is another part', async () => {
    const { next, transport } = await twoServers([begins], ['There was a train.'])
    const page = shownBy(await transport().sendMessages({ ...send, messages: [asked] }))
    await expect.poll(() => said(page.message)).toEqual(['Once upon '])
    await next()
    await page.over
    expect(said(page.message)).toEqual(['Once upon ', 'There was a train.'])
  })
})
