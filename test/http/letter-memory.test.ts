import { describe, expect, it } from 'vitest'
import { apiKeys } from '../../src/http/server.ts'
import { Agent, Memory } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

async function open(scope: 'thread' | 'resource' = 'thread') {
  const agent = new Agent({ id: 'guide', model: scriptedModel(['Hello.'], { loop: true }), memory: new Memory({ workingMemory: { enabled: true, scope } }) })
  const { ask } = await served({ guide: agent })
  const read = async (path: string, json?: object) => (await (await ask(`/memory${path}`, json ? { json } : {})).json()) as Record<string, unknown>
  const say = async (message: string) => {
    await ask('/agents/guide/send-message', { json: { message, ...thread } })
    await expect.poll(() => agent.activeRun(thread)).toBeNull()
  }
  return { read, say }
}

describe('memory as existing clients read it', () => {
  it('[H5.1] a search finds messages with the title of their thread and the messages around them', async () => {
    const { read, say } = await open()
    await read('/threads', { ...thread, title: 'Trip' })
    await say('Where is Bern?')
    const { results, ...rest } = await read('/search?agentId=guide&resourceId=user-1&threadId=thread-1&searchQuery=Bern')
    expect(rest).toMatchObject({ count: (results as unknown[]).length, query: 'Bern', searchScope: 'resource' })
    expect((results as object[])[0]).toMatchObject({
      role: 'signal', content: 'Where is Bern?', threadId: 'thread-1', threadTitle: 'Trip', context: { before: [], after: [{ role: 'assistant', content: 'Hello.' }] },
    })
  })

  it('[K2.21] says why a search finds a message or does not, and knows none of another resource', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Hello.'], { loop: true }), memory: new Memory() })
    const { ask } = await served({ guide: agent })
    const memory = await agent.getMemory()
    for (const [threadId, resourceId, content] of [['one', 'user-1', 'The falcon is called Ada.'], ['two', 'user-1', 'It rains, the wind is strong, and one falcon sits in a tree.'], ['four', 'user-1', 'Tea.'], ['three', 'user-2', 'A falcon.']] as const) {
      await memory.createThread({ threadId, resourceId })
      await memory.saveMessages({ threadId, messages: [{ id: `m-${threadId}`, role: 'user', content }] })
    }
    const explain = async (more = '') => {
      const response = await ask(`/memory/search/explanation?agentId=guide&resourceId=user-1&searchQuery=falcon${more}`)
      return { status: response.status, ...((await response.json()) as { code?: string; messages?: object[] }) }
    }
    const { messages: [best, next, ...none] = [] } = await explain()
    expect([best, next, none]).toMatchObject([{ found: true, rank: 1 }, { found: true, rank: 2 }, []])
    expect((await explain('&limit=1')).messages).toEqual([best])
    const { threadId, messageId } = next as { threadId: string; messageId: string }
    expect((await explain(`&limit=1&threadId=${threadId}&messageId=${messageId}`)).messages).toMatchObject([{ messageId, found: false, missing: 'rank', rank: 2 }])
    expect((await explain('&messageId=m-four&messageThreadId=four')).messages).toMatchObject([{ found: false, missing: 'unrelated' }])
    expect(await explain('&messageId=m-three&messageThreadId=three')).toMatchObject({ status: 404 })
    expect(await explain('&messageId=m-one')).toMatchObject({ status: 400 })
    expect(await explain('&messageThreadId=one')).toMatchObject({ status: 400 })
  })

  it('[K2.9] a search tells messages of two threads with one id apart', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Hello.'], { loop: true }), memory: new Memory() })
    const { ask } = await served({ guide: agent })
    const memory = await agent.getMemory()
    for (const [threadId, content] of [['one', 'The falcon is called Ada.'], ['two', 'The falcon Bob flew away.']] as const) {
      await memory.createThread({ threadId, resourceId: 'user-1' })
      await memory.saveMessages({ threadId, messages: [{ id: 'm-0', role: 'user', content }] })
    }
    const { results } = (await (await ask('/memory/search?agentId=guide&resourceId=user-1&searchQuery=falcon')).json()) as { results: Array<{ threadId: string; content: string }> }
    expect(results.map(({ threadId, content }) => [threadId, content]).toSorted()).toEqual([['one', 'The falcon is called Ada.'], ['two', 'The falcon Bob flew away.']])
  })

  it('[H5.1] a search goes by the memoryConfig that is sent along, and refuses by name what it can not mean', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Hello.'], { loop: true }), memory: new Memory() })
    const { ask } = await served({ guide: agent })
    const memory = await agent.getMemory()
    for (const threadId of ['one', 'two']) {
      await memory.createThread({ threadId, resourceId: 'user-1', metadata: { topic: threadId } })
      await memory.saveMessages({ threadId, messages: ['Hi.', `The falcon of ${threadId}.`, 'Bye.', 'See you.'].map((content, at) => ({ id: `${threadId}-${at}`, role: 'user', content })) })
    }
    const search = async (semanticRecall: unknown, more = '') => {
      const config = encodeURIComponent(JSON.stringify({ semanticRecall }))
      return (await ask(`/memory/search?agentId=guide&resourceId=user-1&searchQuery=falcon&memoryConfig=${config}${more}`)).json() as Promise<Record<string, unknown> & { results: Array<{ id: string; context: { before: unknown[]; after: unknown[] } }> }>
    }
    const one = await search({ topK: 1, scope: 'thread', messageRange: { before: 1, after: 2 } }, '&threadId=two')
    expect(one.results.map(({ id, context: { before, after } }) => [id, before.length, after.length])).toEqual([['two-1', 1, 2]])
    expect(one.searchScope).toBe('thread')
    expect((await search({ topK: 1, messageRange: 0, filter: { topic: 'one' } })).results.map(({ id, context }) => [id, context])).toEqual([['one-1', { before: [], after: [] }]])
    expect(await search({ threshold: 1 })).toMatchObject({ results: [], searchScope: 'resource' })
    expect(await search({ scope: 'thread' })).toMatchObject({ code: 'invalid_argument', details: { field: 'threadId' } })
    expect(await search({ topK: -1 })).toMatchObject({ code: 'invalid_argument', details: { option: 'semanticRecall.topK' } })
    expect(await search(false)).toMatchObject({ code: 'invalid_argument' })
    expect(await search({ filter: { topic: { $regex: '(a+)+$' } } })).toMatchObject({ code: 'unsupported_option' })
  })

  it('[H5.1] working memory is answered with its template and whether the thread exists, also before it does', async () => {
    for (const scope of ['thread', 'resource'] as const) {
      const { read, say } = await open(scope)
      const path = '/threads/thread-1/working-memory?agentId=guide&resourceId=user-1'
      const shape = { source: scope, workingMemoryTemplate: { format: 'markdown', content: expect.stringContaining('#') as string } }
      expect(await read(path)).toEqual({ workingMemory: null, threadExists: false, ...shape })
      await say('Hi')
      await read(path, { workingMemory: '# Ada', resourceId: 'user-1' })
      expect(await read(path)).toEqual({ workingMemory: '# Ada', threadExists: true, ...shape })
      // What is known of a resource is known on its next thread, too.
      expect(await read(path.replace('thread-1', 'thread-2'))).toMatchObject({ workingMemory: scope === 'thread' ? null : '# Ada', threadExists: false })
    }
  })

  it('[H5.1] a copy is answered with its messages, unless they are not asked for', async () => {
    const { read, say } = await open()
    await say('Hi')
    expect(await read('/threads/thread-1/clone', { newThreadId: 'copy', resourceId: 'user-1' })).toMatchObject({ thread: { id: 'copy' }, clonedMessages: [{ role: 'signal' }, { role: 'assistant' }] })
    expect(Object.keys(await read('/threads/thread-1/clone', { resourceId: 'user-1', readMessages: false }))).toEqual(['thread'])
  })

  it('[H5.1] messages of older clients, whose content is a text, are stored as they are', async () => {
    const { read } = await open()
    await read('/threads', thread)
    const message = { id: 'm1', role: 'user', type: 'text', createdAt: '2020-01-01T00:00:00Z', ...thread, content: 'One' }
    expect(await read('/save-messages?agentId=guide', { messages: [message] })).toMatchObject({ messages: [{ id: 'm1', content: { parts: [{ type: 'text', text: 'One' }] } }] })
  })

  it('[H5.1] the configuration of a memory is answered', async () => {
    const { read } = await open()
    expect(await read('/status?agentId=guide')).toEqual({ result: true, memoryType: 'local' })
    expect(await read('/config?agentId=guide')).toEqual({
      config: {
        lastMessages: 10, semanticRecall: { topK: 6, messageRange: { before: 1, after: 1 }, scope: 'resource' }, generateTitle: false,
        workingMemory: { enabled: true, scope: 'thread', template: expect.stringContaining('#') as string }, observationalMemory: { enabled: false },
      },
    })
    expect(await read('/observational-memory?agentId=guide&resourceId=user-1')).toMatchObject({ code: 'unsupported_option' })
  })

  it('[H5.1] a message is deleted by its id alone, wherever copies and quotes of it are', async () => {
    const { ask, heed } = await served({ guide: new Agent({ id: 'guide', model: scriptedModel(['Trains leave at nine.'], { loop: true }), memory: new Memory() }) })
    const agent = heed.getAgentById('guide')
    const read = async (path: string, json?: object) => (await ask(`/memory${path}?agentId=guide&resourceId=user-1`, json ? { json } : {})).json() as Promise<Record<string, unknown>>
    const messagesOf = async (threadId: string) => ((await read(`/threads/${threadId}/messages`)).messages as Array<{ id: string }>).map(({ id }) => id)
    await agent.generate('When do trains leave?', { memory: { thread: 'thread-1', resource: 'user-1' } })
    await read('/threads/thread-1/clone', { newThreadId: 'copy', resourceId: 'user-1' })
    // Recall shows another thread the messages of this one.
    await agent.generate('When do trains leave from here?', { memory: { thread: 'thread-2', resource: 'user-1' } })
    const [first = '', second = ''] = await messagesOf('thread-1')
    const [copied = '', other = ''] = await messagesOf('copy')
    // Existing clients name neither the resource nor the thread.
    const remove = async (messageIds: unknown) => {
      const response = await ask('/memory/messages/delete?agentId=guide', { json: { messageIds } })
      return [response.status, ((await response.json()) as { deleted: number }).deleted]
    }
    expect(await remove(first)).toEqual([200, 1])
    expect(await remove([first])).toEqual([200, 0])
    expect([await messagesOf('thread-1'), await messagesOf('copy')]).toEqual([[second], [copied, other]])
    expect(await remove([{ id: other }])).toEqual([200, 1])
    expect([await messagesOf('thread-1'), await messagesOf('copy')]).toEqual([[second], [copied]])
    expect(await messagesOf('thread-2')).toHaveLength(2)
  })

  it('[M1.26] a message that names its thread is deleted there alone, and not in another than the call names', async () => {
    const auth = apiKeys({ 'the-key-of-one-user': { id: 'one', resources: ['user-1'] }, 'the-key-of-two-user': { id: 'two', resources: ['user-2'] } })
    const { ask, heed } = await served({ guide: new Agent({ id: 'guide', model: scriptedModel([]), memory: new Memory() }) }, { auth })
    const memory = await heed.getAgentById('guide').getMemory()
    for (const [threadId, resourceId] of [['a', 'user-1'], ['b', 'user-1'], ['theirs', 'user-2']] as const) {
      await memory.createThread({ threadId, resourceId })
      await memory.saveMessages({ threadId, messages: [{ id: 'm', role: 'user', content: 'Hi.' }] })
    }
    const remove = async (json: object) => {
      const response = await ask('/memory/messages/delete', { json, headers: { authorization: 'Bearer the-key-of-one-user' } })
      return [response.status, await response.text()]
    }
    const left = async () => (await Promise.all(['a', 'b', 'theirs'].map(async (threadId) => (await memory.recall({ threadId })).messages.length))).join()
    const named = expect.stringContaining('messageIds.threadId') as string
    expect(await remove({ threadId: 'a', messageIds: [{ id: 'm', threadId: 'b' }] })).toEqual([400, named])
    expect(await remove({ messageIds: 'm' })).toEqual([400, expect.stringContaining('several threads') as string])
    expect(await left()).toBe('1,1,1')
    expect(await remove({ messageIds: [{ id: 'm', threadId: 'b' }] })).toEqual([200, expect.stringContaining('"deleted":1') as string])
    expect(await left()).toBe('1,0,1')
    // A thread of another resource is answered for as a missing one.
    expect(await remove({ messageIds: { id: 'm', threadId: 'theirs' } })).toEqual(await remove({ messageIds: { id: 'm', threadId: 'missing' } }))
    expect(await left()).toBe('1,0,1')
  })
})
