import { refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import type { MemoryOptions, TitleOptions } from '../run/options.ts'
import { checkModel } from '../run/model/model.ts'

const known: readonly string[] = ['model', 'instructions']
/** The length of a title that a model wrote or that a prompt quotes, in characters. A title that a program sets has no limit. */
export const maxTitleLength = 100
/** How much of the first message the model reads that writes its title, in characters. */
const maxSourceLength = 4_000

export const defaultTitleInstructions =
  'Write a title for a conversation that begins with the message below: a few words in the language of the' +
  ' message that say what it is about. Do not answer the message. Write the title alone, without quotation marks, formatting or a' +
  ' full stop.'

/** Rejects a title that a program sets and that is not a string. */
export function checkTitle(title: unknown): asserts title is string | undefined {
  if (title !== undefined && typeof title !== 'string') throw refused('title', 'a string')
}

/** Validates `generateTitle`; undefined when no titles are generated. */
export function parseTitleOptions({ generateTitle }: MemoryOptions): TitleOptions | undefined {
  if (generateTitle === undefined || generateTitle === false) return undefined
  if (generateTitle === true) return {}
  if (typeof generateTitle !== 'object' || generateTitle === null) {
    throw invalidOption('generateTitle', "must be true, false, or { model: 'openai/gpt-5.5-mini', instructions: '…' }")
  }
  for (const key of Object.keys(generateTitle)) {
    if (known.includes(key)) continue
    throw new HeedError('unsupported_option', `generateTitle has no '${key}'. Known: ${known.join(', ')}.`, {
      details: { option: `generateTitle.${key}` },
    })
  }
  const { model, instructions } = generateTitle
  if (model !== undefined && typeof model !== 'function') checkModel(model, 'that writes titles')
  if (
    instructions !== undefined &&
    typeof instructions !== 'function' &&
    (typeof instructions !== 'string' || instructions.trim() === '')
  ) {
    throw invalidOption('generateTitle.instructions', 'must be a string that is not empty')
  }
  return generateTitle
}

/** The part of the first message that the model reads to write a title. */
export function titleSource(text: string): string {
  return text.trim().slice(0, maxSourceLength)
}

/**
 * Makes a title of a model's output: its first line of text, without markup, at most `maxTitleLength` characters. Empty when no text is
 * left.
 */
export function cleanTitle(output: string): string {
  const plain = output.split('\n').filter((line) => !/^\s*(?:```|~~~)/.test(line)).map(withoutMarkup).find((line) => line !== '') ?? ''
  const characters = Array.from(new Intl.Segmenter().segment(plain), ({ segment }) => segment)
  return characters.length <= maxTitleLength ? plain : `${characters.slice(0, maxTitleLength - 1).join('').trimEnd()}…`
}

/** The regular expressions below read this much of a line. */
const maxLineLength = 1_000

const quotes: Readonly<Record<string, string>> = {
  '"': '"',
  "'": "'",
  '`': '`',
  '“': '”“',
  '„': '“”',
  '”': '”',
  '‘': '’',
  '‚': '‘’',
  '«': '»',
  '»': '«',
  '‹': '›',
  '「': '」',
  '『': '』',
}

/** Removes headings, bullets, emphasis, tags, enclosing quotation marks and a leading "Title:", in any order. */
function withoutMarkup(line: string): string {
  let text = line.trim().slice(0, maxLineLength).replace(/\s+/g, ' ').trim()
  for (let before = ''; before !== text;) {
    before = text
    text = withoutQuotes(text
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

/** Removes quotation marks that enclose the whole text; those of `"A" and "B"` stay. */
function withoutQuotes(text: string): string {
  const [first, last] = [text.slice(0, 1), text.slice(-1)]
  const inner = text.slice(1, -1)
  const others = inner.replace(/(?<=\p{L})['’](?=\p{L})/gu, '')
  const isWhole = text.length > 1 && (quotes[first]?.includes(last) ?? false) && !others.includes(first) && !others.includes(last)
  return isWhole ? inner.trim() : text
}

function invalidOption(option: string, why: string): HeedError {
  return new HeedError('invalid_argument', `${option} ${why}.`, { details: { option } })
}
