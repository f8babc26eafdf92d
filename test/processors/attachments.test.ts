import { describe, expect, it } from 'vitest'
import { Agent, Heed, InMemoryStore, Memory, type AgentInput, type Message, type Processor } from '../../src/index.ts'
import { AttachmentUploader } from '../../src/processors/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

const picture = Buffer.from('a picture').toString('base64')
const page = Buffer.from('a page').toString('base64')
const where = { thread: 't', resource: 'u' }

/** As programs write it that know attachments and nothing else. */
function uploader() {
  const kept: Array<[string | undefined, string]> = []
  const processor: Processor = {
    id: 'uploader',
    async processInput({ messages }: { messages: Message[] }) {
      return Promise.all(messages.map(async (message) => {
        const attachments = message.content.experimental_attachments
        if (!attachments?.length) return message
        const uploaded = await Promise.all(attachments.map(async (attachment) => {
          if (!attachment.url.startsWith('data:')) return attachment
          kept.push([attachment.contentType, Buffer.from(attachment.url.split(',')[1] ?? '', 'base64').toString()])
          return { ...attachment, url: `https://files.test/${kept.length}` }
        }))
        return { ...message, content: { ...message.content, experimental_attachments: uploaded } }
      }))
    },
  }
  return { kept, processor }
}

async function asked(input: AgentInput, processors: Processor[]) {
  const model = scriptedModel(() => 'Seen.')
  const agent = new Agent({ id: 'a', model, memory: new Memory({ semanticRecall: false }), inputProcessors: processors })
  const heed = new Heed({ agents: { agent }, storage: new InMemoryStore() })
  await agent.generate(input, { memory: where })
  await agent.generate('And now?', { memory: where })
  const { messages: [stored] } = await (await agent.getMemory()).recall({ threadId: 't' })
  await heed.close()
  const files = (call: number) => model.calls[call]?.prompt.flatMap(({ content }) => (Array.isArray(content) ? content.filter(({ type }) => type === 'file') : [])) ?? []
  return { stored, files, prompts: model.calls.map(({ prompt }) => JSON.stringify(prompt)) }
}

const ways: Array<[string, AgentInput]> = [
  ['a file part', [{ role: 'user', content: [{ type: 'text', text: 'Look.' }, { type: 'file', data: picture, mediaType: 'image/png', filename: 'a.png' }] }]],
  ['a file part of bytes', [{ role: 'user', content: [{ type: 'text', text: 'Look.' }, { type: 'file', data: Buffer.from('a picture'), mediaType: 'image/png', filename: 'a.png' }] }]],
  ['a data URL', [{ role: 'user', content: [{ type: 'text', text: 'Look.' }, { type: 'file', data: `data:image/png;base64,${picture}`, mediaType: 'image/png', filename: 'a.png' }] }]],
  ['an image part', [{ role: 'user', content: [{ type: 'text', text: 'Look.' }, { type: 'image', image: picture, mediaType: 'image/png' }] }]],
  ['a UI message', [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'Look.' }, { type: 'file', url: `data:image/png;base64,${picture}`, mediaType: 'image/png', filename: 'a.png' }] }]],
  ['an attachment', [{ role: 'user', content: 'Look.', experimental_attachments: [{ url: `data:image/png;base64,${picture}`, contentType: 'image/png', name: 'a.png' }] }]],
]

describe.each(ways)('a processor that uploads what is attached, given %s', (_, input) => {
  it('[G2.20] finds it, and what it makes of it is stored and shown once', async () => {
    const { kept, processor } = uploader()
    const { stored, files, prompts } = await asked(input, [processor])
    expect(kept).toEqual([['image/png', 'a picture']])
    expect(JSON.stringify(stored).split('https://files.test/1')).toHaveLength(2)
    expect(JSON.stringify(stored)).not.toContain(picture)
    for (const call of [0, 1]) {
      expect(files(call)).toMatchObject([{ mediaType: 'image/png', data: { type: 'url', url: new URL('https://files.test/1') } }])
      expect(prompts[call]).not.toContain(picture)
    }
    expect(prompts[1]?.startsWith(prompts[0]?.slice(0, -1) ?? '?')).toBe(true)
  })

  it('[G2.20] and after it one that looks at parts, or changes nothing, sees the same', async () => {
    const { processor } = uploader()
    const seen: Message[] = []
    const looker: Processor = { id: 'looker', processInput: ({ messages }) => (seen.push(...structuredClone(messages)), messages.map((message) => structuredClone(message))) }
    const { files, stored } = await asked(input, [looker, processor, looker, new AttachmentUploader({ upload: async () => 'https://files.test/never' })])
    expect(seen[0]?.content.experimental_attachments).toMatchObject([{ url: `data:image/png;base64,${picture}`, contentType: 'image/png' }])
    expect(seen[1]?.content.experimental_attachments).toMatchObject([{ url: 'https://files.test/1', contentType: 'image/png' }])
    expect(files(0)).toHaveLength(1)
    expect(JSON.stringify(stored)).not.toContain('never')
  })
})

describe('files of a message', () => {
  const two: AgentInput = [{
    role: 'user',
    content: [{ type: 'file', data: picture, mediaType: 'image/png' }, { type: 'text', text: 'Look.' }, { type: 'file', data: page, mediaType: 'application/pdf' }],
    experimental_attachments: [{ url: 'https://elsewhere.test/c.txt', contentType: 'text/plain' }],
  }]
  const changing = (change: (message: Message) => Message): Processor => ({ id: 'p', processInput: ({ messages }) => messages.map((message) => (message.content.experimental_attachments ? change(message) : message)) })

  it('[G2.20] are the parts\' first and then the attachments, and stay where they were', async () => {
    const { kept, processor } = uploader()
    const { files, stored } = await asked(two, [processor])
    expect(kept.map(([type]) => type)).toEqual(['image/png', 'application/pdf'])
    expect(files(0).map((file) => ('mediaType' in file ? file.mediaType : ''))).toEqual(['image/png', 'application/pdf', 'text/plain'])
    expect(stored?.content.parts.map(({ type }) => type)).toEqual(['file', 'text', 'file'])
    expect(stored?.content.experimental_attachments).toEqual([{ url: 'https://elsewhere.test/c.txt', contentType: 'text/plain' }])
  })

  it.each<[string, (message: Message) => Message, string[]]>([
    ['left out of the attachments', (message) => ({ ...message, content: { ...message.content, experimental_attachments: message.content.experimental_attachments?.filter(({ contentType }) => contentType !== 'image/png') ?? [] } }), ['application/pdf', 'text/plain']],
    ['left out of the parts', (message) => ({ ...message, content: { ...message.content, parts: message.content.parts.filter((part) => part.type !== 'file' || part.mimeType !== 'image/png') } }), ['application/pdf', 'text/plain']],
    ['all left out', (message) => ({ ...message, content: { ...message.content, experimental_attachments: [] } }), []],
    ['made anew, and fewer', (message) => ({ ...message, content: { ...message.content, experimental_attachments: [{ url: 'https://files.test/all.zip', contentType: 'application/zip' }] } }), ['application/zip']],
    ['one more', (message) => ({ ...message, content: { ...message.content, experimental_attachments: [...(message.content.experimental_attachments ?? []), { url: 'https://files.test/d.csv', contentType: 'text/csv' }] } }), ['image/png', 'application/pdf', 'text/plain', 'text/csv']],
    ['words changed', (message) => ({ ...message, content: { ...message.content, parts: message.content.parts.map((part) => (part.type === 'text' ? { ...part, text: 'See.' } : part)) } }), ['image/png', 'application/pdf', 'text/plain']],
    ['given back as a copy', (message) => structuredClone(message), ['image/png', 'application/pdf', 'text/plain']],
  ])('[G2.20] %s by a processor are what it left', async (_, change, types) => {
    const { files } = await asked(two, [changing(change)])
    for (const call of [0, 1]) expect(files(call).map((file) => ('mediaType' in file ? file.mediaType : ''))).toEqual(types)
  })

  it('[G2.20] are once in what user interfaces are shown', async () => {
    let shown: unknown
    const looker: Processor = { id: 'looker', processInput: ({ messageList }) => void (shown = messageList.get.all.ui()) }
    await asked(two, [looker])
    expect((shown as Array<{ parts: Array<{ type: string }> }>)[0]?.parts.filter(({ type }) => type === 'file')).toHaveLength(3)
  })

  const url = `data:image/png;base64,${picture}`
  const attached = [{ url, contentType: 'image/png', name: 'a.png' }, { url: 'https://elsewhere.test', contentType: 'text/html' }, { url: 'https://elsewhere.test/c.txt', contentType: 'text/plain' }]
  const stored: Message = {
    id: 'm', role: 'user', createdAt: new Date(0),
    content: { format: 2, parts: [{ type: 'text', text: 'Look.' }, { type: 'file', data: picture, mimeType: 'image/png' }, { type: 'file', data: 'https://elsewhere.test/', mimeType: 'text/html' }], experimental_attachments: attached },
  }
  const twice: Array<[string, AgentInput]> = [
    ['a model message', [{ role: 'user', content: [{ type: 'text', text: 'Look.' }, { type: 'image', image: picture, mediaType: 'image/png' }, { type: 'file', data: new URL('https://elsewhere.test'), mediaType: 'text/html' }], experimental_attachments: attached }]],
    ['a UI message', [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'Look.' }, { type: 'file', url, mediaType: 'image/png' }, { type: 'file', url: 'https://elsewhere.test/', mediaType: 'text/html' }], experimental_attachments: attached } as never]],
    ['a stored message', [stored]],
    ['text that imitates a signal', [{ role: 'user', content: [{ type: 'text', text: '</user>' }, { type: 'image', image: picture, mediaType: 'image/png' }, { type: 'file', data: new URL('https://elsewhere.test'), mediaType: 'text/html' }], experimental_attachments: attached }]],
  ]

  it.each(twice)('[G2.20] that are both parts and attachments are sent, shown and seen once: %s', async (_, input) => {
    const types = ['image/png', 'text/html', 'text/plain']
    const seen: unknown[] = []
    const looker: Processor = {
      id: 'looker',
      processInput({ messages, messageList }) {
        if (seen.length === 0) seen.push(messages[0]?.content.experimental_attachments, messageList.get.all.ui()[0]?.parts.filter(({ type }) => type === 'file'))
        return undefined
      },
    }
    for (const processors of [[], [looker], [changing((message) => structuredClone(message))]]) {
      const { files, prompts } = await asked(input, processors)
      for (const call of [0, 1]) expect(files(call).map((file) => ('mediaType' in file ? file.mediaType : ''))).toEqual(types)
      expect(prompts[1]?.startsWith(prompts[0]?.slice(0, -1) ?? '?')).toBe(true)
    }
    expect(seen).toEqual([expect.objectContaining({ length: 3 }), expect.objectContaining({ length: 3 })])
    const { kept, processor } = uploader()
    const { files, stored: after } = await asked(input, [processor])
    expect(kept).toEqual([['image/png', 'a picture']])
    expect(files(0)).toHaveLength(3)
    expect(JSON.stringify(after)).not.toContain(picture)
  })

  it('[G2.20] that were sent to a thread are found and changed like those of a question', async () => {
    const { kept, processor } = uploader()
    const model = scriptedModel(() => 'Seen.')
    const agent = new Agent({ id: 'a', model, inputProcessors: [processor] })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore() })
    const sent = agent.sendMessage({ contents: [{ type: 'text', text: 'Look.' }, { type: 'image', image: picture, mediaType: 'image/png' }], attributes: { name: 'Ada' } }, { threadId: 't', resourceId: 'u' })
    await sent.outcome
    await expect.poll(() => agent.activeRun({ threadId: 't' })).toBeNull()
    expect(kept).toEqual([['image/png', 'a picture']])
    expect(JSON.stringify(model.calls[0]?.prompt).split('https://files.test/1')).toHaveLength(2)
    const { messages: [stored] } = await (await agent.getMemory()).recall({ threadId: 't' })
    expect(stored).toMatchObject({ role: 'signal' })
    expect(JSON.stringify(stored).split('https://files.test/1')).toHaveLength(2)
    expect(JSON.stringify(stored)).not.toContain(picture)
    await heed.close()
  })
})
