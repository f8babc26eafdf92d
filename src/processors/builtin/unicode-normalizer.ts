import { checkNames } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import type { Message } from '../../message/message.ts'
import { checkFlag } from './option-kinds.ts'
import type { Processor, ProcessInputArgs } from '../processor.ts'
import { withAllTexts } from './texts.ts'

export interface UnicodeNormalizerOptions {
  /** `NFC` joins letters and their accents. `NFKC` also makes plain letters of wide, circled and stylised ones. Defaults to `NFC`. */
  form?: 'NFC' | 'NFKC'
  /** Takes out control characters and what nobody sees: zero widths, direction overrides, tag characters. Defaults to true. */
  stripControl?: boolean
  /** Makes one blank of several, at most two line breaks of many, and trims. Defaults to false. */
  collapseWhitespace?: boolean
  /** Leaves emoji as they are, with the invisible characters that some are made of. Defaults to true. */
  preserveEmoji?: boolean
}

/**
 * Gives one form to input that looks the same: what filters and models read is then what people see. Works on every text that
 * enters, also in the middle of a run.
 *
 * It never makes a tag of something that was none: angle brackets of other widths stay what they are, and the name that follows a
 * bracket is only brought to `NFC`.
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
      throw new HeedError('invalid_argument', `UnicodeNormalizer takes the form 'NFC' or 'NFKC', not ${JSON.stringify(form)}.`, { details: { form } })
    }
    for (const [name, value] of Object.entries({ stripControl, collapseWhitespace, preserveEmoji })) checkFlag('UnicodeNormalizer', name, value)
    this.#options = { form, stripControl, collapseWhitespace, preserveEmoji }
  }

  processInput({ messages }: ProcessInputArgs): Message[] | undefined {
    const made = messages.map((message) => {
      // A tag may be spread over the parts of a message.
      let inTag = false
      return withAllTexts([message], (text) => {
        const stripped = this.#stripped(text)
        const normalised = this.#normalised(stripped, inTag)
        inTag = opensTag(stripped, inTag)
        return this.#options.collapseWhitespace ? collapsed(normalised) : normalised
      })?.[0] ?? message
    })
    return made.every((message, index) => message === messages[index]) ? undefined : made
  }

  #stripped(text: string): string {
    if (!this.#options.stripControl) return text
    if (!this.#options.preserveEmoji) return text.replace(unseen, '')
    return aroundEmoji(text, (plain) => plain.replace(unseen, ''))
  }

  #normalised(text: string, inTag: boolean): string {
    const { form, preserveEmoji } = this.#options
    if (form === 'NFC') return text.normalize('NFC')
    const name = inTag ? (/^[\s/]*[^\s<>/]*/u.exec(text)?.[0] ?? '') : ''
    const rest = preserveEmoji ? aroundEmoji(text.slice(name.length), compatible) : compatible(text.slice(name.length))
    return name.normalize('NFC') + rest
  }
}

/**
 * Controls other than the usual blanks; characters without a glyph. The joiners stay between letters of the scripts that are written
 * with them. All of it is among what the guard against forged tags looks through.
 */
const unseen =
  /[[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]--[\t-\r\u0600-\u0605\u06DD\u070F\u0890\u0891\u08E2\u{110BD}\u{110CD}\u200C\u200D]]|(?<![[\p{L}\p{M}]--\p{ASCII}])[\u200C\u200D]|[\u200C\u200D](?![\p{L}--\p{ASCII}])/gv

const emoji = /\p{RGI_Emoji}/gv

function aroundEmoji(text: string, change: (plain: string) => string): string {
  let made = ''
  let end = 0
  for (const found of text.matchAll(emoji)) {
    made += change(text.slice(end, found.index)) + found[0]
    end = found.index + found[0].length
  }
  return end === 0 ? change(text) : made + change(text.slice(end))
}

// Brackets and the name after one, and the characters that NFKC would make a bracket of.
const tagLike = /<[\s/]*[^\s<>/]*|[\uFE64\uFE65\uFF1C\uFF1E]/gu

function compatible(text: string): string {
  let made = ''
  let end = 0
  for (const found of text.matchAll(tagLike)) {
    made += text.slice(end, found.index).normalize('NFKC') + found[0].normalize('NFC')
    end = found.index + found[0].length
  }
  return made + text.slice(end).normalize('NFKC')
}

function opensTag(text: string, inTag: boolean): boolean {
  return /<[\s/]*[^\s<>/]*$/u.test(text) || (inTag && /^[\s/]*[^\s<>/]*$/u.test(text))
}

function collapsed(text: string): string {
  return text.replace(/[^\S\n]+/g, ' ').replace(/ ?\n ?/g, '\n').replace(/\n{3,}/g, '\n\n').trim()
}
