import { HeedError } from '../errors.ts'
import type { MemoryOptions, TitleOptions } from '../run/options.ts'
import { checkModel } from '../run/model.ts'

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

/** What a model wrote, as a title: one line, unquoted, not too long. Empty when nothing is left. */
export function titleOf(written: string): string {
  const line = written.split('\n').map((text) => text.trim()).find((text) => text !== '') ?? ''
  const plain = line.replace(/^#+\s*/, '').replace(/^(["'“”„«*_`])+|(["'“”«»*_`])+$/gu, '').replace(/\s+/g, ' ').trim()
  const characters = Array.from(new Intl.Segmenter().segment(plain), ({ segment }) => segment)
  return characters.length <= longestTitle ? plain : `${characters.slice(0, longestTitle - 1).join('').trimEnd()}…`
}

function invalid(option: string, why: string): HeedError {
  return new HeedError('invalid_argument', `${option} ${why}.`, { details: { option } })
}
