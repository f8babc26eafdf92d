import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/agent/agent.ts'
import type { Message } from '../../src/message/message.ts'
import type { ComputeStateSignalArgs, Processor } from '../../src/processors/processor.ts'
import { createTool } from '../../src/run/tools/tool.ts'
import type { CreatedAgentSignal } from '../../src/signals/signal.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { chunksOf, of, typesOf } from './asking.ts'

describe('a processor that uploads attachments', () => {
  const stored: Array<[string | undefined, number]> = []

  class Uploader implements Processor {
    readonly id = 'uploader'

    async processInput({ messages }: { messages: Message[] }) {
      return Promise.all(messages.map((message) => this.#uploaded(message)))
    }

    async #uploaded(message: Message): Promise<Message> {
      const { experimental_attachments: attachments } = message.content
      if (!attachments?.length) return message
      const uploaded = await Promise.all(attachments.map(async (attachment) =>
        attachment.url.startsWith('data:') ? { ...attachment, url: await this.#store(attachment.url, attachment.contentType) } : attachment))
      return { ...message, content: { ...message.content, experimental_attachments: uploaded } }
    }

    async #store(url: string, contentType?: string): Promise<string> {
      const bytes = Buffer.from(url.split(',')[1] ?? '', 'base64')
      stored.push([contentType, bytes.length])
      return `https://files.example/${stored.length}`
    }
  }

  it('puts a URL in the place of the bytes, in the prompt too', async () => {
    const model = scriptedModel(['A cat.'])
    const message: Message = {
      id: 'm1',
      role: 'user',
      createdAt: new Date(0),
      content: {
        format: 2,
        parts: [{ type: 'text', text: 'What is this?' }],
        experimental_attachments: [
          { url: 'data:image/png;base64,AAAA', contentType: 'image/png', name: 'cat.png' },
          { url: 'https://elsewhere.example/dog.png', contentType: 'image/png' },
        ],
      },
    }
    await new Agent({ id: 'a', model, inputProcessors: [new Uploader()] }).generate(message)
    expect(stored).toEqual([['image/png', 3]])
    expect(model.calls[0]?.prompt).toMatchObject([{
      role: 'user',
      content: [
        { type: 'text', text: 'What is this?' },
        { type: 'file', mediaType: 'image/png', data: { type: 'url', url: new URL('https://files.example/1') } },
        { type: 'file', mediaType: 'image/png', data: { type: 'url', url: new URL('https://elsewhere.example/dog.png') } },
      ],
    }])
    // What was given is not changed.
    expect(message.content.experimental_attachments?.[0]?.url).toBe('data:image/png;base64,AAAA')
  })
})

describe('a processor that reminds of a folder\'s rules', () => {
  const rules: Record<string, string> = { 'ui/AGENTS.md': 'Use <b> sparingly & test.' }

  /** The rules that a tool has read, unless they were given before. */
  const reminder: Processor = {
    id: 'rules-reminder',
    async processInputStep({ messageList, sendSignal }) {
      const messages = messageList.get.all.db()
      const path = messages.flatMap((message) => message.content.parts).flatMap((part) => {
        const read = part.type === 'tool-invocation' && part.toolInvocation.toolName === 'read' ? (part.toolInvocation.args as { path: string }).path : ''
        return read.endsWith('AGENTS.md') ? [read] : []
      })[0]
      const reminded = messages.some((message) => message.role === 'signal' && JSON.stringify(message.content.metadata).includes(String(path)))
      if (path === undefined || reminded) return messageList
      await sendSignal({ type: 'reactive', contents: rules[path] ?? '', attributes: { type: 'dynamic-agents-md', path }, metadata: { path } })
      return messageList
    },
  }

  it('adds them once, at the end of the prompt, and shows that it did', async () => {
    const read = createTool({ id: 'read', execute: async () => 'some text' })
    const model = scriptedModel([
      { toolCalls: [{ toolName: 'read', input: { path: 'README.md' } }] },
      { toolCalls: [{ toolName: 'read', input: { path: 'ui/AGENTS.md' } }] },
      { toolCalls: [{ toolName: 'read', input: { path: 'ui/AGENTS.md' } }] },
      'Done.',
    ])
    const stream = await new Agent({ id: 'a', model, tools: { read }, inputProcessors: [reminder] }).stream('Go.')
    const chunks = await chunksOf(stream)
    const tag = '<system-reminder type="dynamic-agents-md" path="ui/AGENTS.md">Use &lt;b&gt; sparingly &amp; test.</system-reminder>'
    expect(model.calls[2]?.prompt.at(-1)).toEqual({ role: 'user', content: [{ type: 'text', text: tag }] })
    const prompts = model.calls.map((call) => JSON.stringify(call.prompt).slice(0, -1))
    expect(prompts.map((prompt) => prompt.split('<system-reminder').length - 1)).toEqual([0, 0, 1, 1])
    for (const [index, prompt] of prompts.slice(1).entries()) expect(prompt.startsWith(prompts[index] ?? '?')).toBe(true)
    expect(of(chunks, 'data-signal')).toMatchObject([{
      data: { type: 'reactive', tagName: 'system-reminder', contents: rules['ui/AGENTS.md'], attributes: { path: 'ui/AGENTS.md' }, metadata: { path: 'ui/AGENTS.md' } },
      transient: true,
    }])
    // It is shown where it enters: before the step that reads it.
    const at = typesOf(chunks).indexOf('data-signal')
    expect(typesOf(chunks).slice(at - 1, at + 2)).toEqual(['step-finish', 'data-signal', 'step-start'])
  })
})

describe('a processor that owns a lane', () => {
  interface Browser {
    url: string
    tabs: number
  }
  let browser: Browser
  const seen: Array<Pick<ComputeStateSignalArgs, 'contextWindow' | 'deltasSinceSnapshot' | 'lastSnapshot'>> = []

  const stateIn = (signals: CreatedAgentSignal[]): Browser | undefined => signals.at(-1)?.metadata?.value as Browser | undefined

  const lane: Processor = {
    id: 'browser-lane',
    stateId: 'browser',
    computeStateSignal(args) {
      seen.push(args)
      const previous = stateIn(args.activeStateSignals)
      const changed = Object.entries(browser).filter(([key, value]) => previous?.[key as keyof Browser] !== value)
      if (previous && changed.length === 0) return undefined
      const isDelta = previous !== undefined && args.contextWindow.hasSnapshot
      return {
        mode: isDelta ? 'delta' : 'snapshot',
        cacheKey: JSON.stringify(browser),
        contents: isDelta ? `Changed: ${changed.map(([key, value]) => `${key} is now ${value}`).join(', ')}.` : `Open at ${browser.url} with ${browser.tabs} tabs.`,
        value: { ...browser },
        ...(isDelta ? { delta: Object.fromEntries(changed) } : {}),
      }
    },
  }

  it('gives a snapshot first, then what changed, and nothing when nothing did', async () => {
    browser = { url: 'https://a.example/', tabs: 1 }
    const go = createTool({
      id: 'go',
      execute: async (input) => {
        browser = { ...browser, ...(input as Partial<Browser>) }
        return 'ok'
      },
    })
    const model = scriptedModel([
      { toolCalls: [{ toolName: 'go', input: {} }] },
      { toolCalls: [{ toolName: 'go', input: { tabs: 2 } }] },
      'Done.',
    ])
    const stream = await new Agent({ id: 'a', model, tools: { go }, inputProcessors: [lane] }).stream('Go.')
    const chunks = await chunksOf(stream)
    const ids = new Set(chunks.flatMap((chunk) => (chunk.type === 'start' || chunk.type === 'step-start' ? [chunk.payload.messageId] : [])))
    // The snapshot stands before the message, the delta divides it.
    expect(ids.size).toBe(2)
    const states = model.calls.map(({ prompt }) => JSON.stringify(prompt).match(/<state>.*?<\/state>/g) ?? [])
    expect(states).toEqual([
      ['<state>Open at https://a.example/ with 1 tabs.</state>'],
      ['<state>Open at https://a.example/ with 1 tabs.</state>'],
      ['<state>Open at https://a.example/ with 1 tabs.</state>', '<state>Changed: tabs is now 2.</state>'],
    ])
    expect(of(chunks, 'data-signal').map((chunk) => (chunk.data as CreatedAgentSignal).metadata)).toMatchObject([
      { state: { id: 'browser', mode: 'snapshot', version: 1 }, value: { tabs: 1 } },
      { state: { id: 'browser', mode: 'delta', version: 2 }, value: { tabs: 2 }, delta: { tabs: 2 } },
    ])
    expect(seen.map(({ contextWindow, deltasSinceSnapshot, lastSnapshot }) => [contextWindow.hasSnapshot, deltasSinceSnapshot.length, lastSnapshot !== undefined])).toEqual([
      [false, 0, false], [true, 0, true], [true, 0, true],
    ])
  })

  it('is not repeated while the same key and mode stand last in the window', async () => {
    const same: Processor = { id: 'clock', computeStateSignal: () => ({ cacheKey: 'k', contents: 'It is noon.', tagName: 'clock', attributes: { zone: 'UTC' } }) }
    const look = createTool({ id: 'look', execute: async () => 1 })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'look' }] }, 'Done.'])
    await new Agent({ id: 'a', model, tools: { look }, inputProcessors: [same] }).generate('Go.')
    expect(model.calls.map(({ prompt }) => JSON.stringify(prompt).split('<clock zone=').length - 1)).toEqual([1, 1])
  })

  it('may name a lane other than its own', async () => {
    let mode = 0
    const named: Processor = { id: 'p', computeStateSignal: () => ({ id: 'other', cacheKey: `k${Math.min(mode++, 1)}`, contents: `v${mode}` }) }
    const look = createTool({ id: 'look', execute: async () => 1 })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'look' }] }, { toolCalls: [{ toolName: 'look' }] }, 'Done.'])
    await new Agent({ id: 'a', model, tools: { look }, inputProcessors: [named] }).generate('Go.')
    expect(model.calls.map(({ prompt }) => JSON.stringify(prompt).match(/<state>v\d<\/state>/g)?.length)).toEqual([1, 2, 2])
  })
})
