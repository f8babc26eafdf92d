import type { UIMessage as SdkUIMessage } from 'ai'
import { validateUIMessages } from 'ai'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { promptOf } from '../../prompt/from-rows.ts'
import { fromUIMessages } from './from-ui.ts'
import type { Message, MessagePart, ToolInvocation } from '../message.ts'
import { toUIMessages } from './to-ui.ts'

const at = new Date('2026-01-02T03:04:05.000Z')
const now = () => new Date(0)
const message = (parts: MessagePart[], rest: Partial<Message> = {}): Message =>
  ({ id: 'm', role: 'assistant', createdAt: at, content: { format: 2, parts }, ...rest })
const call = (rest: Partial<ToolInvocation>): MessagePart =>
  ({ type: 'tool-invocation', toolInvocation: { toolCallId: 'c', toolName: 'look', args: { q: 1 }, state: 'call', ...rest } })
const partsOf = (parts: MessagePart[]) => toUIMessages([message(parts)])[0]?.parts

const everything: MessagePart[] = [
  { type: 'step-start' },
  { type: 'reasoning', reasoning: 'hm', providerMetadata: { anthropic: { signature: 's' } } },
  { type: 'text', text: 'I look', providerMetadata: { openai: { itemId: 'i' } } },
  { type: 'file', data: 'https://example.com/a.png', mimeType: 'image/png', filename: 'a.png' },
  { type: 'file', data: 'data:image/png;base64,AAEC', mimeType: 'image/png', reasoning: true },
  { type: 'source', source: { sourceType: 'url', id: 's1', url: 'https://example.com', title: 'A page' } },
  {
    type: 'source',
    source: { sourceType: 'document', id: 's2', mediaType: 'application/pdf', title: 'A file', filename: 'a.pdf' },
  },
  { type: 'custom', kind: 'openai.compaction' },
  { type: 'data-weather', id: 'w', data: { sun: true } },
  { type: 'error', error: { name: 'Error', message: 'broke', code: 'provider_error' } },
]

describe('messages for user interfaces', () => {
  it('show every kind of part', () => {
    expect(partsOf(everything)).toEqual([
      { type: 'step-start' },
      { type: 'reasoning', text: 'hm', providerMetadata: { anthropic: { signature: 's' } } },
      { type: 'text', text: 'I look', providerMetadata: { openai: { itemId: 'i' } } },
      { type: 'file', url: 'https://example.com/a.png', mediaType: 'image/png', filename: 'a.png' },
      { type: 'reasoning-file', url: 'data:image/png;base64,AAEC', mediaType: 'image/png' },
      { type: 'source-url', sourceId: 's1', url: 'https://example.com', title: 'A page' },
      { type: 'source-document', sourceId: 's2', mediaType: 'application/pdf', title: 'A file', filename: 'a.pdf' },
      { type: 'custom', kind: 'openai.compaction' },
      { type: 'data-weather', id: 'w', data: { sun: true } },
      { type: 'data-error', data: { name: 'Error', message: 'broke', code: 'provider_error' } },
    ])
  })

  it.each<[Partial<ToolInvocation>, object]>([
    [{ state: 'call' }, { state: 'input-available' }],
    [{ state: 'call', approval: { approved: true } }, { state: 'approval-responded', approval: { id: 'c', approved: true } }],
    [{ state: 'approval-requested' }, { state: 'approval-requested', approval: { id: 'c' } }],
    [{ state: 'result', result: 7 }, { state: 'output-available', output: 7 }],
    [
      { state: 'result', result: 7, approval: { approved: true } },
      { state: 'output-available', output: 7, approval: { id: 'c', approved: true } },
    ],
    [{ state: 'output-error', errorText: 'broke' }, { state: 'output-error', errorText: 'broke' }],
    [
      { state: 'output-denied', approval: { approved: false, reason: 'no' } },
      { state: 'output-denied', approval: { id: 'c', approved: false, reason: 'no' } },
    ],
  ])('show a call that is %j', (invocation, shown) => {
    expect(partsOf([call(invocation)])).toEqual([{ type: 'tool-look', toolCallId: 'c', input: { q: 1 }, ...shown }])
  })

  it('show the payloads of the transcript', () => {
    expect(partsOf([
      call({ state: 'result', result: 'secret', transcript: { args: { q: '***' }, result: '***' } }),
      call({ state: 'output-error', errorText: 'secret', transcript: { errorText: '***' } }),
    ])).toMatchObject([{ input: { q: '***' }, output: '***' }, { input: { q: 1 }, errorText: '***' }])
  })

  it('show bytes as data URLs, attachments as files, and the text of a message without parts', () => {
    expect(
      partsOf([{ type: 'file', data: 'AAEC', mimeType: 'image/png' }]),
    ).toEqual([{ type: 'file', url: 'data:image/png;base64,AAEC', mediaType: 'image/png' }])
    const old = message(
      [],
      {
        role: 'user',
        content: { format: 2, parts: [], content: 'hi', experimental_attachments: [{ url: 'https://example.com/a', name: 'a' }] },
      },
    )
    expect(toUIMessages([old])[0]).toMatchObject({
      role: 'user',
      parts: [{ type: 'text', text: 'hi' }, { type: 'file', url: 'https://example.com/a', filename: 'a' }],
    })
  })

  it('show a user’s signal as a user message, with its attributes and metadata', () => {
    const signal = {
      id: 'm', type: 'user', tagName: 'user', createdAt: at.toISOString(), attributes: { name: 'Jane' },
      metadata: { avatar: 1 },
    }
    const [shown] = toUIMessages([
      message(
        [{ type: 'text', text: 'hi' }],
        { role: 'signal', type: 'user', content: { format: 2, parts: [{ type: 'text', text: 'hi' }], metadata: { signal } } },
      ),
    ])
    expect(shown).toEqual({
      id: 'm', role: 'user', parts: [{ type: 'text', text: 'hi' }],
      metadata: {
        createdAt: at.toISOString(),
        signal: { type: 'user', tagName: 'user', attributes: { name: 'Jane' }, metadata: { avatar: 1 } },
      },
    })
  })

  it('show any other signal as data of a system message', () => {
    const [shown] = toUIMessages([message([{ type: 'text', text: 'CI failed' }], { role: 'signal', type: 'system-reminder' })])
    expect(shown).toEqual({
      id: 'm', role: 'system',
      parts: [{ type: 'data-signal', id: 'm', data: { type: 'reactive', tagName: 'system-reminder', contents: 'CI failed' } }],
      metadata: { createdAt: at.toISOString(), signal: { type: 'reactive', tagName: 'system-reminder' } },
    })
  })

  it('are valid messages of the AI SDK', async () => {
    const calls = ([
      'call',
      'approval-requested',
      'result',
      'output-error',
      'output-denied',
    ] as const).map(state => call({ state, result: 1, errorText: 'e' }))
    const shown: SdkUIMessage[] = toUIMessages([
      message(everything),
      message(calls),
      message([{ type: 'text', text: 'x' }], { role: 'signal', type: 'state' }),
    ])
    await expect(validateUIMessages({ messages: shown })).resolves.toHaveLength(3)
  })
})

const options = fc.option(fc.record({ openai: fc.record({ itemId: fc.string() }) }), { nil: undefined })
const invocation: fc.Arbitrary<Partial<ToolInvocation>> = fc.oneof(
  fc.constant({ state: 'call' as const }),
  fc.constant({ state: 'approval-requested' as const, approval: {} }),
  fc.jsonValue().map(result => ({ state: 'result' as const, result: JSON.parse(JSON.stringify(result)) as null })),
  fc.string().map(errorText => ({ state: 'output-error' as const, errorText })),
  fc.string().map(reason => ({ state: 'output-denied' as const, approval: { approved: false, reason } })),
)
const part: fc.Arbitrary<MessagePart> = fc.oneof(
  fc.constantFrom(...everything),
  fc.tuple(fc.string(), options).map(([text, providerMetadata]) =>
    ({ type: 'text' as const, text, ...(providerMetadata && { providerMetadata }) })),
  fc.tuple(invocation, options, options).map(([over, ofCall, answered]) => ({
    ...call(over),
    ...(ofCall && { providerMetadata: ofCall }),
    ...(answered && (over.state === 'result' || over.state === 'output-error') && { resultProviderMetadata: answered }),
  } as MessagePart)),
)

describe('messages from a user interface', () => {
  it('are equal to those that were shown', () => {
    fc.assert(fc.property(fc.array(part, { minLength: 1 }), fc.constantFrom(
      'user' as const,
      'assistant' as const,
      'system' as const,
    ), (parts, role) => {
      const messages = [message(parts, { role, content: { format: 2, parts, metadata: { page: 1 } } })]
      const wire = JSON.parse(JSON.stringify(toUIMessages(messages))) as unknown[]
      expect(fromUIMessages(wire, { now })).toEqual(messages)
    }))
  })

  it('are read as signals with the option signals', () => {
    const signal = (type: string, parts: MessagePart[]) => message(parts, {
      role: 'signal', type, content: {
        format: 2, parts,
        metadata: { signal: { id: 'm', type, tagName: type, createdAt: at.toISOString(), attributes: { a: 1 } } },
      },
    })
    const messages = [
      signal('user', [{ type: 'text', text: 'hi' }]),
      signal('notification', [{ type: 'text', text: 'CI failed' }]),
      signal('state', [{ type: 'text', text: 'a' }, { type: 'file', data: 'https://example.com/a.png', mimeType: 'image/png' }]),
    ]
    const shown = toUIMessages(messages)
    const back = fromUIMessages(shown, { now, signals: true })
    expect(back).toEqual(messages)
    expect(promptOf(back)).toEqual(promptOf(messages))
    expect(fromUIMessages(shown, { now })).toMatchObject([{ role: 'user', content: { parts: [{ text: 'hi' }] } }])
  })

  it('may be of other versions: dynamic tools, unfinished calls, text beside the parts', () => {
    const [back] = fromUIMessages([{
      id: 'm', role: 'assistant', parts: [
        { type: 'dynamic-tool', toolName: 'look', toolCallId: 'd', state: 'output-available', input: {}, output: 1 },
        { type: 'tool-call', toolCallId: 'named-call', state: 'input-available', input: {} },
        { type: 'tool-look', toolCallId: 'half', state: 'input-streaming', input: {} },
        { type: 'tool-look', toolCallId: 'no', state: 'approval-responded', input: {}, approval: { id: 'x', approved: false } },
      ],
    }], { now })
    expect(back?.createdAt).toEqual(now())
    expect(back?.content.parts).toMatchObject([
      { toolInvocation: { toolName: 'look', state: 'result', result: 1 } },
      { toolInvocation: { toolName: 'call', state: 'call' } },
      { toolInvocation: { toolCallId: 'no', state: 'output-denied' } },
    ])
  })
})
