import { describe, expect, it } from 'vitest'
import type { Memory, Message } from '../../src/index.ts'
import { conversation, ids, memoryOn, said, stores } from './kept.ts'

describe.each(stores)('messages, $name', ({ store }) => {
  async function filled(length = 4): Promise<Memory> {
    const memory = memoryOn(store())
    for (const [threadId, resourceId] of [['t', 'u'], ['o', 'v']] as const) await memory.createThread({ threadId, resourceId })
    await memory.saveMessages({ threadId: 't', messages: conversation(length) })
    return memory
  }
  const all = async (memory: Memory, threadId = 't') => ids((await memory.recall({ threadId, perPage: false })).messages)

  it('are saved in every form that programs have them, and read back as they were', async () => {
    const memory = await filled(0)
    const answer: Message = {
      id: 'a', role: 'assistant', createdAt: new Date(7), threadId: 't', resourceId: 'u',
      content: { format: 2, parts: [{ type: 'step-start' }, { type: 'tool-invocation', toolInvocation: { toolCallId: 'c', toolName: 'look', args: {}, state: 'result', result: 1 } }, { type: 'step-start' }, { type: 'text', text: 'Rain.' }] },
    }
    const { messages } = await memory.saveMessages({ threadId: 't', messages: ['Hello', { role: 'user', content: 'Model words' }, { id: 'ui', role: 'user', parts: [{ type: 'text', text: 'UI words' }] }, answer] })
    expect(messages).toHaveLength(4)
    const read = (await memory.recall({ threadId: 't' })).messages
    expect(read).toEqual(messages)
    expect(read[3]).toEqual(answer)
    expect(await memory.saveMessages({ messages: [] })).toEqual({ messages: [] })
  })

  it('[M1.1] are replaced in their position when they are saved again', async () => {
    const memory = await filled()
    await memory.saveMessages({ threadId: 't', messages: [said('m2', { content: { format: 2, parts: [{ type: 'text', text: 'edited' }] } }), said('new')] })
    expect(await all(memory)).toBe('m0 m1 m2 m3 new')
    expect((await memory.recall({ threadId: 't', include: [{ id: 'm2' }] })).messages[0]?.content.parts).toEqual([{ type: 'text', text: 'edited' }])
  })

  it('[X1.2] with ids of another thread do not change that thread', async () => {
    const memory = await filled()
    await memory.saveMessages({ threadId: 'o', resourceId: 'v', messages: [said('m1', { role: 'user' })] })
    expect([await all(memory), await all(memory, 'o')]).toEqual(['m0 m1 m2 m3', 'm1'])
    await memory.updateMessages({ threadId: 'o', messages: [{ id: 'm1', content: { metadata: { theirs: true } } }] })
    await memory.deleteMessages({ threadId: 'o', messageIds: ['m1', 'm2'] })
    expect([await all(memory), await all(memory, 'o')]).toEqual(['m0 m1 m2 m3', ''])
    expect((await memory.recall({ threadId: 't', include: [{ id: 'm1' }] })).messages[0]?.content.metadata).toBeUndefined()
  })

  it('[M1.2] of several threads are saved all or none', async () => {
    const memory = await filled()
    await memory.saveMessages({ messages: [said('x', { threadId: 't', resourceId: 'u' }), said('y', { threadId: 'o', resourceId: 'v' })] })
    expect([await all(memory), await all(memory, 'o')]).toEqual(['m0 m1 m2 m3 x', 'y'])
    await expect(memory.saveMessages({ messages: [said('z', { threadId: 't' }), said('z', { threadId: 'o', resourceId: 'u' })] })).rejects.toMatchObject({ code: 'thread_forbidden' })
    await expect(memory.saveMessages({ messages: [said('z', { threadId: 't' }), said('z', { threadId: 'none' })] })).rejects.toMatchObject({ code: 'thread_not_found' })
    expect(await all(memory)).toBe('m0 m1 m2 m3 x')
  })

  it('[M1.3] are changed by id, field by field', async () => {
    const memory = await filled()
    await Promise.all(Array.from({ length: 5 }, (_, index) => memory.updateMessages({ messages: [{ id: 'm1', content: { metadata: { [`k${index}`]: index } } }] })))
    const [changed] = await memory.updateMessages({ messages: [{ id: 'm1', threadId: 't', content: { parts: [{ type: 'text', text: 'other' }] } }] })
    expect(changed?.content).toMatchObject({ parts: [{ type: 'text', text: 'other' }], metadata: { k0: 0, k4: 4 } })
    await expect(memory.updateMessages({ messages: [{ id: 'm0', threadId: 't' }, { id: 'nobody', threadId: 't' }] })).rejects.toMatchObject({ code: 'message_not_found' })
    await expect(memory.updateMessages({ threadId: 't', resourceId: 'v', messages: [{ id: 'm1' }] })).rejects.toMatchObject({ code: 'thread_forbidden' })
  })

  it('are deleted by id, by a list, or all of a thread', async () => {
    const memory = await filled(6)
    expect(await memory.deleteMessages('m0')).toBe(1)
    expect(await memory.deleteMessages(['m1', { id: 'm2' }, 'nobody'])).toBe(2)
    expect(await memory.deleteMessages({ threadId: 't', messageIds: ['m3'] })).toBe(1)
    expect(await all(memory)).toBe('m4 m5')
    expect(await memory.deleteMessages({ threadId: 't' })).toBe(2)
    expect(await all(memory)).toBe('')
    expect(await memory.getThreadById({ threadId: 't' })).not.toBeNull()
  })

  it('that several threads have are not deleted or changed by their id alone', async () => {
    const memory = await filled()
    await memory.saveMessages({ threadId: 'o', messages: [said('m0')] })
    await expect(memory.deleteMessages(['m1', 'm0'])).rejects.toMatchObject({ code: 'invalid_argument', details: { field: 'threadId' } })
    await expect(memory.updateMessages({ messages: [{ id: 'm0' }] })).rejects.toMatchObject({ code: 'invalid_argument', details: { field: 'threadId' } })
    expect([await all(memory), await all(memory, 'o')]).toEqual(['m0 m1 m2 m3', 'm0'])
  })

  it('that are too large or invalid are rejected by name, and nothing is written', async () => {
    const memory = await filled()
    const file = (bytes: number): Message => said('file', { content: { format: 2, parts: [{ type: 'file', data: 'A'.repeat(bytes), mimeType: 'image/png' }] } })
    await expect(memory.saveMessages({ threadId: 't', messages: [said('fine'), file(10 * 1024 * 1024)] })).rejects.toMatchObject({ code: 'invalid_message', details: { index: 1 } })
    const tooLarge = { format: 2 as const, parts: [{ type: 'text' as const, text: 'A'.repeat(10 * 1024 * 1024) }] }
    await expect(memory.updateMessages({ messages: [{ id: 'm0', content: tooLarge }], threadId: 't' })).rejects.toMatchObject({ code: 'invalid_message', details: { index: 0 } })
    for (const wrong of [{ role: 'nobody', content: 'x' }, { id: 'x', role: 'user', createdAt: 'never', content: { parts: [] } }, 7]) {
      await expect(memory.saveMessages({ threadId: 't', messages: [said('fine'), wrong as never] })).rejects.toMatchObject({ code: 'invalid_message' })
    }
    await expect(memory.saveMessages({ messages: [said('homeless')] })).rejects.toMatchObject({ code: 'invalid_argument', details: { field: 'threadId' } })
    await expect(memory.deleteMessages([''])).rejects.toMatchObject({ code: 'invalid_argument' })
    expect(await all(memory)).toBe('m0 m1 m2 m3')
  })
})
