import { describe, expect, it } from 'vitest'
import { called, said, stepArgs } from '../../../test/processors/asked.ts'
import { Agent } from '../../agent/agent.ts'
import { MessageList } from '../../message/list/list.ts'
import type { Message } from '../../message/message.ts'
import { createTool } from '../../run/tools/tool.ts'
import { scriptedModel } from '../../testing/index.ts'
import { ToolCallFilter, type ToolCallFilterOptions } from './tool-call-filter.ts'

const step = { type: 'step-start' } as const
const turn = (id: string, ...names: string[]) => said(id, 'assistant', ...names.flatMap((name) => [step, called(name, `${id}-${name}`)]), step, `${id} done`)
const callsIn = (messages: readonly Message[]) =>
  messages.flatMap(({ content }) => content.parts.flatMap((part) => (part.type === 'tool-invocation' ? [part.toolInvocation.toolCallId] : [])))

describe('ToolCallFilter', () => {
  const list = () => new MessageList()
    .add([said('u1', 'user', 'Go.'), turn('a1', 'read', 'write'), said('u2', 'user', 'Again.'), turn('a2', 'read')], 'memory')
    .add(said('u3', 'user', 'Once more.'), 'input')
    .add(said('r1', 'assistant', step, called('read', 'r1-read')), 'response')

  it.each<[string, ToolCallFilterOptions | undefined, string[]]>([
    ['all by default', undefined, ['r1-read']],
    ['only those of some tools', { exclude: ['read'] }, ['a1-write', 'r1-read']],
    ['none of a tool that was not called', { exclude: ['other'] }, ['a1-read', 'a1-write', 'a2-read', 'r1-read']],
    ['nothing with an empty exclude', { exclude: [] }, ['a1-read', 'a1-write', 'a2-read', 'r1-read']],
    ['all but the newest', { keepLast: 1 }, ['a2-read', 'r1-read']],
    ['all but the newest of some tools', { exclude: ['read'], keepLast: 1 }, ['a1-write', 'a2-read', 'r1-read']],
    ['none when more may stay than there are', { keepLast: 9 }, ['a1-read', 'a1-write', 'a2-read', 'r1-read']],
  ])('leaves out calls of earlier runs: %s', (_, options, left) => {
    const args = stepArgs(list())
    expect(callsIn(new ToolCallFilter(options).processInputStep(args) ?? args.messages)).toEqual(left)
  })

  it('keeps the text beside the calls, and does not change its input', () => {
    const args = stepArgs(list())
    const before = JSON.stringify(args.messages)
    const made = new ToolCallFilter().processInputStep(args)
    expect(made?.map(({ id }) => id)).toEqual(['u1', 'a1', 'u2', 'a2', 'u3', 'r1'])
    expect(made?.[1]?.content.parts).toEqual([step, { type: 'text', text: 'a1 done' }])
    expect(JSON.stringify(args.messages)).toBe(before)
  })

  it('leaves out reasoning without other output, and empty messages', () => {
    const thought = { type: 'reasoning', reasoning: 'hm' } as const
    const remembered = [
      said('u1', 'user', 'Go.'),
      said('a1', 'assistant', step, thought, called('read', 'c1')),
      said('a2', 'assistant', step, thought, called('read', 'c2'), step, thought, 'Done.'),
    ]
    const args = stepArgs(new MessageList().add(remembered, 'memory').add(said('u2', 'user', 'And?'), 'input'))
    const made = new ToolCallFilter().processInputStep(args)
    expect(made?.map(({ id }) => id)).toEqual(['u1', 'a2', 'u2'])
    expect(made?.[1]?.content.parts).toEqual([step, thought, { type: 'text', text: 'Done.' }])
  })

  it.each([-1, 0.5])('rejects %d as keepLast', (keepLast) => {
    expect(() => new ToolCallFilter({ keepLast })).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
  })

  it('removes them from the prompts of a run that calls tools itself', async () => {
    const model = scriptedModel([{ toolCalls: [{ toolName: 'look', toolCallId: 'new' }] }, 'Done.'])
    const tools = { look: createTool({ id: 'look', execute: async () => 'seen' }) }
    await new Agent({ id: 'a', model, tools, inputProcessors: [new ToolCallFilter()] }).generate([
      { role: 'user', content: 'Look.' },
      { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'old', toolName: 'look', input: {} }] },
      { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'old', toolName: 'look', output: { type: 'text', value: 'seen' } }] },
      { role: 'assistant', content: 'I saw.' },
      { role: 'user', content: 'Again.' },
    ])
    expect(model.calls.map(({ prompt }) => prompt.map(({ role }) => role))).toEqual([
      ['user', 'assistant', 'user'],
      ['user', 'assistant', 'user', 'assistant', 'tool'],
    ])
    expect(JSON.stringify(model.calls)).not.toContain('old')
  })
})
