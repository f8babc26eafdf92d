import { describe, expect, it } from 'vitest'
import { Agent, Memory } from '../../src/index.ts'
import { apiKeys } from '../../src/http/server.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

const guide = () => new Agent({ id: 'guide', model: scriptedModel(['Hello.'], { loop: true }), memory: new Memory({ workingMemory: { enabled: true, scope: 'thread' } }) })

describe('memory over HTTP', () => {
  it('makes, finds, changes and deletes threads', async () => {
    const { client } = await served({ guide: guide() })
    const memory = client.memory({ agentId: 'guide', resourceId: 'user-1' })
    const made = await memory.createThread({ threadId: 't1', title: 'One', metadata: { kind: 'trip' } })
    expect(made).toMatchObject({ id: 't1', title: 'One', resourceId: 'user-1' })
    await memory.createThread({ threadId: 't2', metadata: { kind: 'other' } })
    expect((await memory.listThreads({ filter: { metadata: { kind: 'trip' } } })).threads.map(({ id }) => id)).toEqual(['t1'])
    expect(await memory.listThreads({ perPage: 1, orderBy: { field: 'createdAt', direction: 'ASC' } })).toMatchObject({ total: 2, hasMore: true, page: 0, perPage: 1 })
    expect(await memory.updateThread({ id: 't1', metadata: { kind: null, far: true } })).toMatchObject({ title: 'One', metadata: { far: true } })
    await memory.deleteThread('t2')
    await expect(memory.getThreadById({ threadId: 't2' })).rejects.toMatchObject({ code: 'thread_not_found' })
  })

  it('reads messages as history has them, and as displays want them', async () => {
    const { client } = await served({ guide: guide() })
    const memory = client.memory({ resourceId: 'user-1' })
    for (const message of ['One', 'Two']) await client.getAgent('guide').sendMessage({ message, ...thread, wait: 'outcome' })
    await expect.poll(async () => (await memory.listMessages({ threadId: 'thread-1' })).messages.map(({ role }) => role)).toEqual(['signal', 'assistant', 'signal', 'assistant'])
    const { messages, uiMessages, total } = await memory.listMessages({ threadId: 'thread-1', perPage: 2 })
    expect([messages.length, uiMessages.map(({ role }) => role), total]).toEqual([2, ['user', 'assistant'], 4])
    expect(await memory.deleteMessages({ threadId: 'thread-1', messageIds: [messages[0]?.id ?? ''] })).toBe(1)
    const { thread: clone } = await memory.cloneThread({ sourceThreadId: 'thread-1', newThreadId: 'copy' })
    expect((await memory.listMessages({ threadId: clone.id })).messages).toHaveLength(3)
    await memory.updateWorkingMemory({ threadId: 'thread-1', workingMemory: '# Name: Ada' })
    expect(await memory.getWorkingMemory({ threadId: 'thread-1' })).toBe('# Name: Ada')
  })

  it('[H1.3] changes messages, follows copies, and goes back in working memory', async () => {
    const { client } = await served({ guide: guide() })
    const memory = client.memory({ resourceId: 'user-1' })
    await memory.createThread({ threadId: 't1' })
    const { messages } = await memory.saveMessages({ messages: [{ id: 'm1', role: 'user', createdAt: new Date(0), threadId: 't1', resourceId: 'user-1', content: { format: 2, parts: [{ type: 'text', text: 'One' }] } }] })
    expect(messages).toHaveLength(1)
    expect(await memory.updateMessages({ messages: [{ id: 'm1', content: { metadata: { pinned: true } } }] })).toMatchObject([{ id: 'm1', content: { metadata: { pinned: true } } }])
    await expect(memory.updateMessages({ messages: [{ id: 'm1', content: { parts: [1, null, { foo: 1 }] as never } }] })).rejects.toMatchObject({ code: 'invalid_message' })
    await expect(memory.updateMessages({ messages: [{ id: 'nothing', content: { metadata: {} } }] })).rejects.toMatchObject({ code: 'message_not_found' })
    await memory.cloneThread({ sourceThreadId: 't1', newThreadId: 't2' })
    expect((await memory.listClones('t1')).map(({ id }) => id)).toEqual(['t2'])
    expect((await memory.getSourceThread('t2')).id).toBe('t1')
    expect((await memory.getCloneHistory('t2')).map(({ id }) => id)).toEqual(['t1', 't2'])
    await expect(memory.getSourceThread('t1')).rejects.toMatchObject({ code: 'not_found' })
    expect(await memory.updateWorkingMemory({ threadId: 't1', workingMemory: 'one', expectedVersion: 0 })).toBe(1)
    expect(await memory.updateWorkingMemory({ threadId: 't1', workingMemory: 'two' })).toBe(2)
    await expect(memory.updateWorkingMemory({ threadId: 't1', workingMemory: 'late', expectedVersion: 1 })).rejects.toMatchObject({ code: 'working_memory_conflict', details: { status: 409 } })
    expect(await memory.undoWorkingMemory({ threadId: 't1' })).toMatchObject({ version: 3, workingMemory: 'one' })
    expect((await memory.listWorkingMemoryVersions({ threadId: 't1', limit: 2 })).map(({ version }) => version)).toEqual([3, 2])
  })

  it('[H1.3] [H3.2] finds messages by what they are about, and none of another resource', async () => {
    const { client } = await served({ guide: guide() })
    const said = { 'user-1': 'The train to Bern leaves at nine.', 'user-2': 'The train to Basel leaves at ten.' }
    for (const [resourceId, message] of Object.entries(said)) await client.getAgent('guide').sendMessage({ message, resourceId, threadId: `of-${resourceId}`, wait: 'outcome' })
    const memory = client.memory({ agentId: 'guide', resourceId: 'user-1' })
    await expect.poll(async () => (await memory.search({ searchQuery: 'When does the train leave?' })).results[0]?.content).toBe(said['user-1'])
    const { results, count } = await memory.search({ searchQuery: 'train', threadId: 'of-user-1', limit: 5 })
    expect(results[0]).toMatchObject({ threadId: 'of-user-1', role: 'signal' })
    expect([count, JSON.stringify(results).includes('Basel')]).toEqual([results.length, false])
    await expect(memory.search({ searchQuery: 'train', threadId: 'of-user-2' })).rejects.toMatchObject({ code: 'thread_not_found' })
  })

  it('[K2.13] says of each message that a search finds what contributed to its score', async () => {
    const agent = guide()
    const { client } = await served({ guide: agent })
    const own = await agent.getMemory()
    await own.createThread({ threadId: 'keys', resourceId: 'user-1' })
    const texts = ['Where is the spare key?', 'The spare key is under the flowerpot.', 'The garage is locked.', 'Bern is nice in May.']
    await own.saveMessages({ threadId: 'keys', messages: texts.map((content, at) => ({ id: `k${at}`, role: 'user', content })) })
    const { results } = await client.memory({ agentId: 'guide', resourceId: 'user-1' }).search({ searchQuery: 'spare key under what' })
    const { hits = [] } = await own.recall({ threadId: 'keys', vectorSearchString: 'spare key under what' })
    expect(results.map(({ id, score, reasons }) => ({ id, score, reasons }))).toEqual(hits.map(({ messageId: id, score, reasons }) => ({ id, score, reasons })))
    expect(results[0]).toMatchObject({ id: 'k1', reasons: { words: 1, meaning: 0, question: 0 } })
    const after = results.find(({ id }) => id === 'k2')
    expect(after?.reasons?.previous).toBeGreaterThan(0.5)
    // Also of the messages beside it, the best possible is 1.
    for (const { reasons } of results) expect(Object.values(reasons ?? {}).filter((value) => value < 0 || value > 1)).toEqual([])
  })

  it('[H3.2] hands no thread over to where the caller may not reach', async () => {
    const auth = apiKeys({ 'a-long-random-key-1': { id: 'one', resources: ['user-1'] } })
    const { ask } = await served({ guide: guide() }, { auth })
    const headers = { authorization: 'Bearer a-long-random-key-1' }
    await ask('/memory/threads', { json: { threadId: 't1' }, headers })
    expect((await ask('/memory/threads/t1/transfer', { json: { resourceId: 'user-2' }, headers })).status).toBe(403)
    expect((await ask('/memory/threads', { json: { threadId: 't2', resourceId: 'user-2' }, headers })).status).toBe(403)
  })
})
