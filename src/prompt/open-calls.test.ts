import { describe, expect, it } from 'vitest'
import type { MessagePart, ToolInvocation } from '../message/message.ts'
import type { MessageRow, RowRole } from '../message/row.ts'
import { promptOf } from './from-rows.ts'
import { closeOpenCalls, INTERRUPTED } from './open-calls.ts'

function row(id: string, role: RowRole, parts: MessagePart[], messageId = id): MessageRow {
  return { id, messageId, role, createdAt: new Date(0), content: { format: 2, parts } }
}

function call(id: string, rest: Partial<ToolInvocation> = {}): MessagePart {
  return { type: 'tool-invocation', toolInvocation: { toolCallId: id, toolName: 'look', args: {}, state: 'call', ...rest } }
}

const done = (id: string) => call(id, { state: 'result', result: id })
const textPart = (text: string): MessagePart => ({ type: 'text', text })
const interrupted = (id: string) => ({ type: 'tool-result', toolCallId: id, toolName: 'look', output: {
  type: 'error-text', value: INTERRUPTED,
} })

describe('calls without a result', () => {
  it('stay open while nothing follows them', () => {
    const rows = [
      row('u', 'user', [textPart('go')]),
      row('a', 'assistant', [call('1'), call('2')], 'm'),
      row('t', 'tool', [done('1')], 'm'),
    ]
    expect(closeOpenCalls(rows)).toBe(rows)
    expect(closeOpenCalls(rows.slice(0, 2))).toEqual(rows.slice(0, 2))
  })

  it('are closed as interrupted before the next row', () => {
    const rows = [
      row('a', 'assistant', [call('1'), call('2')], 'm'),
      row('t', 'tool', [done('1')], 'm'),
      row('u', 'user', [textPart('well?')]),
    ]
    const prompt = promptOf(closeOpenCalls(rows))
    expect(prompt.map(({ role }) => role)).toEqual(['assistant', 'tool', 'tool', 'user'])
    expect(prompt[2]?.content).toEqual([interrupted('2')])
  })

  it('don’t pass the metadata of the call to the result', () => {
    const open = { ...call('1'), providerMetadata: { openai: { itemId: 'i' } } } as MessagePart
    const prompt = promptOf(closeOpenCalls([row('a', 'assistant', [open]), row('u', 'user', [textPart('x')])]))
    expect(prompt[0]?.content[0]).toMatchObject({ providerOptions: { openai: { itemId: 'i' } } })
    expect(prompt[1]?.content).toEqual([interrupted('1')])
  })

  it('are closed within a message of several steps, with the metadata of the call', () => {
    const open = { ...call('1'), providerMetadata: { google: { thoughtSignature: 's' } } } as MessagePart
    const rows = [row('a', 'assistant', [open, { type: 'step-start' }, textPart('next'), call('2'), { type: 'step-start' }])]
    expect(promptOf(closeOpenCalls(rows))).toEqual([
      {
        role: 'assistant',
        content: [
          {
            type: 'tool-call', toolCallId: '1', toolName: 'look', input: {},
            providerOptions: { google: { thoughtSignature: 's' } },
          },
        ],
      },
      { role: 'tool', content: [interrupted('1')] },
      { role: 'assistant', content: [textPart('next'), { type: 'tool-call', toolCallId: '2', toolName: 'look', input: {} }] },
    ])
  })

  it('stay open when the provider executes them', () => {
    const rows = [row('a', 'assistant', [{ ...call('1'), providerExecuted: true } as MessagePart]), row('u', 'user', [textPart('x')])]
    expect(closeOpenCalls(rows)).toBe(rows)
  })

  it('have one row object, so that its message is converted once', () => {
    const rows = [row('a', 'assistant', [call('1')]), row('u', 'user', [textPart('x')])]
    expect(closeOpenCalls(rows)[1]).toBe(closeOpenCalls([...rows, row('v', 'user', [textPart('y')])])[1])
    expect(closeOpenCalls(closeOpenCalls(rows) as MessageRow[])).toEqual(closeOpenCalls(rows))
  })
})

describe('results that providers reject', () => {
  it('are left out: those without a call, those that come too late, those that come twice', () => {
    const rows = [
      row('t0', 'tool', [done('0')]),
      row('a', 'assistant', [call('1'), call('2')], 'm'),
      row('t1', 'tool', [done('1'), done('1'), done('9')], 'm'),
      row('u', 'user', [textPart('x')]),
      row('t2', 'tool', [done('2')], 'm'),
    ]
    const prompt = promptOf(closeOpenCalls(rows))
    expect(prompt.map(({ role }) => role)).toEqual(['assistant', 'tool', 'tool', 'user'])
    expect(prompt[1]?.content).toHaveLength(1)
    expect(prompt[2]?.content).toEqual([interrupted('2')])
  })
})
