import { describe, expect, it } from 'vitest'
import { rejection } from '../../../test/agent/asking.ts'
import { inputArgs, said } from '../../../test/processors/asked.ts'
import { Agent } from '../../agent/agent.ts'
import { silentLogger } from '../../base/logger.ts'
import { Heed } from '../../heed/heed.ts'
import { Memory } from '../../memory/memory.ts'
import type { Message, MessagePart } from '../../message/message.ts'
import { InMemoryStore } from '../../store/sqlite/in-memory.ts'
import { scriptedModel } from '../../testing/index.ts'
import { AttachmentUploader, type UploadedAttachment } from './attachment-uploader.ts'

const file = (data: string, filename?: string): MessagePart => ({ type: 'file', data, mimeType: 'image/png', ...(filename ? { filename } : {}) })

function recorder() {
  const uploads: UploadedAttachment[] = []
  const upload = async (attachment: UploadedAttachment) => `https://files.example/${uploads.push(attachment)}`
  return { uploads, upload }
}

describe('AttachmentUploader', () => {
  it('replaces bytes by URLs, in parts and in attachments', async () => {
    const { uploads, upload } = recorder()
    const message: Message = said('u1', 'user', 'See.', file('AAEC', 'a.png'), file('data:image/gif;base64,AwQ='), file('https://x.example/b.png'))
    message.content.experimental_attachments = [
      { url: 'data:text/plain,hi%20there', name: 'note.txt' },
      { url: 'https://x.example/c.png', contentType: 'image/png' },
    ]
    const before = JSON.stringify(message)
    const made = await new AttachmentUploader({ upload }).processInput(inputArgs([said('u0', 'user', 'Hi.'), message]))
    expect(uploads.map(({ data, ...rest }) => [[...data], rest])).toEqual([
      [[0, 1, 2], { contentType: 'image/png', name: 'a.png' }],
      [[3, 4], { contentType: 'image/png' }],
      [[...Buffer.from('hi there')], { contentType: 'text/plain', name: 'note.txt' }],
    ])
    expect(made?.[1]?.content).toMatchObject({
      parts: [{ text: 'See.' }, { data: 'https://files.example/1', filename: 'a.png' }, { data: 'https://files.example/2' }, { data: 'https://x.example/b.png' }],
      experimental_attachments: [{ url: 'https://files.example/3', name: 'note.txt' }, { url: 'https://x.example/c.png', contentType: 'image/png' }],
    })
    expect(JSON.stringify(message)).toBe(before)
  })

  it('leaves small files, references and messages without files', async () => {
    const { uploads, upload } = recorder()
    const reference: MessagePart = { type: 'file', data: '', mimeType: 'image/png', reference: { openai: 'file-1' } }
    const uploader = new AttachmentUploader({ upload, minBytes: 3 })
    expect(await uploader.processInput(inputArgs([said('u1', 'user', 'Hi.', reference, file('AAE='))]))).toBeUndefined()
    const made = await uploader.processInput(inputArgs([said('u1', 'user', file('AAE='), file('AAEC'))]))
    expect(made?.[0]?.content.parts).toMatchObject([{ data: 'AAE=' }, { data: 'https://files.example/1' }])
    expect(uploads).toHaveLength(1)
  })

  it('[G2.20] an upload that never ends fails after its time: its signal aborts, and no bytes stay on the thread or reach the model', async () => {
    const signals: AbortSignal[] = []
    const upload = (_: UploadedAttachment, { abortSignal }: { abortSignal: AbortSignal }) => (signals.push(abortSignal), new Promise<string>(() => {}))
    const model = scriptedModel(() => 'Seen.')
    const memory = new Memory({ semanticRecall: false })
    const agent = new Agent({ id: 'a', model, memory, inputProcessors: [new AttachmentUploader({ upload, timeoutMs: 20 })] })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
    const bytes = Buffer.from('a picture').toString('base64')
    const input = [{ role: 'user' as const, content: [{ type: 'file' as const, data: bytes, mediaType: 'image/png', filename: 'a.png' }] }]
    const error = await rejection(agent.generate(input, { memory: { thread: 't', resource: 'u' } }))
    expect(error).toMatchObject({ code: 'processor_failed', message: expect.stringContaining('The file "a.png" could not be uploaded within 20 ms') })
    expect(signals.map(({ aborted }) => aborted)).toEqual([true])
    const { messages } = await memory.recall({ threadId: 't' })
    expect(JSON.stringify(messages)).not.toContain(bytes)
    expect(JSON.stringify(messages)).toContain('could not be uploaded')
    expect(model.callCount).toBe(0)
    await heed.close()
    expect(() => new AttachmentUploader({ upload, timeoutMs: 0 })).toThrow('timeoutMs')
  })

  it('limits concurrent uploads', async () => {
    let running = 0
    let most = 0
    const upload = async () => {
      most = Math.max(most, ++running)
      await new Promise((resolve) => setImmediate(resolve))
      running--
      return 'https://files.example/x'
    }
    const files = Array.from({ length: 9 }, () => file('AAEC'))
    await new AttachmentUploader({ upload, concurrency: 3 }).processInput(inputArgs([said('u1', 'user', ...files)]))
    expect(most).toBe(3)
  })

  it('names the file that could not be uploaded, and starts no other upload', async () => {
    let begun = 0
    const upload = async ({ name }: UploadedAttachment) => {
      begun++
      if (name === 'b.png') throw new Error('no space')
      return 'https://files.example/x'
    }
    const files = ['a.png', 'b.png', 'c.png', 'd.png'].map((name) => file('AAEC', name))
    const failed = rejection(new AttachmentUploader({ upload, concurrency: 1 }).processInput(inputArgs([said('u1', 'user', ...files)])))
    expect(await failed).toMatchObject({ code: 'processor_failed', message: 'The file "b.png" could not be uploaded: no space' })
    expect(begun).toBe(2)
    const agent = new Agent({ id: 'a', model: scriptedModel(['Hi.']), inputProcessors: [new AttachmentUploader({ upload })] })
    expect(await rejection(agent.generate(said('u1', 'user', file('AAEC', 'b.png'))))).toMatchObject({
      code: 'processor_failed',
      message: expect.stringContaining('The file "b.png" could not be uploaded: no space'),
    })
  })

  it.each([[undefined], [''], ['a.png'], ['data:image/png;base64,AAEC']])('rejects %j as a URL', async (url) => {
    const uploader = new AttachmentUploader({ upload: async () => url as string })
    expect(await rejection(uploader.processInput(inputArgs([said('u1', 'user', file('AAEC'))])))).toMatchObject({
      code: 'processor_failed',
      message: 'A file of type image/png was uploaded, but `upload` returned no URL for it.',
    })
  })

  it('stops with the run', async () => {
    const stop = new AbortController()
    const upload = async () => {
      stop.abort(new Error('enough'))
      return 'https://files.example/x'
    }
    const args = inputArgs([said('u1', 'user', file('AAEC'), file('AAEC'))], { abortSignal: stop.signal })
    expect(await rejection(new AttachmentUploader({ upload, concurrency: 1 }).processInput(args))).toBe(stop.signal.reason)
  })

  it('requires `upload`', () => {
    expect(() => new AttachmentUploader({} as never)).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
    expect(() => new AttachmentUploader({ upload: recorder().upload, concurrency: 0 })).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
  })

  it('leaves URLs in history and in the prompt', async () => {
    const { upload } = recorder()
    const model = scriptedModel(['A cat.'])
    const agent = new Agent({ id: 'a', model, memory: new Memory(), inputProcessors: [new AttachmentUploader({ upload })] })
    const heed = new Heed({ agents: { a: agent }, storage: new InMemoryStore() })
    const target = { threadId: 't1', resourceId: 'r1' }
    const receipt = agent.sendMessage([{ type: 'text', text: 'What is this?' }, { type: 'file', data: 'AAEC', mediaType: 'image/png' }], target)
    const subscription = await agent.subscribeToThread(target)
    for await (const chunk of subscription.stream) if (chunk.type === 'finish') break
    await receipt.outcome
    expect(JSON.stringify(model.calls[0]?.prompt)).toContain('https://files.example/1')
    const { messages } = await (await agent.getMemory()).recall(target)
    expect(JSON.stringify(messages)).toContain('https://files.example/1')
    expect(JSON.stringify(messages)).not.toContain('AAEC')
    await heed.close()
  })
})
