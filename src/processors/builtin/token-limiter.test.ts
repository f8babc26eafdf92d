import { describe, expect, it } from 'vitest'
import { called, refusal, said, stepArgs } from '../../../test/processors/asked.ts'
import { Agent } from '../../agent/agent.ts'
import { Heed } from '../../heed/heed.ts'
import { MessageList } from '../../message/list/list.ts'
import type { Message } from '../../message/message.ts'
import { createTool } from '../../run/tools/tool.ts'
import { normalizeSignal } from '../../signals/normalize.ts'
import { signalToMessage } from '../../signals/conversions.ts'
import { InMemoryStore } from '../../store/sqlite/in-memory.ts'
import { scriptedModel } from '../../testing/index.ts'
import { TokenLimiter } from './token-limiter.ts'

// A word is a token, so that the numbers can be read.
const countTokens = (text: string) => text.split(/\s+/).filter((word) => word !== '').length
const limiter = (limit: number, strategy?: 'truncate' | 'abort') => new TokenLimiter({ limit, countTokens, ...(strategy ? { strategy } : {}) })

const history = [
  said('u1', 'user', 'one two three'),
  said('a1', 'assistant', 'four five six'),
  said('u2', 'user', 'seven eight'),
  said('a2', 'assistant', 'nine ten'),
]
const listOf = (remembered: Message[], input: Message[], response: Message[] = []) =>
  new MessageList().add(remembered, 'memory').add(input, 'input').add(response, 'response')
const kept = (limit: number, list: MessageList) => (limiter(limit).processInputStep(stepArgs(list)) ?? list.get.all.db()).map(({ id }) => id)

describe('TokenLimiter', () => {
  const asking = said('u3', 'user', 'eleven twelve')

  it.each([
    [100, ['u1', 'a1', 'u2', 'a2', 'u3']],
    [12, ['u1', 'a1', 'u2', 'a2', 'u3']],
    [11, ['u2', 'a2', 'u3']],
    [6, ['u2', 'a2', 'u3']],
    [5, ['u3']],
    [2, ['u3']],
    [1, ['u3']],
  ])('with %i tokens keeps the newest messages, from a user message on', (limit, ids) => {
    expect(kept(limit, listOf(history, [asking]))).toEqual(ids)
  })

  it('leaves no gap, though an older message would fit', () => {
    const list = listOf([said('t1', 'user', 'tiny'), said('t2', 'user', 'far too many words for this'), said('t3', 'user', 'small')], [asking])
    expect(kept(5, list)).toEqual(['t3', 'u3'])
  })

  it('counts the instructions', () => {
    const args = stepArgs(listOf(history, [asking]), { systemMessages: [{ role: 'system', content: 'be brief and kind please now' }] })
    expect(limiter(12).processInputStep(args)?.map(({ id }) => id)).toEqual(['u2', 'a2', 'u3'])
    expect(limiter(18).processInputStep(args)).toBeUndefined()
  })

  it('never drops input or output of the run, and logs that they exceed the limit', () => {
    const response = said('r1', 'assistant', 'looking', called('look', 'c1', { at: 'sky' }, 'a very long result of many words'))
    const list = listOf(history, [said('u3', 'user', 'one two three four five six seven')], [response])
    const args = stepArgs(list)
    expect(limiter(3).processInputStep(args)?.map(({ id }) => id)).toEqual(['u3', 'r1'])
    expect(args.logged).toEqual([expect.stringContaining('above the limit')])
  })

  it('keeps the rows of its run where the list has them as history', () => {
    const row = { id: 'u3', messageId: 'u3', role: 'user' as const, createdAt: new Date(0), runId: 'run-1', content: asking.content }
    const list = new MessageList().add(history, 'memory').add(row, 'memory').add(said('n1', 'signal', 'later'), 'memory')
    expect(kept(1, list)).toEqual(['u3'])
  })

  it('keeps a call with its result', () => {
    const turn = said('a1', 'assistant', { type: 'step-start' }, called('look', 'c1', {}, 'one two three'), { type: 'step-start' }, 'seen it')
    const list = listOf([said('u1', 'user', 'look'), turn], [asking])
    for (let limit = 1; limit < 14; limit++) {
      const prompt = MessageList.from([]).add(limiter(limit).processInputStep(stepArgs(list)) ?? list.get.all.db(), 'memory').get.all.prompt()
      const calls = prompt.filter(({ role }) => role === 'assistant').length
      expect([limit, calls, prompt.filter(({ role }) => role === 'tool').length]).toEqual(calls === 0 ? [limit, 0, 0] : [limit, 2, 1])
    }
  })

  it('counts files, signals with their tags, and context rows', () => {
    // <system-reminder kind="x">hello there</system-reminder> has three words.
    const reminder = signalToMessage(normalizeSignal({ type: 'reactive', contents: 'hello there', attributes: { kind: 'x' } }, { id: 's1', now: 0 }))
    const list = new MessageList()
      .add(said('u1', 'user', { type: 'file', data: 'https://x.example/a.png', mimeType: 'image/png' }), 'memory')
      .add(reminder, 'memory')
      .add({ id: 'c1', messageId: 'c1', role: 'context', createdAt: new Date(0), content: { format: 2, parts: [{ type: 'text', text: 'snapshot' }], metadata: { workingMemory: { mode: 'snapshot' } } } }, 'memory')
      .add(asking, 'input')
    expect(kept(1006, list)).toEqual(['u1', 's1', 'u3'])
    expect(kept(1005, list)).toEqual(['s1', 'u3'])
    expect(kept(6, list)).toEqual(['s1', 'u3'])
    expect(kept(5, list)).toEqual(['u3'])
  })

  it('[K2.15] leaves out the context of earlier runs before history, and what this run recalled at last', () => {
    const context = (id: string, text: string, metadata: object, runId?: string) =>
      ({ id, messageId: id, role: 'context' as const, createdAt: new Date(0), content: { format: 2 as const, parts: [{ type: 'text' as const, text }], metadata: metadata as Record<string, never> }, ...(runId && { runId }) })
    const left = (limit: number, strategy: 'truncate' | 'abort' = 'truncate') => {
      const list = new MessageList().add(history.slice(0, 2), 'memory').add(context('old-memory', 'one', { workingMemory: { mode: 'snapshot' } }), 'memory')
        .add(context('old', 'two words', { recall: [] }), 'memory').add(history.slice(2), 'memory').add(context('memory', 'one', { workingMemory: { mode: 'snapshot' } }), 'memory')
        .add(asking, 'input').add(context('own', 'two words', { recall: [] }, 'run-1'), 'memory')
      const returned = limiter(limit, strategy).processInputStep({ ...stepArgs(list), runId: 'run-1' })
      return [...(returned ?? list.get.all.db()).map(({ id }) => id), ...list.get.context.db().map(({ id }) => id)]
    }
    // 10 of history, 2 of input, 1 + 2 + 1 + 2 of context.
    expect(left(18)).toEqual(['u1', 'a1', 'u2', 'a2', 'u3', 'old-memory', 'old', 'memory', 'own'])
    for (const strategy of ['truncate', 'abort'] as const) {
      expect(left(17, strategy)).toEqual(['u1', 'a1', 'u2', 'a2', 'u3', 'old', 'memory', 'own'])
      expect(left(15, strategy)).toEqual(['u1', 'a1', 'u2', 'a2', 'u3', 'memory', 'own'])
    }
    expect(left(14)).toEqual(['u2', 'a2', 'u3', 'memory', 'own'])
    expect(left(5)).toEqual(['u3', 'memory', 'own'])
    expect(left(4)).toEqual(['u3', 'memory'])
  })

  it('rejects with `abort`, and reports the number of tokens', async () => {
    const list = listOf(history, [asking])
    expect(limiter(12, 'abort').processInputStep(stepArgs(list))).toBeUndefined()
    expect(await refusal(() => limiter(11, 'abort').processInputStep(stepArgs(list)))).toMatchObject({
      reason: 'The prompt takes about 12 tokens, more than the limit of 11.',
      metadata: { tokens: 12, limit: 11 },
    })
  })

  it.each([0, -1, Number.NaN, Infinity])('rejects %d as a limit', (limit) => {
    expect(() => new TokenLimiter(limit)).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
  })

  it('shortens the prompt, and nothing else', async () => {
    const model = scriptedModel([{ toolCalls: [{ toolName: 'look' }] }, 'Done.'])
    const tools = { look: createTool({ id: 'look', execute: async () => 'seen' }) }
    const agent = new Agent({ id: 'a', model, tools, inputProcessors: [new TokenLimiter(20)] })
    const long = 'words '.repeat(20)
    const result = await agent.generate([{ role: 'user', content: long }, { role: 'assistant', content: long }, { role: 'user', content: 'Look.' }])
    expect(model.calls.map(({ prompt }) => prompt.map(({ role }) => role))).toEqual([['user'], ['user', 'assistant', 'tool']])
    expect(result.text).toBe('Done.')
  })

  it('drops output of earlier runs, and keeps input that enters during this run', async () => {
    const target = { threadId: 't1', resourceId: 'r1' }
    const memory = { thread: 't1', resource: 'r1' }
    const model = scriptedModel(['words '.repeat(50), { toolCalls: [{ toolName: 'wait' }] }, 'Done.'])
    const wait = createTool({ id: 'wait', execute: async () => (await agent.sendMessage('And this.', target).stored, 'waited') })
    const agent: Agent = new Agent({ id: 'a', model, tools: { wait }, inputProcessors: [new TokenLimiter(30)] })
    const heed = new Heed({ agents: { a: agent }, storage: new InMemoryStore() })
    await agent.generate('Earlier.', { memory })
    await agent.generate('Now.', { memory })
    const prompts = model.calls.map(({ prompt }) => prompt.map(({ role, content }) => [role, JSON.stringify(content).match(/Earlier|Now|And this|waited/)?.[0]]))
    expect(prompts.slice(1)).toEqual([
      [['user', 'Now']],
      [['user', 'Now'], ['assistant', undefined], ['tool', 'waited'], ['user', 'And this']],
    ])
    expect((await (await agent.getMemory()).recall(target)).messages).toHaveLength(6)
    await heed.close()
  })
})

describe('an option of a TokenLimiter', () => {
  it('is rejected by name when it is unknown', () => {
    expect(() => new TokenLimiter({ limit: 10, trimMode: 'x' } as never)).toThrow(expect.objectContaining({ code: 'unsupported_option', details: { option: 'trimMode' } }))
  })
})
