import { describe, expect, it } from 'vitest'
import { promptOf } from '../../prompt/from-rows.ts'
import { joinRows } from '../join.ts'
import { decodeContent, decodeMessage, decodeRows } from './legacy.ts'

const stored = (content: unknown, rest: object = {}) =>
  ({ id: 'm', role: 'assistant', createdAt: '2026-01-02T03:04:05.000Z', content, ...rest })

describe('content that older writers stored', () => {
  it('may be a text', () => {
    expect(decodeContent('hi')).toEqual({ format: 2, parts: [{ type: 'text', text: 'hi' }] })
    expect(decodeContent('')).toEqual({ format: 2, parts: [] })
    expect(decodeContent(null)).toEqual({ format: 2, parts: [] })
  })

  it('may be JSON, but a text that looks like JSON is a text', () => {
    expect(
      decodeContent('{"format":2,"parts":[{"type":"text","text":"hi"}]}'),
    ).toEqual({ format: 2, parts: [{ type: 'text', text: 'hi' }] })
    expect(decodeContent('[{"type":"text","text":"hi"}]').parts).toEqual([{ type: 'text', text: 'hi' }])
    for (const text of [
      '{"a":1}',
      '[{"a":1}]',
      '[{"type":"car"}]',
      '{broken',
      '[1]',
    ]) expect(decodeContent(text).parts).toEqual([{ type: 'text', text }])
  })

  it('may be parts of model messages', () => {
    expect(decodeContent([
      { type: 'text', text: 'see' },
      { type: 'image', image: 'https://example.com/a.png' },
      { type: 'reasoning', text: 'hm', signature: 'x' },
      { type: 'redacted-reasoning', data: 'zzz' },
      { type: 'tool-call', toolCallId: 'c', toolName: 'look', args: { q: 1 } },
      { type: 'tool-result', toolCallId: 'd', toolName: 'look', result: 'broke', isError: true },
    ]).parts).toEqual([
      { type: 'text', text: 'see' },
      { type: 'file', data: 'https://example.com/a.png', mimeType: 'image/*' },
      { type: 'reasoning', reasoning: 'hm' },
      { type: 'reasoning', reasoning: '', providerMetadata: { anthropic: { redactedData: 'zzz' } } },
      { type: 'tool-invocation', toolInvocation: { toolCallId: 'c', toolName: 'look', args: { q: 1 }, state: 'call' } },
      {
        type: 'tool-invocation',
        toolInvocation: { toolCallId: 'd', toolName: 'look', args: null, state: 'output-error', errorText: 'broke' },
      },
    ])
  })

  it('may keep calls, reasoning and text beside the parts', () => {
    const invocation = { toolCallId: 'c', toolName: 'look', args: {}, state: 'result', result: 1 }
    expect(decodeContent({
      format: 2, parts: [], content: 'done', reasoning: 'hm',
      toolInvocations: [{ ...invocation, step: 0 }, { ...invocation, toolCallId: 'd', step: 1 }],
    }).parts.map(({ type }) => type).join(' ')).toBe('reasoning tool-invocation step-start tool-invocation step-start text')
    const beside = decodeContent({
      format: 2, content: 'done', parts: [
        { type: 'tool-invocation', toolInvocation: { ...invocation, state: 'call', result: undefined } },
        { type: 'text', text: 'done' },
      ],
      toolInvocations: [invocation, { ...invocation, toolCallId: 'd' }],
    })
    expect(beside.parts).toMatchObject([
      { toolInvocation: { toolCallId: 'c', state: 'result', result: 1 } },
      { type: 'text' },
      { toolInvocation: { toolCallId: 'd' } },
    ])
  })

  it('may have attachments, details of reasoning and states of their time', () => {
    const content = decodeContent({
      format: 2,
      experimental_attachments: [{ url: 'data:text/plain;base64,aGk=', contentType: 'text/plain', name: 'a.txt' }, 'junk'],
      parts: [
        { type: 'reasoning', reasoning: '', details: [{ type: 'text', text: 'a', signature: 's' }, { type: 'text', text: 'b' }] },
        { type: 'reasoning', reasoning: '', details: [{ type: 'redacted', data: 'zzz' }] },
        { type: 'file', url: 'https://example.com/a.png', mediaType: 'image/png' },
        { type: 'tool-invocation', toolInvocation: { toolCallId: 'p', toolName: 'look', args: {}, state: 'partial-call' } },
        {
          type: 'tool-invocation',
          toolInvocation: {
            toolCallId: 'a', toolName: 'look', args: {}, state: 'approval-responded', approval: { approved: false },
          },
        },
        {
          type: 'tool-invocation',
          toolInvocation: {
            toolCallId: 'e', toolName: 'look', args: {}, state: 'result', result: { message: 'broke' }, isError: true,
          },
        },
      ],
    })
    expect(content.experimental_attachments).toEqual([
      { url: 'data:text/plain;base64,aGk=', contentType: 'text/plain', name: 'a.txt' },
    ])
    expect(content.parts).toMatchObject([
      { type: 'reasoning', reasoning: 'ab', providerMetadata: { anthropic: { signature: 's' } } },
      { type: 'reasoning', providerMetadata: { anthropic: { redactedData: 'zzz' } } },
      { type: 'file', data: 'https://example.com/a.png', mimeType: 'image/png' },
      { toolInvocation: { toolCallId: 'a', state: 'output-denied' } },
      { toolInvocation: { toolCallId: 'e', state: 'output-error', errorText: 'broke' } },
    ])
  })

  it('keeps parts that nobody knows, and no model ever sees them', () => {
    const hologram = { type: 'hologram', depth: 3 }
    const message = decodeMessage(
      stored({ format: 2, parts: [hologram, 7, null, { no: 'type' }, { type: 'text', text: 'x' }, { type: 'text' }] }),
    )
    expect(message.content.parts).toEqual([hologram, { type: 'text', text: 'x' }])
    expect(promptOf([message])).toEqual([{ role: 'assistant', content: [{ type: 'text', text: 'x' }] }])
  })

  it('is taken as it is when it is in today’s format', () => {
    const content = {
      format: 2,
      parts: [{ type: 'text', text: 'x', createdAt: 5 }, { type: 'data-x', data: 1 }, { type: 'step-start', model: 'm' }],
    }
    expect(decodeContent(content)).toBe(content)
  })
})

describe('rows that older writers stored', () => {
  it('have their columns under any of their names', () => {
    expect(decodeMessage(stored('x', { thread_id: 't', resourceid: 'r', type: 'v2' }))).toEqual({
      id: 'm', role: 'assistant', createdAt: new Date('2026-01-02T03:04:05.000Z'), threadId: 't', resourceId: 'r',
      content: { format: 2, parts: [{ type: 'text', text: 'x' }] },
    })
  })

  it('join results with the message before them', () => {
    const rows = decodeRows([
      stored([{ type: 'tool-call', toolCallId: 'c', toolName: 'look', args: {} }], { id: 'a' }),
      stored([{ type: 'tool-result', toolCallId: 'c', toolName: 'look', result: 1 }], { id: 't', role: 'tool' }),
      stored('done', { id: 'b' }),
      stored('hm', { id: 's', role: 'signal', type: 'system-reminder' }),
    ])
    expect(rows.map(({ messageId }) => messageId)).toEqual(['a', 'a', 'b', 's'])
    expect(joinRows(rows)).toMatchObject([
      { id: 'a', content: { parts: [{ type: 'step-start' }, { toolInvocation: { state: 'result', result: 1 } }] } },
      { id: 'b' },
      { id: 's', type: 'system-reminder' },
    ])
  })

  it('are refused when nobody can say whose they are', () => {
    expect(() => decodeMessage({ role: 'user', content: 'x' })).toThrow(expect.objectContaining({ code: 'store_corrupt' }))
    expect(() => decodeMessage(stored('x', { role: 'robot' }))).toThrow(
      expect.objectContaining({ code: 'store_corrupt', message: expect.stringContaining('"robot"') as string }),
    )
  })
})
