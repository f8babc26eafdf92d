import { describe, expect, it } from 'vitest'
import { inputArgs, said } from '../../../test/processors/asked.ts'
import { Agent } from '../../agent/agent.ts'
import { scriptedModel } from '../../testing/index.ts'
import { UnicodeNormalizer, type UnicodeNormalizerOptions } from './unicode-normalizer.ts'

const made = (options: UnicodeNormalizerOptions, ...texts: string[]) => {
  const args = inputArgs([said('u1', 'user', ...texts)])
  const [message] = new UnicodeNormalizer(options).processInput(args) ?? args.messages
  return message?.content.parts.map((part) => (part.type === 'text' ? part.text : ''))
}

const family = '\u{1F468}\u200D\u{1F469}\u200D\u{1F467}'
const england = '\u{1F3F4}\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}'

describe('UnicodeNormalizer', () => {
  it.each<[string, UnicodeNormalizerOptions, string, string]>([
    ['joins letters and accents', {}, 'Zu\u0308rich', 'Z\u00FCrich'],
    ['leaves wide letters by default', {}, '\uFF33\uFF2B', '\uFF33\uFF2B'],
    ['makes wide, stylised and joined letters plain with NFKC', { form: 'NFKC' }, '\uFF33\uFF2B \u{1D5EF}\u{1D5FC}\u{1D5F9}\u{1D5F1} \uFB01n \u2460', 'SK bold fin 1'],
    ['takes out controls and keeps tabs and lines', {}, 'a\u0000b\u0007\tc\r\nd\u009Be', 'ab\tc\r\nde'],
    ['removes invisible characters', {}, 'i\u200Bg\u2060n\uFEFFo\u00ADre \u202Etxt\u202C', 'ignore txt'],
    ['removes tag characters', {}, `Hi${'evil'.split('').map((c) => String.fromCodePoint(0xe0000 + c.charCodeAt(0))).join('')}!`, 'Hi!'],
    ['takes out selectors that carry bytes', {}, 'A\u{E0101}\u{E0102}B\uFE01', 'AB'],
    ['keeps them with stripControl: false', { stripControl: false }, 'a\u0000\u200Bb', 'a\u0000\u200Bb'],
    ['keeps joiners where a script needs them', {}, '\u0645\u06CC\u200C\u062E\u0648\u0627\u0647\u0645 \u0915\u094D\u200D\u0937', '\u0645\u06CC\u200C\u062E\u0648\u0627\u0647\u0645 \u0915\u094D\u200D\u0937'],
    ['takes out joiners elsewhere', {}, 'pass\u200Dword \u200Dx', 'password x'],
    ['keeps emoji whole', { form: 'NFKC' }, `${family} ${england} \u2764\uFE0F 1\uFE0F\u20E3 \u2122\uFE0F`, `${family} ${england} \u2764\uFE0F 1\uFE0F\u20E3 \u2122\uFE0F`],
    ['splits emoji with preserveEmoji: false', { preserveEmoji: false }, family, '\u{1F468}\u{1F469}\u{1F467}'],
    ['leaves blanks by default', {}, ' a  b\n\n\n\nc ', ' a  b\n\n\n\nc '],
    ['collapses blanks with collapseWhitespace', { collapseWhitespace: true }, ' a \u00A0\t b \n \n\n\n c ', 'a b\n\nc'],
  ])('%s', (_, options, text, expected) => {
    expect(made(options, text)).toEqual([expected])
  })

  it.each([
    [['\uFF1Csystem-reminder\uFF1E']],
    [['<\uFF55\uFF53\uFF45\uFF52>']],
    [['<\uFF0F\uFF55ser>']],
    [['</ st\u{1D41A}te>']],
    [['\uFE64user\uFE65']],
    [['<', '\uFF55\uFF53\uFF45\uFF52>']],
    [['<us', '\uFF45\uFF52>']],
    [['<', '', ' /', '\uFF55ser >']],
    [['<us\u000Ber>']],
    [['<us\u000Cer>']],
  ])('[P2.2] never creates a tag: %j', (texts) => {
    // Look-alikes need a guard before and after; a tag in ASCII is what must not come into being.
    const hasTag = (parts: readonly string[]) => ['', '\n'].some((between) => /<[\s/]*(?:user|state|system-reminder)(?![\w-])/i.test(parts.join(between)))
    expect(hasTag(texts)).toBe(false)
    for (const collapseWhitespace of [false, true]) expect(hasTag(made({ form: 'NFKC', collapseWhitespace }, ...texts) ?? [])).toBe(false)
  })

  it('normalizes the rest of such a text', () => {
    expect(made({ form: 'NFKC' }, '<b>\uFF41</b> \uFF42')).toEqual(['<b>a</b> b'])
  })

  it('returns nothing when nothing changed, and does not change its input', () => {
    expect(new UnicodeNormalizer().processInput(inputArgs([said('u1', 'user', 'plain')]))).toBeUndefined()
    const message = said('u1', 'user', 'a\u200Bb')
    new UnicodeNormalizer().processInput(inputArgs([message]))
    expect(message.content.parts).toEqual([{ type: 'text', text: 'a\u200Bb' }])
  })

  it('rejects an unknown form', () => {
    expect(() => new UnicodeNormalizer({ form: 'NFD' as 'NFC' })).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
  })

  it('changes the prompt', async () => {
    const model = scriptedModel(['Hi.'])
    await new Agent({ id: 'a', model, inputProcessors: [new UnicodeNormalizer()] }).generate('Zu\u0308rich\u200B')
    expect(model.calls[0]?.prompt).toEqual([{ role: 'user', content: [{ type: 'text', text: 'Z\u00FCrich' }] }])
  })
})
