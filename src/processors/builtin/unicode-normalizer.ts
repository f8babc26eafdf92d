import { checkNames } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import type { Message } from '../../message/message.ts'
import type { Processor, ProcessInputArgs } from '../processor.ts'
import { checkFlag } from './option-checks.ts'
import { withAllTexts } from './texts.ts'

/** The options of `UnicodeNormalizer`. */
export interface UnicodeNormalizerOptions {
  /** `NFC` composes letters and accents. `NFKC` also replaces wide, circled and stylised letters by plain ones. Defaults to `NFC`. */
  form?: 'NFC' | 'NFKC'
  /** Removes control and invisible characters: zero widths, direction overrides, tag characters. Defaults to true. */
  stripControl?: boolean
  /** Replaces several blanks by one and more than two line breaks by two, and trims. Defaults to false. */
  collapseWhitespace?: boolean
  /** Keeps emoji unchanged, with the invisible characters that some contain. Defaults to true. */
  preserveEmoji?: boolean
}

/**
 * Normalizes input that looks the same to the same text, so that filters and models read what people see. Applies to all input, also
 * during a run.
 *
 * It never creates a tag: angle brackets of other widths are kept, and the name after a bracket is only normalized to `NFC`.
 *
 * @example new Agent({ …, inputProcessors: [new UnicodeNormalizer({ form: 'NFKC' })] })
 */
export class UnicodeNormalizer implements Processor<'unicode-normalizer'> {
  readonly id = 'unicode-normalizer'
  readonly #options: Required<UnicodeNormalizerOptions>

  constructor(options: UnicodeNormalizerOptions = {}) {
    checkNames('UnicodeNormalizer', options, ['form', 'stripControl', 'collapseWhitespace', 'preserveEmoji'])
    const { form = 'NFC', stripControl = true, collapseWhitespace = false, preserveEmoji = true } = options
    if (form !== 'NFC' && form !== 'NFKC') {
      const message = `UnicodeNormalizer takes the form 'NFC' or 'NFKC', not ${JSON.stringify(form)}.`
      throw new HeedError('invalid_argument', message, { details: { form } })
    }
    const flags = { stripControl, collapseWhitespace, preserveEmoji }
    for (const [name, value] of Object.entries(flags)) checkFlag('UnicodeNormalizer', name, value)
    this.#options = { form, stripControl, collapseWhitespace, preserveEmoji }
  }

  processInput({ messages }: ProcessInputArgs): Message[] | undefined {
    const normalized = messages.map((message) => {
      // A tag may be spread over the parts of a message.
      let inTag = false
      return withAllTexts([message], (text) => {
        const stripped = this.#stripped(text)
        const result = this.#normalized(stripped, inTag)
        inTag = opensTag(stripped, inTag)
        return this.#options.collapseWhitespace ? collapsed(result) : result
      })?.[0] ?? message
    })
    return normalized.every((message, index) => message === messages[index]) ? undefined : normalized
  }

  #stripped(text: string): string {
    if (!this.#options.stripControl) return text
    if (!this.#options.preserveEmoji) return text.replace(invisible, '')
    return aroundEmoji(text, (plain) => plain.replace(invisible, ''))
  }

  #normalized(text: string, inTag: boolean): string {
    const { form, preserveEmoji } = this.#options
    if (form === 'NFC') return text.normalize('NFC')
    const name = inTag ? (/^[\s/]*[^\s<>/]*/u.exec(text)?.[0] ?? '') : ''
    const rest = preserveEmoji ? aroundEmoji(text.slice(name.length), compatible) : compatible(text.slice(name.length))
    return name.normalize('NFC') + rest
  }
}

/**
 * Control characters other than tabs and line breaks; characters without a glyph. Joiners stay between letters of the scripts that need
 * them. The check for forged tags ignores all of these too.
 */
const invisible = new RegExp([
  String.raw`[[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]`
    + String.raw`--[\t-\r\u0600-\u0605\u06DD\u070F\u0890\u0891\u08E2\u{110BD}\u{110CD}\u200C\u200D]]`,
  String.raw`(?<![[\p{L}\p{M}]--\p{ASCII}])[\u200C\u200D]`,
  String.raw`[\u200C\u200D](?![\p{L}--\p{ASCII}])`,
].join('|'), 'gv')

const emoji = /\p{RGI_Emoji}/gv

function aroundEmoji(text: string, change: (plain: string) => string): string {
  let result = ''
  let end = 0
  for (const match of text.matchAll(emoji)) {
    result += change(text.slice(end, match.index)) + match[0]
    end = match.index + match[0].length
  }
  return end === 0 ? change(text) : result + change(text.slice(end))
}

// Brackets with the name after them, and the characters that NFKC would replace by a bracket.
const tagLike = /<[\s/]*[^\s<>/]*|[\uFE64\uFE65\uFF1C\uFF1E]/gu

function compatible(text: string): string {
  let result = ''
  let end = 0
  for (const match of text.matchAll(tagLike)) {
    result += text.slice(end, match.index).normalize('NFKC') + match[0].normalize('NFC')
    end = match.index + match[0].length
  }
  return result + text.slice(end).normalize('NFKC')
}

function opensTag(text: string, inTag: boolean): boolean {
  return /<[\s/]*[^\s<>/]*$/u.test(text) || (inTag && /^[\s/]*[^\s<>/]*$/u.test(text))
}

function collapsed(text: string): string {
  return text.replace(/[^\S\n]+/g, ' ').replace(/ ?\n ?/g, '\n').replace(/\n{3,}/g, '\n\n').trim()
}
