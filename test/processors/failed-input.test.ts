import { describe, expect, it } from 'vitest'
import { Agent, Memory, type Message, type Processor } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { rejection } from '../agent/asking.ts'
import { openHeed, placeKinds } from '../thread/places.ts'
import { texts } from '../thread/said.ts'

const bytes = 'QUFFQ0FB'
const thread = { threadId: 't', resourceId: 'ada' }
const ask = { memory: { thread: 't', resource: 'ada' } }
const file = (filename: string) => ({ type: 'file' as const, data: bytes, mediaType: 'image/png', filename })

/** A processor of a program that moves the files of messages elsewhere. */
class Uploader implements Processor {
  id = 'attachment-uploader'
  readonly upload: (url: string) => Promise<string>

  constructor(upload: (url: string) => Promise<string>) {
    this.upload = upload
  }

  async processInput({ messages }: { messages: Message[] }) {
    return Promise.all(messages.map((message) => this.processMessage(message)))
  }

  async processMessage(message: Message): Promise<Message> {
    const attachments = message.content.experimental_attachments
    if (!attachments?.length) return message
    const uploaded = await Promise.all(attachments.map(async (attachment) => {
      if (!attachment.url?.startsWith('data:')) return attachment
      return { ...attachment, url: await this.upload(attachment.url) }
    }))
    return { ...message, content: { ...message.content, experimental_attachments: uploaded } }
  }
}

describe.each(placeKinds())('input with which a processor failed, $name', ({ make }) => {
  function open(...inputProcessors: Processor[]) {
    const model = scriptedModel(() => 'ok')
    const agent = new Agent({ id: 'a', model, memory: new Memory({ semanticRecall: false }), inputProcessors })
    openHeed({ agent }, make().store())
    const stored = async () => JSON.stringify(await agent.threads().store.listRows({ threadId: 't' }, { limit: 50, context: true }))
    return { agent, model, stored }
  }

  it('[G3.7] keeps a note in place of the bytes of its files, sent, asked and in attachments, and the thread goes on', async () => {
    let works = false
    const { agent, model, stored } = open(new Uploader(async () => {
      if (!works) throw new Error('Implement upload() with your storage provider')
      return 'https://files.example/x'
    }))
    const asked = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'See.' }, file('a.png'), file('b.png')] }]
    expect(await rejection(agent.generate(asked, ask))).toMatchObject({ code: 'processor_failed', message: expect.stringContaining('Implement upload()') as string })
    const attached = { id: 'ui', role: 'user' as const, content: 'Here.', experimental_attachments: [{ name: 'c.png', contentType: 'image/png', url: `data:image/png;base64,${bytes}` }] }
    await rejection(agent.generate([attached] as never, ask))
    await agent.sendMessage([{ type: 'text', text: 'And this.' }, file('d.png')], thread).outcome
    await expect.poll(() => agent.activeRun({ threadId: 't' })).toBeNull()
    expect(await stored()).not.toContain(bytes)
    for (const name of ['a', 'b', 'c', 'd']) expect(await stored()).toContain(`[The file \\"${name}.png\\" was not kept: a processor failed.]`)
    for (const text of ['See.', 'Here.', 'And this.']) expect(await stored()).toContain(text)
    works = true
    await agent.generate([{ role: 'user', content: [{ type: 'text', text: 'Go on.' }, file('e.png')] }], ask)
    expect(texts(model.calls.at(-1)?.prompt ?? []).at(-1)).toContain('Go on.')
    expect(await stored()).toContain('https://files.example/x')
    expect(await stored()).not.toContain(bytes)
  })

  it('[G3.7] after a timeout too', async () => {
    const { agent, stored } = open(Object.assign(new Uploader(() => new Promise<string>(() => {})), { timeoutMs: 5 }))
    expect(await rejection(agent.generate([{ role: 'user', content: [file('a.png')] }], ask))).toMatchObject({ code: 'processor_timeout' })
    expect(await stored()).not.toContain(bytes)
  })

  it('[G3.7] keeps what the processors before it left', async () => {
    const hide: Processor = { id: 'hide', processInput: ({ messages }) => messages.map((message) => JSON.parse(JSON.stringify(message).replaceAll('hunter2', '***')) as Message) }
    const fails: Processor = { id: 'fails', processInput: () => { throw new Error('no') } }
    const { agent, stored } = open(hide, new Uploader(async () => 'https://files.example/x'), fails)
    await rejection(agent.generate([{ role: 'user', content: [{ type: 'text', text: 'It is hunter2.' }, file('a.png')] }], ask))
    const kept = await stored()
    expect(kept).toContain('It is ***.')
    expect(kept).toContain('https://files.example/x')
    expect(kept).not.toMatch(/hunter2|QUFFQ0FB|was not kept/)
  })

  it('[G3.7] keeps its files after an abort of the run: the next run passes them to the processor', async () => {
    let started = () => {}
    const begun = new Promise<void>((resolve) => (started = resolve))
    let works = false
    const { agent, stored } = open(new Uploader(async () => {
      if (works) return 'https://files.example/x'
      started()
      return new Promise<string>(() => {})
    }))
    const controller = new AbortController()
    const asked = agent.generate([{ role: 'user', content: [file('a.png')] }], { ...ask, abortSignal: controller.signal })
    await begun
    controller.abort()
    await asked.catch(() => undefined)
    works = true
    await agent.generate('Go on.', ask)
    expect(await stored()).toContain('https://files.example/x')
    expect(await stored()).not.toContain(bytes)
  })
})
