/** English words without a topic of their own. Those of other languages weigh little because nearly every passage contains them. */
const stopWords = new Set(
  ('a an the of to in on at for and or but is are was were be been being do does did has have had i you he she it we they me him'
  + ' her us them my your his its our their this that these those with as by from about into over after before what which who'
  + ' whom whose when where why how not no so if than then there here will would can could should may might just also very'
  + ' really some any all'
  // What an apostrophe leaves of "what's", "don't", "I'll" and others.
  + ' s t d m ll re ve don doesn didn isn aren wasn weren hasn hadn wouldn couldn shouldn'
  // The same without the apostrophe.
  + ' whats whos wheres whens hows thats theres dont doesnt didnt isnt arent wasnt werent hasnt havent hadnt wont wouldnt couldnt shouldnt'
  + ' im ive youre theyre'
  // Courtesy.
  + ' please pls thanks hello hi hey ok okay sorry').split(' '),
)

const runs = /[\p{L}\p{N}\p{M}]+/gu
/** Scripts that put no spaces between words. */
const unspaced = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u
const english = /^[a-z]+$/
/** Longer runs are mostly encoded data. The index keeps their beginning, so that a pasted id is still found. */
const maxTermLength = 40

const endings: ReadonlyArray<readonly [string, string]> = [
  ['sses', 'ss'], ['ies', 'y'], ['ing', ''], ['edly', ''], ['ed', ''], ['ly', ''], ['es', 'e'], ['s', ''],
]

/**
 * The terms of a text, as the index stores them and a search looks them up: lower case, without accents, English words stemmed and without
 * stop words. Scripts without spaces are split into pairs of characters.
 */
export function extractTerms(text: string): string[] {
  const terms: string[] = []
  for (const [run] of withoutAccents(text).matchAll(runs)) {
    if (unspaced.test(run)) terms.push(...characterPairs(run))
    else if (!english.test(run)) terms.push(run.slice(0, maxTermLength))
    else if (!stopWords.has(run)) terms.push(stem(run.slice(0, maxTermLength)))
  }
  return terms
}

function withoutAccents(text: string): string {
  // Only these marks: those of other scripts are part of the word.
  return text.toLowerCase().normalize('NFKD').replace(/[\u0300-\u036f]/g, '')
}

function characterPairs(run: string): string[] {
  const characters = Array.from(run)
  if (characters.length < 2) return characters
  return characters.slice(1).map((character, index) => `${characters[index]}${character}`)
}

/** A term of a question, with the terms by which passages are found for it: irregular forms are terms of their own in the index. */
export interface SearchTerm {
  term: string
  forms: readonly string[]
}

/** The terms to search for, each once: "Where did we go?" also finds "went", and "two" finds "2". */
export function searchTerms(text: string): SearchTerm[] {
  const found = new Map<string, SearchTerm>()
  for (const own of extractTerms(text)) {
    const forms = irregularForms.get(own) ?? [own]
    const term = forms[0] ?? own
    if (!found.has(term)) found.set(term, { term, forms })
  }
  return [...found.values()]
}

/** By term to search for, the word of the text that it stands for. */
export function wordsByTerm(text: string): Map<string, string> {
  // Of several words, the first.
  const words = [...text.normalize('NFKC').matchAll(runs)].toReversed()
  return new Map(words.flatMap(([word]) => searchTerms(word).map(({ term }) => [term, word] as const)))
}

/**
 * The part of an English word that its forms share, roughly: `dances`, `danced` and `dancing` become one term. It need not be a word, only
 * the same for a question and for the passage that answers it.
 */
function stem(word: string): string {
  let stemmed = word
  for (const [ending, instead] of endings) {
    if (!stemmed.endsWith(ending) || stemmed.length - ending.length < 3) continue
    stemmed = stemmed.slice(0, -ending.length) + instead
    break
  }
  const last = stemmed.at(-1) ?? ''
  if (stemmed.length > 3 && last === stemmed.at(-2) && !'lsz'.includes(last)) stemmed = stemmed.slice(0, -1)
  if (stemmed.length > 4 && stemmed.endsWith('e')) stemmed = stemmed.slice(0, -1)
  if (stemmed.length > 3 && stemmed.endsWith('y')) stemmed = `${stemmed.slice(0, -1)}i`
  return stemmed
}

/** English words whose forms have no common beginning, or one that `stem` does not find; and numbers, as a word and in digits. */
const irregular = `
  go went gone goes; buy bought; bring brought; think thought; catch caught; teach taught; seek sought; fight fought; see saw seen
  eat ate eaten; give gave given; take took taken; make made; get got gotten; come came; become became; begin began begun; run ran
  swim swam swum; sing sang sung; drink drank drunk; ring rang rung; write wrote written; drive drove driven; ride rode ridden
  rise rose risen; speak spoke spoken; break broke broken; choose chose chosen; steal stole stolen; wake woke woken; wear wore worn
  tear tore torn; grow grew grown; know knew known; throw threw thrown; fly flew flown; draw drew drawn; show shown; blow blew blown
  find found; hold held; tell told; sell sold; stand stood; understand understood; lose lost; leave left; feel felt; keep kept
  sleep slept; meet met; lead led; feed fed; say said; pay paid; send sent; spend spent; build built; lend lent; bend bent; mean meant
  learn learnt; dream dreamt; hear heard; win won; sit sat; shoot shot; hang hung; stick stuck; dig dug; fall fell fallen
  forget forgot forgotten; hide hid hidden; bite bit bitten; forgive forgave forgiven; shake shook shaken
  live lived; child children; man men; woman women; person people; foot feet; tooth teeth; mouse mice; goose geese; life lives; wife wives
  knife knives; leaf leaves; shelf shelves; half halves; wolf wolves; bad worse worst; good better best
  one 1; two 2; three 3; four 4; five 5; six 6; seven 7; eight 8; nine 9; ten 10; eleven 11; twelve 12`

/** By each of its terms, the terms of a word. Two words may share a term ("leaves"): the first one has it. */
const irregularForms: ReadonlyMap<string, readonly string[]> = new Map(
  irregular.trim().split(/\s*[;\n]\s*/).toReversed().flatMap((list) => {
    const forms = [...new Set(extractTerms(list))]
    return forms.map((form): [string, readonly string[]] => [form, forms])
  }),
)
