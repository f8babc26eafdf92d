import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { joinRows, splitMessage } from '../message/join.ts'
import type { MessageContent, MessagePart, ProviderOptions, ToolInvocation } from '../message/message.ts'
import type { MessageRow, RowRole } from '../message/row.ts'
import { storableOutput } from '../message/tool-output.ts'
import { modelMessagesOf, promptOf } from './from-rows.ts'
import { closeOpenCalls } from './open-calls.ts'

const at = new Date('2026-01-02T03:04:05.000Z')
let ids = 0

function row(
  role: RowRole,
  parts: MessagePart[],
  rest: Partial<MessageRow> & { content?: never } = {},
  content: Partial<MessageContent> = {},
): MessageRow {
  const id = `row-${++ids}`
  return { id, messageId: id, role, createdAt: at, content: { format: 2, parts, ...content }, ...rest }
}

function call(id: string, rest: Partial<ToolInvocation> = {}): MessagePart {
  return {
    type: 'tool-invocation',
    toolInvocation: { toolCallId: id, toolName: 'look', args: { at: id }, state: 'call', ...rest },
  }
}

const bytes = (rows: Parameters<typeof promptOf>[0]) => promptOf(rows).map(message => JSON.stringify(message))
/** The rows as they come back from a store. */
const stored = (rows: MessageRow[]): MessageRow[] =>
  (JSON.parse(JSON.stringify(rows)) as MessageRow[]).map(read => ({ ...read, createdAt: new Date(read.createdAt) }))

describe('a row as a model receives it', () => {
  it('has user text and files, with data: and http URLs distinguished', () => {
    const [message] = modelMessagesOf(row('user', [
      { type: 'text', text: 'look', providerMetadata: { anthropic: { cacheControl: { type: 'ephemeral' } } } },
      { type: 'file', data: 'data:image/png;base64,AAEC', mimeType: 'image/png', filename: 'a.png' },
      { type: 'file', data: 'https://example.com/a.pdf', mimeType: 'application/pdf' },
      { type: 'file', data: 'AAEC', mimeType: 'image/png' },
      { type: 'file', data: '', reference: { openai: 'file-1' }, mimeType: 'image/png' },
      { type: 'data-note', data: 1 },
    ], {}, {
      experimental_attachments: [{ url: 'data:text/plain,hi%20you', name: 'n.txt' }],
      providerMetadata: { openai: { a: 1 } },
    }))
    expect(message).toEqual({
      role: 'user',
      content: [
        { type: 'text', text: 'look', providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' } } } },
        { type: 'file', data: { type: 'data', data: 'AAEC' }, mediaType: 'image/png', filename: 'a.png' },
        { type: 'file', data: { type: 'url', url: new URL('https://example.com/a.pdf') }, mediaType: 'application/pdf' },
        { type: 'file', data: { type: 'data', data: 'AAEC' }, mediaType: 'image/png' },
        { type: 'file', data: { type: 'reference', reference: { openai: 'file-1' } }, mediaType: 'image/png' },
        { type: 'file', data: { type: 'data', data: btoa('hi you') }, mediaType: 'text/plain', filename: 'n.txt' },
      ],
      providerOptions: { openai: { a: 1 } },
    })
  })

  it('has the parts of an assistant in order, without those for user interfaces', () => {
    const messages = modelMessagesOf(row('assistant', [
      { type: 'step-start' },
      { type: 'reasoning', reasoning: 'hm', providerMetadata: { anthropic: { signature: 's' } } },
      { type: 'reasoning', reasoning: '' },
      { type: 'text', text: '' },
      { type: 'text', text: 'I look' },
      { type: 'source', source: { sourceType: 'url', id: 's', url: 'https://example.com' } },
      { type: 'file', data: 'AAEC', mimeType: 'image/png', reasoning: true },
      { type: 'custom', kind: 'openai.compaction', providerMetadata: { openai: { itemId: 'x' } } },
      { type: 'error', error: { name: 'Error', message: 'no' } },
      { type: 'data-note', data: 1 },
      call('c1'),
      {
        ...call('c2', { state: 'result', result: [1] }), providerExecuted: true,
        resultProviderMetadata: { openai: { r: 1 } },
      } as MessagePart,
    ]))
    expect(messages).toEqual([{
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'hm', providerOptions: { anthropic: { signature: 's' } } },
        { type: 'text', text: 'I look' },
        { type: 'reasoning-file', data: { type: 'data', data: 'AAEC' }, mediaType: 'image/png' },
        { type: 'custom', kind: 'openai.compaction', providerOptions: { openai: { itemId: 'x' } } },
        { type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: { at: 'c1' } },
        { type: 'tool-call', toolCallId: 'c2', toolName: 'look', input: { at: 'c2' }, providerExecuted: true },
        {
          type: 'tool-result', toolCallId: 'c2', toolName: 'look', output: { type: 'json', value: [1] },
          providerOptions: { openai: { r: 1 } },
        },
      ],
    }])
  })

  it.each<[string, Partial<ToolInvocation>, object]>([
    ['text', { state: 'result', result: 'found' }, { type: 'text', value: 'found' }],
    ['JSON', { state: 'result', result: { a: 1 } }, { type: 'json', value: { a: 1 } }],
    ['nothing', { state: 'result' }, { type: 'json', value: null }],
    ['an error', { state: 'output-error', errorText: 'broke' }, { type: 'error-text', value: 'broke' }],
    [
      'a denial',
      { state: 'output-denied', approval: { approved: false, reason: 'no' } },
      { type: 'execution-denied', reason: 'no' },
    ],
    ['a denial without a reason', { state: 'output-denied' }, { type: 'execution-denied' }],
    [
      'what the tool shows its model',
      { state: 'result', result: 1, modelOutput: { type: 'text', value: 'one' } },
      { type: 'text', value: 'one' },
    ],
  ])('has %s as the outcome of a call', (_, invocation, output) => {
    const part = { ...call('c', invocation), providerMetadata: { openai: { r: 1 } } } as MessagePart
    expect(modelMessagesOf(row('tool', [part]))).toEqual([{
      role: 'tool',
      content: [{ type: 'tool-result', toolCallId: 'c', toolName: 'look', output, providerOptions: { openai: { r: 1 } } }],
    }])
  })

  it('renders signals, shows context as user text and system rows as system messages', () => {
    const signal = row('signal', [{ type: 'text', text: 'a < b' }], { type: 'notification' }, {
      metadata: {
        signal: {
          id: 's', type: 'notification', tagName: 'notification', createdAt: at.toISOString(),
          attributes: { source: 'ci' },
        },
      },
    })
    expect(
      promptOf([
        signal,
        row('context', [], {}, { content: 'recalled' }),
        row('system', [{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }]),
      ]),
    ).toEqual([
      { role: 'user', content: [{ type: 'text', text: '<notification source="ci">a &lt; b</notification>' }] },
      { role: 'user', content: [{ type: 'text', text: 'recalled' }] },
      { role: 'system', content: 'a\nb' },
    ])
  })

  it('is empty for a row without content for a model', () => {
    const nothing: MessagePart[] = [
      { type: 'step-start' },
      { type: 'data-x', data: 1 },
      { type: 'error', error: { name: 'E', message: 'm' } },
    ]
    expect(
      promptOf([
        row('assistant', []),
        row('assistant', nothing),
        row('user', [{ type: 'text', text: '' }]),
        row('tool', [call('c')]),
      ]),
    ).toEqual([])
  })

  it('converts a row object once, and an equal row to an equal message', () => {
    const one = row('user', [{ type: 'text', text: 'x' }])
    expect(modelMessagesOf(one)).toBe(modelMessagesOf(one))
    expect(modelMessagesOf({ ...one })).toEqual(modelMessagesOf(one))
  })
})

const options = fc.option(fc.record({ openai: fc.record({ itemId: fc.string({ maxLength: 4 }) }) }), { nil: undefined })
const withOptions = <P extends MessagePart>(part: fc.Arbitrary<P>): fc.Arbitrary<P> =>
  fc.tuple(part, options).map(([made, providerMetadata]) => (providerMetadata ? { ...made, providerMetadata } : made))
const text = withOptions(fc.record({ type: fc.constant('text' as const), text: fc.string({ maxLength: 8 }) }))
const file = withOptions(fc.record({
  type: fc.constant('file' as const),
  data: fc.constantFrom('AAEC', 'data:image/png;base64,AAEC', 'https://example.com/f', 'gs://bucket/a b'),
  mimeType: fc.constantFrom('image/png', 'text/plain'),
}))
const outputPart: fc.Arbitrary<MessagePart> = fc.oneof(
  text,
  file,
  withOptions(fc.record({ type: fc.constant('reasoning' as const), reasoning: fc.string({ maxLength: 8 }) })),
  withOptions(fc.record({ type: fc.constant('custom' as const), kind: fc.constant('a.b' as const) })),
  fc.constant<MessagePart>({ type: 'data-x', data: { a: 1 } }),
)
const outcome: fc.Arbitrary<Partial<ToolInvocation>> = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }).map(result => ({ state: 'result' as const, result: JSON.parse(JSON.stringify(result)) as null })),
  fc.string().map(errorText => ({ state: 'output-error' as const, errorText })),
  fc.option(fc.string(), { nil: undefined }).map(reason => ({
    state: 'output-denied' as const,
    approval: { approved: false, ...(reason !== undefined && { reason }) },
  })),
  fc.constant({
    state: 'result' as const, result: 1, modelOutput: { type: 'text' as const, value: 'one' },
    transcript: { args: 1, result: 2 },
  }),
)
interface StepOf {
  parts: MessagePart[]
  calls: Array<{ outcome: Partial<ToolInvocation> | undefined; executed: boolean; options: ProviderOptions | undefined }>
  options: ProviderOptions | undefined
  marked: boolean
}
const step: fc.Arbitrary<StepOf> = fc.record({
  parts: fc.array(outputPart, { maxLength: 3 }),
  calls: fc.array(
    fc.record({ outcome: fc.option(outcome, { nil: undefined }), executed: fc.boolean(), options }),
    { maxLength: 3 },
  ),
  options,
  marked: fc.boolean(),
})

function turnRows(steps: StepOf[]): MessageRow[] {
  const messageId = `message-${++ids}`
  return steps.flatMap(({ parts, calls, options: providerMetadata, marked }, index) => {
    const rows: MessageRow[] = []
    const all: MessagePart[] = marked ? [{ type: 'step-start' }, ...parts] : [...parts]
    const results: MessagePart[] = []
    for (const [at, { outcome: over, executed, options: metadata }] of calls.entries()) {
      const id = `call-${index}-${at}`
      if (executed) all.push({
        ...call(id, over), providerExecuted: true, ...(metadata && { resultProviderMetadata: metadata }),
      } as MessagePart)
      else {
        all.push(call(id))
        if (over) results.push({ ...call(id, over), ...(metadata && { providerMetadata: metadata }) } as MessagePart)
      }
    }
    rows.push(row('assistant', all, { messageId }, providerMetadata && { providerMetadata }))
    if (results.length > 0) rows.push(row('tool', results, { messageId }))
    return rows
  })
}

const visible: fc.Arbitrary<MessageRow[]> = fc.oneof(
  fc.tuple(fc.array(fc.oneof(text, file), { maxLength: 3 }), options).map(([parts, providerMetadata]) =>
    [row('user', parts, {}, providerMetadata && { providerMetadata })]),
  fc.string().map(text => [
    row(
      'signal',
      [{ type: 'text', text }],
      { type: 'state' },
      { metadata: { signal: { type: 'state', tagName: 'state' } } },
    ),
  ]),
  fc.array(step, { minLength: 1, maxLength: 4 }).map(turnRows),
)
const context = fc.string().map(recalled => [row('context', [{ type: 'text', text: recalled }])])
const conversation = fc.array(visible, { maxLength: 6 }).map(turns => turns.flat())
const thread = fc.array(fc.oneof(visible, context), { maxLength: 6 }).map(turns => turns.flat())

describe('a prompt', () => {
  it('[P1.1] has the same bytes for the same rows, also after they went through a store', () => {
    fc.assert(fc.property(thread, rows => {
      expect(bytes(stored(rows))).toEqual(bytes(rows))
      expect(bytes(closeOpenCalls(stored(rows)))).toEqual(bytes(closeOpenCalls(rows)))
    }))
  })

  it('[P1.1] keeps the bytes of a tool’s model output, files and URLs too', () => {
    const output = {
      type: 'content' as const,
      value: [
        { type: 'text' as const, text: 'see' },
        {
          type: 'file' as const, data: { type: 'url' as const, url: new URL('https://example.com/a.png') },
          mediaType: 'image/png',
        },
        { type: 'file' as const, data: { type: 'data' as const, data: new Uint8Array([0, 1, 2]) }, mediaType: 'image/png' },
      ],
    }
    const rows = [row('tool', [call('c', { state: 'result', result: 1, modelOutput: storableOutput(output) })])]
    const [message] = promptOf(stored(rows))
    expect(message).toEqual(promptOf(rows)[0])
    expect(message?.content[0]).toHaveProperty('output.value[1].data.url', expect.any(URL))
    expect(message?.content[0]).toMatchObject({ output: { value: [
      { type: 'text', text: 'see' },
      { data: { type: 'url', url: new URL('https://example.com/a.png') } },
      { data: { type: 'data', data: 'AAEC' } },
    ] } })
  })

  it('[P1.2] keeps its bytes when a row is appended', () => {
    fc.assert(fc.property(thread, fc.nat(), (rows, cut) => {
      const shorter = rows.slice(0, rows.length === 0 ? 0 : cut % rows.length)
      const before = bytes(shorter)
      expect(bytes(rows).slice(0, before.length)).toEqual(before)
      const closed = bytes(closeOpenCalls(shorter))
      expect(bytes(closeOpenCalls(rows)).slice(0, closed.length)).toEqual(closed)
    }))
  })

  it('is the same for joined messages and for their rows', () => {
    fc.assert(fc.property(conversation, rows => {
      const messages = joinRows(rows)
      expect(bytes(messages)).toEqual(bytes(rows))
      expect(bytes(messages.flatMap(splitMessage))).toEqual(bytes(rows))
    }))
  })

  it('is equal for messages that were split into rows and joined again', () => {
    fc.assert(fc.property(conversation, rows => {
      const messages = joinRows(rows)
      expect(joinRows(messages.flatMap(splitMessage))).toEqual(messages)
    }))
  })
})
