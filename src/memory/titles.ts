import { HeedError } from '../base/errors.ts'
import type { MemoryOptions, TitleOptions } from '../run/options.ts'
import { checkModel } from '../run/model/model.ts'

const known: readonly string[] = ['model', 'instructions']
const longestTitle = 100
/** A title needs no more of what was said. */
const longestWords = 4_000

export const defaultTitleInstructions = 'Write a title for a conversation that begins with the message below: a few words in the language of the message that say'
  + ' what it is about. Do not answer the message. Write the title alone, without quotation marks, formatting or a full stop.'

/** How titles are made; nothing when they are not. Refuses by name what can't be meant. */
export function titleOptionsIn({ generateTitle }: MemoryOptions): TitleOptions | undefined {
  if (generateTitle === undefined || generateTitle === false) return undefined
  if (generateTitle === true) return {}
  if (typeof generateTitle !== 'object' || generateTitle === null) throw invalid('generateTitle', "must be true, false, or { model: 'openai/gpt-5.5-mini', instructions: '…' }")
  for (const key of Object.keys(generateTitle)) {
    if (known.includes(key)) continue
    throw new HeedError('unsupported_option', `generateTitle has no '${key}'. Known: ${known.join(', ')}.`, { details: { option: `generateTitle.${key}` } })
  }
  const { model, instructions } = generateTitle
  if (model !== undefined && typeof model !== 'function') checkModel(model, 'that writes titles')
  if (instructions !== undefined && typeof instructions !== 'function' && (typeof instructions !== 'string' || instructions.trim() === '')) {
    throw invalid('generateTitle.instructions', 'must be a text that is not empty')
  }
  return generateTitle
}

/** As much of the first message as a title is made of. */
export function titleSubject(words: string): string {
  return words.trim().slice(0, longestWords)
}

/** What a model wrote, as a title: one line without the marks around it, not too long. Empty when nothing is left. */
export function titleOf(written: string): string {
  const plain = written.split('\n').filter((line) => !/^\s*(?:```|~~~)/.test(line)).map(unmarked).find((line) => line !== '') ?? ''
  const characters = Array.from(new Intl.Segmenter().segment(plain), ({ segment }) => segment)
  return characters.length <= longestTitle ? plain : `${characters.slice(0, longestTitle - 1).join('').trimEnd()}…`
}

/** Marks are looked for in as much of a line. */
const longestLine = 1_000

const quotes: Readonly<Record<string, string>> = { '"': '"', "'": "'", '`': '`', '“': '”“', '„': '“”', '”': '”', '‘': '’', '‚': '‘’', '«': '»', '»': '«', '‹': '›', '「': '」', '『': '』' }

/** A line without headings, bullets, emphasis, tags, quotation marks around all of it, and the word "Title:" before it, in whatever order they are. */
function unmarked(line: string): string {
  let text = line.trim().slice(0, longestLine).replace(/\s+/g, ' ').trim()
  for (let before = ''; before !== text;) {
    before = text
    text = unquoted(text
      .replace(/^#+(?: |$)/, '').replace(/ #+$/, '')
      .replace(/^(?:[-•>] |\* (?!.*\*$))/, '')
      .replace(/^<(\w+)>(.*)<\/\1>$/, '$2')
      .replace(/(\*\*|__)(?=\S)(.*?\S)\1/g, '$2')
      .replace(/(?<![\w*\\])([*_])(?=[^\s*_])(.*?[^\s*_])\1(?![\w*])/g, '$2')
      .replace(/^[*_]+$/, '')
      .replace(/^(?:title|titel|titre|título|titolo|titulo) ?[:：] ?/iu, '')
      .trim())
  }
  return text
}

/** What is in quotation marks as a whole; `"A" and "B"` is not. */
function unquoted(text: string): string {
  const [first, last] = [text.slice(0, 1), text.slice(-1)]
  const inner = text.slice(1, -1)
  const others = inner.replace(/(?<=\p{L})['’](?=\p{L})/gu, '')
  const isWhole = text.length > 1 && (quotes[first]?.includes(last) ?? false) && !others.includes(first) && !others.includes(last)
  return isWhole ? inner.trim() : text
}

function invalid(option: string, why: string): HeedError {
  return new HeedError('invalid_argument', `${option} ${why}.`, { details: { option } })
}
