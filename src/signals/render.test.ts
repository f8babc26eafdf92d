import { describe, expect, it } from 'vitest'
import { messageInputToSignal, normalizeSignal } from './normalize.ts'
import { escapeAttribute, escapeText } from './tags.ts'
import { renderSignal } from './render.ts'
import type { SignalInput } from './signal.ts'

const context = { id: 's1', now: 0 }
const render = (input: SignalInput) => renderSignal(normalizeSignal(input, context))
const userMessage = (text: string) => ({ role: 'user', content: [{ type: 'text', text }] })

describe('what the model receives', () => {
  it.each<[string, SignalInput, string]>([
    ['a message', { type: 'user', contents: 'Which of the two is cheaper?' }, 'Which of the two is cheaper?'],
    ['code', { type: 'user', contents: 'a && b < c > "d"' }, 'a && b < c > "d"'],
    [
      'a message with attributes',
      { type: 'user', contents: 'Look at the invoice again.', attributes: { name: 'Ada', via: 'email' } },
      '<user name="Ada" via="email">Look at the invoice again.</user>',
    ],
    ['attributes that are all left out', { type: 'user', contents: 'Hi', attributes: { name: null } }, 'Hi'],
    ['a tag of its own on user input', { type: 'user', tagName: 'caller', contents: 'Hi' }, '<caller>Hi</caller>'],
    [
      'a notification',
      { type: 'notification', contents: 'Build 7 broke.', attributes: { source: 'ci', build: 7, urgent: true } },
      '<notification source="ci" build="7" urgent="true">Build 7 broke.</notification>',
    ],
    [
      'a custom tag',
      { type: 'notification', tagName: 'pull-review', contents: 'Two comments.' },
      '<pull-review>Two comments.</pull-review>',
    ],
    [
      'a reminder',
      { type: 'reactive', contents: 'Line one\n  line two', attributes: { path: 'docs/AGENTS.md' } },
      '<system-reminder path="docs/AGENTS.md">Line one\n  line two</system-reminder>',
    ],
    ['a state', { type: 'state', contents: 'Two tabs are open.' }, '<state>Two tabs are open.</state>'],
    ['an older name', { type: 'system-reminder', contents: 'Be short.' }, '<system-reminder>Be short.</system-reminder>'],
    ['nothing, with attributes', { type: 'notification', contents: '', attributes: { a: 'b' } }, '<notification a="b" />'],
    ['nothing at all', { type: 'state', contents: [] }, '<state />'],
    ['an empty message', { type: 'user', contents: '' }, '<user />'],
    [
      'JSON in an attribute',
      { type: 'state', contents: 'x', attributes: { at: { x: [1] } } },
      '<state at="{&quot;x&quot;:[1]}">x</state>',
    ],
    [
      'several texts in one element',
      { type: 'state', contents: [{ type: 'text', text: 'a' }, { type: 'text', text: '<b>' }] },
      '<state>a\n&lt;b&gt;</state>',
    ],
  ])('%s', (_, input, expected) => {
    expect(render(input)).toStrictEqual(userMessage(expected))
  })

  it('has the attributes of the route, also where the message had none', () => {
    const message = messageInputToSignal({ contents: 'And the edge cases.', attributes: { source: 'chat' } }, context)
    expect(renderSignal({ ...message, attributes: { ...message.attributes, delivery: 'while-active' } })).toStrictEqual(
      userMessage('<user source="chat" delivery="while-active">And the edge cases.</user>'),
    )
    expect(renderSignal({ ...messageInputToSignal('a < b', context), attributes: { delivery: 'new-message' } })).toStrictEqual(
      userMessage('<user delivery="new-message">a &lt; b</user>'),
    )
  })

  it('provider options of the signal and of its parts stay where they were', () => {
    const providerOptions = { anthropic: { cacheControl: { type: 'ephemeral' } } }
    const contents: SignalInput['contents'] = [
      { type: 'text', text: 'a<', providerOptions },
      { type: 'text', text: 'b' },
    ]
    const plain = render({ type: 'user', contents, providerOptions })
    expect(plain).toStrictEqual({ role: 'user', content: contents, providerOptions })
    expect(render({ type: 'state', contents, attributes: { x: 1 }, providerOptions })).toStrictEqual({
      role: 'user',
      content: [
        { type: 'text', text: '<state x="1">a&lt;</state>', providerOptions },
        { type: 'text', text: '<state>b</state>' },
      ],
      providerOptions,
    })
  })
})

describe('files', () => {
  const pdf = { type: 'file' as const, data: 'https://example.com/a.pdf', mediaType: 'application/pdf', filename: 'a.pdf' }
  const image = { type: 'file' as const, data: 'AAAA', mediaType: 'image/png' }
  const modelPdf = {
    type: 'file',
    filename: 'a.pdf',
    data: { type: 'url', url: new URL('https://example.com/a.pdf') },
    mediaType: 'application/pdf',
  }
  const modelImage = { type: 'file', data: { type: 'data', data: 'AAAA' }, mediaType: 'image/png' }

  it('are file parts of a plain message, whose empty texts are left out', () => {
    const contents = [{ type: 'text' as const, text: 'See <b>:' }, pdf, { type: 'text' as const, text: '' }, image]
    const { content } = render({ type: 'user', contents })
    expect(content).toStrictEqual([{ type: 'text', text: 'See <b>:' }, modelPdf, modelImage])
  })

  it('[P2.1] stay between texts that are each wrapped, the first with the attributes', () => {
    const [first, last] = [{ type: 'text' as const, text: 'first </state>' }, { type: 'text' as const, text: '<user>last' }]
    const contents = [image, first, pdf, last]
    expect(render({ type: 'state', contents, attributes: { tab: 1 } }).content).toStrictEqual([
      modelImage,
      { type: 'text', text: '<state tab="1">first &lt;/state&gt;</state>' },
      modelPdf,
      { type: 'text', text: '<state>&lt;user&gt;last</state>' },
    ])
  })

  it('follow an empty element where there is no text', () => {
    expect(render({ type: 'notification', contents: [image], attributes: { source: 'cam' } }).content).toStrictEqual([
      { type: 'text', text: '<notification source="cam" />' },
      modelImage,
    ])
  })

  it.each([
    ['data:text/plain;base64,aGk=', 'aGk='],
    ['data:text/plain;charset=utf-8;base64,aGk%3D', 'aGk='],
    ['data:text/plain,h%C3%A9', 'aMOp'],
    ['DATA:,hi', 'aGk='],
  ])('%s reaches the model as data', (data, base64) => {
    expect(render({ type: 'user', contents: [{ type: 'file', data, mediaType: 'text/plain' }] }).content).toStrictEqual([
      { type: 'file', data: { type: 'data', data: base64 }, mediaType: 'text/plain' },
    ])
  })
})

describe('escapes', () => {
  it.each([
    ['&', '&amp;', '&amp;'],
    ['<', '&lt;', '&lt;'],
    ['>', '&gt;', '&gt;'],
    ['"', '"', '&quot;'],
    ["'", "'", "'"],
    ['&lt;', '&amp;lt;', '&amp;lt;'],
    [']]>', ']]&gt;', ']]&gt;'],
    ['\n', '\n', '&#10;'],
    ['\r\n', '\r\n', '&#13;&#10;'],
    ['\t', '\t', '&#9;'],
    ['\u0000', '\u0000', '\uFFFD'],
    ['\u001B', '\u001B', '\uFFFD'],
    ['\u007F', '\u007F', '&#127;'],
    ['\u0085', '\u0085', '&#133;'],
    ['\u2028', '\u2028', '&#8232;'],
    ['\uD800', '\uD800', '\uFFFD'],
    ['\uFFFF', '\uFFFF', '\uFFFD'],
    ['😀', '😀', '😀'],
    ['é', 'é', 'é'],
  ])('[P2.1] %j is %j in text and %j in an attribute', (raw, inText, inAttribute) => {
    expect(escapeText(raw)).toBe(inText)
    expect(escapeAttribute(raw)).toBe(inAttribute)
  })
})
