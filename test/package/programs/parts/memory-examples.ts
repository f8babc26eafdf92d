// The calls of the page about memory, in the words of this project. They compile; the program beside this folder runs some.
import { Agent, CompositeStore, Heed, Memory, ModelRouterEmbeddingModel, type Message } from 'heed'
import { localEmbedder } from 'heed/embed'
import { LibSQLStore, LibSQLVector } from 'heed/libsql'
import { MessageHistory, TokenLimiter, type Processor } from 'heed/processors'
import { z } from 'zod'

const model = 'openai/gpt-5.5'
const show = (..._: unknown[]) => {}

/** Storages and memories, each in a file of this folder. */
export function storages(folder: string) {
  const at = (name: string) => ({ id: name, url: `file:${folder}/${name}.db` })
  const storage = new LibSQLStore(at('heed'))
  const beside = new Memory({ storage: new LibSQLStore(at('own')), vector: new LibSQLVector({ ...at('own'), id: 'vectors' }) })
  const composite = new CompositeStore({ id: 'composite', domains: { memory: new LibSQLStore(at('memory')) } })
  const agents = { first: new Agent({ id: 'first', model, memory: new Memory() }), second: new Agent({ id: 'second', model, memory: beside }) }
  return { heed: new Heed({ agents, storage }), composite, beside }
}

export const memories = [
  new Memory({ options: { generateTitle: true } }),
  new Memory({ options: { generateTitle: { model: 'openai/gpt-5.5-mini', instructions: 'One word.' } } }),
  new Memory({ options: { lastMessages: 10 } }),
  new Memory({ lastMessages: 10 }),
  new Memory({ options: { workingMemory: { enabled: true } } }),
  new Memory({ workingMemory: { enabled: true } }),
  new Memory({ options: { workingMemory: { enabled: true, scope: 'resource', template: '# Profile\n- **Name**:\n' } } }),
  new Memory({ options: { workingMemory: { enabled: true, scope: 'thread', template: 'Facts:\n- Name:' } } }),
  new Memory({ options: { workingMemory: { enabled: true, schema: z.object({ name: z.string().optional(), goals: z.array(z.string()).optional() }) } } }),
  new Memory({ options: { semanticRecall: { topK: 3, messageRange: 2, scope: 'resource' } } }),
  new Memory({ options: { semanticRecall: { topK: 5, indexConfig: { type: 'flat', metric: 'dotproduct' } } } }),
  new Memory({ options: { semanticRecall: false } }),
  new Memory({ semanticRecall: { enabled: true }, embedder: new ModelRouterEmbeddingModel('openai/text-embedding-3-small') }),
  new Memory({ embedder: 'openai/text-embedding-3-small' }),
  new Memory({ embedder: localEmbedder() }),
  new Memory({ vector: false }),
]

export class AttachmentUploader implements Processor {
  readonly id = 'attachment-uploader'

  async processInput({ messages }: { messages: Message[] }) {
    return Promise.all(messages.map((message) => this.#uploaded(message)))
  }

  async #uploaded(message: Message): Promise<Message> {
    const attachments = message.content.experimental_attachments
    if (!attachments?.length) return message
    const uploaded = await Promise.all(attachments.map(async (one) => (one.url?.startsWith('data:') ? { ...one, url: 'https://files.example/1' } : one)))
    return { ...message, content: { ...message.content, experimental_attachments: uploaded } }
  }
}

export const blocker: Processor = {
  id: 'blocker',
  processOutputResult: async ({ messages, abort }) => {
    if (messages.length > 1_000) abort('Too much.')
    return messages
  },
}

export const validator: Processor = {
  id: 'validator',
  processInput: async ({ messages, abort }) => {
    if (messages.findLast(({ role }) => role === 'user') === undefined) abort('No question.')
    return messages
  },
}

export function guarded(folder: string): Agent {
  const storage = () => new LibSQLStore({ id: 'memory-store', url: `file:${folder}/guarded.db` })
  return new Agent({
    name: 'guarded',
    instructions: 'You help.',
    model,
    memory: new Memory({ storage: storage(), lastMessages: 10 }),
    inputProcessors: [new MessageHistory({ storage: storage(), lastMessages: 20 }), new TokenLimiter({ limit: 4000 }), new AttachmentUploader(), validator],
    outputProcessors: [blocker],
  })
}

export async function calls(agent: Agent): Promise<void> {
  const about = { id: 'thread-1', title: 'Support', metadata: { category: 'billing' } }
  const response = await agent.generate('Hello.', { memory: { thread: 'thread-1', resource: 'user-7' } })
  if (response.tripwire) show(response.tripwire.reason)
  await agent.stream('Hello.', { memory: { thread: about, resource: 'user-7' } })
  await agent.generate('Who am I?', { memory: { thread: about, resource: 'user-7', options: { readOnly: true } } })
}

export async function reads(heed: ReturnType<typeof storages>['heed']): Promise<void> {
  const memory = await heed.getAgent('first').getMemory()
  await memory.createThread({ threadId: 'thread-1', resourceId: 'user-7', title: 'A visit' })
  await memory.listThreads({ filter: { resourceId: 'user-7' }, perPage: false })
  const { threads, hasMore } = await memory.listThreads({ filter: { resourceId: 'user-7' }, page: 0, perPage: 10 })
  await memory.listThreads({ filter: { resourceId: 'user-7', metadata: { status: 'active' } }, orderBy: { field: 'createdAt', direction: 'DESC' } })
  show(threads.length, hasMore, await memory.getThreadById({ threadId: 'thread-1' }))
  const page = { threadId: 'thread-1' }
  await memory.recall({ ...page, perPage: false })
  await memory.recall({ ...page, page: 0, perPage: 50 })
  await memory.recall({ ...page, filter: { dateRange: { start: new Date('2026-01-01'), end: new Date('2026-06-01') } } })
  await memory.recall({ ...page, include: [{ id: 'm-1' }, { id: 'm-2', withPreviousMessages: 3, withNextMessages: 1 }] })
  const { messages } = await memory!.recall({ ...page, vectorSearchString: 'the deadline', threadConfig: { semanticRecall: true } })
  const { thread, clonedMessages } = await memory.cloneThread({ sourceThreadId: 'thread-1', title: 'A branch' })
  show(messages.length, thread.id, clonedMessages.length)
}

export async function writes(memory: Memory): Promise<void> {
  const thread = await memory.createThread({ threadId: 'thread-1', resourceId: 'user-7', title: 'A visit', metadata: { workingMemory: '# Notes' } })
  await memory.updateThread({ id: 'thread-1', title: thread.title, metadata: { ...thread.metadata, workingMemory: '# More' } })
  await memory.updateWorkingMemory({ threadId: 'thread-1', resourceId: 'user-7', workingMemory: '# Other' })
}
