import { describe, expect, it } from 'vitest'
import { joinRows, splitMessage } from './join.ts'
import type { Message, MessageContent, MessagePart, ToolInvocation } from './message.ts'
import type { MessageRow, RowRole } from './row.ts'

const at = new Date(0)

function row(
  id: string,
  role: RowRole,
  messageId: string,
  parts: MessagePart[],
  content: Partial<MessageContent> = {},
): MessageRow {
  return { id, messageId, role, createdAt: at, threadId: 't', content: { format: 2, parts, ...content } }
}

function call(id: string, rest: Partial<ToolInvocation> = {}): MessagePart {
  return {
    type: 'tool-invocation',
    toolInvocation: { toolCallId: id, toolName: 'look', args: { at: id }, state: 'call', ...rest },
  }
}

const textPart = (text: string): MessagePart => ({ type: 'text', text })
const start: MessagePart = { type: 'step-start' }
const shape = (messages: Message[]) => messages.map(({ id, role, content }) => [
  id,
  role,
  content.parts.map(({ type }) => type).join(' '),
])

describe('joined rows', () => {
  it('are one message, with a step-start for each step and each result in its call', () => {
    const messages = joinRows([
      row('1', 'user', 'u', [textPart('go')]),
      row('2', 'assistant', 'm', [textPart('I look'), call('a'), call('b'), call('c')]),
      row('3', 'tool', 'm', [
        call('a', { args: null, state: 'result', result: { ok: true }, modelOutput: { type: 'text', value: 'ok' } }),
        call('b', { args: null, state: 'output-error', errorText: 'broke' }),
        call('c', { args: null, state: 'output-denied', approval: { approved: false, reason: 'no' } }),
      ]),
      row('4', 'assistant', 'm', [textPart('done')]),
    ])
    expect(shape(messages)).toEqual([
      ['u', 'user', 'text'],
      ['m', 'assistant', 'step-start text tool-invocation tool-invocation tool-invocation step-start text'],
    ])
    expect(messages[1]?.content.parts.slice(2, 5)).toEqual([
      call('a', { state: 'result', result: { ok: true }, modelOutput: { type: 'text', value: 'ok' } }),
      call('b', { state: 'output-error', errorText: 'broke' }),
      call('c', { state: 'output-denied', approval: { approved: false, reason: 'no' } }),
    ])
    expect(messages[1]).toMatchObject({ threadId: 't', createdAt: at })
  })

  it('leave out context rows, which don’t separate a message', () => {
    expect(
      shape(
        joinRows([
          row('1', 'assistant', 'm', [textPart('a')]),
          row('2', 'context', 'c', [textPart('recalled')]),
          row('3', 'assistant', 'm', [textPart('b')]),
        ]),
      ),
    )
      .toEqual([['m', 'assistant', 'step-start text step-start text']])
  })

  it('end a message at a signal, and keep a late result with its call', () => {
    const messages = joinRows([
      row('1', 'assistant', 'm', [call('a')]),
      row('2', 'signal', 's', [textPart('wait')]),
      row('3', 'tool', 'm', [call('a', { state: 'result', result: 1 })]),
      row('4', 'assistant', 'm2', [textPart('b')]),
    ])
    expect(shape(messages)).toEqual([
      ['m', 'assistant', 'step-start tool-invocation'],
      ['s', 'signal', 'text'],
      ['m2', 'assistant', 'step-start text'],
    ])
    expect(messages[0]?.content.parts[1]).toMatchObject({ toolInvocation: { state: 'result', result: 1 } })
  })

  it('keep the calls of two messages apart when a provider gives them equal ids', () => {
    const callRows = (id: string) => [
      row(`${id}1`, 'assistant', id, [call('0')]),
      row(`${id}2`, 'tool', id, [call('0', { state: 'result', result: id })]),
    ]
    const messages = joinRows([...callRows('m'), row('u', 'user', 'u', []), ...callRows('n')])
    expect(messages.map(({ content }) => content.parts[1])).toMatchObject([
      { toolInvocation: { result: 'm' } },
      undefined as never,
      { toolInvocation: { result: 'n' } },
    ])
  })

  it('keep a result without its call, and the metadata beside the parts', () => {
    const [message] = joinRows([
      row('1', 'tool', 'm', [call('x', { state: 'result', result: 1 })]),
      row('2', 'assistant', 'm', [textPart('a')], { metadata: { a: 1 } }),
      row('3', 'assistant', 'm', [textPart('b')], { metadata: { b: 2 }, experimental_attachments: [{ url: 'https://example.com' }] }),
    ])
    expect(message?.content.parts[0]).toMatchObject({ toolInvocation: { result: 1 } })
    expect(message?.content).toMatchObject({
      metadata: { a: 1, b: 2 }, experimental_attachments: [{ url: 'https://example.com' }],
    })
  })

  it('don’t change the rows', () => {
    const rows = [
      row('1', 'assistant', 'm', [call('a')], { metadata: { a: 1 } }),
      row('2', 'tool', 'm', [call('a', { state: 'result', result: 1 })]),
    ]
    const before = structuredClone(rows)
    joinRows(rows)
    expect(rows).toEqual(before)
  })
})

describe('a split message', () => {
  it('is a row for each step and one for its results, with derived ids', () => {
    const message: Message = {
      id: 'm', role: 'assistant', createdAt: at, resourceId: 'r',
      content: {
        format: 2,
        metadata: { a: 1 },
        providerMetadata: { openai: { x: 1 } },
        parts: [
          call('a', { state: 'result', result: 1, transcript: { args: 'hidden', result: 'hidden' } }),
          call('b'),
          { ...start, providerMetadata: { openai: { y: 1 } } },
          textPart('done'),
        ],
      },
    }
    const beside = { messageId: 'm', createdAt: at, resourceId: 'r' }
    expect(splitMessage(message)).toEqual([
      {
        id: 'm', role: 'assistant', ...beside,
        content: {
          format: 2, metadata: { a: 1 }, providerMetadata: { openai: { x: 1 } },
          parts: [call('a', { transcript: { args: 'hidden' } }), call('b')],
        },
      },
      {
        id: 'm:1', role: 'tool', ...beside,
        content: { format: 2, parts: [call('a', { state: 'result', result: 1, transcript: { result: 'hidden' } })] },
      },
      {
        id: 'm:2', role: 'assistant', ...beside,
        content: { format: 2, parts: [textPart('done')], providerMetadata: { openai: { y: 1 } } },
      },
    ])
  })

  it('keeps provider-executed calls and the messages of other roles whole', () => {
    const executed = { ...call('a', { state: 'result', result: 1 }), providerExecuted: true } as MessagePart
    expect(
      splitMessage({ id: 'm', role: 'assistant', createdAt: at, content: { format: 2, parts: [executed] } }),
    ).toMatchObject([{ content: { parts: [executed] } }])
    const signal: Message = {
      id: 's', role: 'signal', type: 'state', createdAt: at,
      content: { format: 2, parts: [textPart('x')], metadata: { signal: {} } },
    }
    expect(splitMessage(signal)).toEqual([{ ...signal, messageId: 's' }])
    expect(splitMessage({ id: 'e', role: 'assistant', createdAt: at, content: { format: 2, parts: [] } })).toHaveLength(1)
  })
})
