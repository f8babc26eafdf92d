import { describe, expect, it } from 'vitest'
import { promptOf } from '../../prompt/from-rows.ts'
import { isCurrent, keepUnknown, readContent, readParts } from './stored-content.ts'

const read = (content: Record<string, unknown>) => readContent(content, keepUnknown)

describe('content that older writers stored', () => {
  it('may have parts of model messages', () => {
    expect(readParts([
      { type: 'text', text: 'see' },
      { type: 'image', image: 'https://example.com/a.png' },
      { type: 'reasoning', text: 'hm', signature: 'x' },
      { type: 'redacted-reasoning', data: 'zzz' },
      { type: 'tool-call', toolCallId: 'c', toolName: 'look', args: { q: 1 } },
      { type: 'tool-result', toolCallId: 'd', toolName: 'look', result: 'broke', isError: true },
    ], keepUnknown)).toEqual([
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

  it('may have calls, reasoning and text beside the parts', () => {
    const invocation = { toolCallId: 'c', toolName: 'look', args: {}, state: 'result', result: 1 }
    expect(read({
      format: 2, parts: [], content: 'done', reasoning: 'hm',
      toolInvocations: [{ ...invocation, step: 0 }, { ...invocation, toolCallId: 'd', step: 1 }],
    }).parts.map(({ type }) => type).join(' ')).toBe('reasoning tool-invocation step-start tool-invocation step-start text')
    const beside = read({
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

  it('may have attachments, details of reasoning and older states', () => {
    const content = read({
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

  it('keeps parts of unknown types, which a prompt leaves out', () => {
    const hologram = { type: 'hologram', depth: 3 }
    const content = read({ format: 2, parts: [hologram, 7, null, { no: 'type' }, { type: 'text', text: 'x' }, { type: 'text' }] })
    expect(content.parts).toEqual([hologram, { type: 'text', text: 'x' }])
    expect(promptOf([{ id: 'm', role: 'assistant', createdAt: new Date(0), content }])).toEqual([{ role: 'assistant', content: [{ type: 'text', text: 'x' }] }])
  })

  it('is recognized when it is in the current format', () => {
    const parts = [{ type: 'text', text: 'x', createdAt: 5 }, { type: 'data-x', data: 1 }, { type: 'step-start', model: 'm' }]
    expect(isCurrent({ format: 2, parts })).toBe(true)
    expect(isCurrent({ format: 2, parts, reasoning: 'hm' })).toBe(false)
    expect(isCurrent({ format: 2, parts: [...parts, { type: 'hologram' }] })).toBe(false)
  })
})
