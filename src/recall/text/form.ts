import { anyOf, asks, determiner, interrogative, introductions, isQuestion, sentencesOf, word } from './questions.ts'

/*
 * What a passage does: it states something, it asks or requests, or it says that nothing is known. The last two contain the words of a
 * topic and no fact about it. Both are recognized by their form, in each sentence: a passage with one statement is a statement.
 */

/** The form of a passage, as the index stores it. */
export type Form = (typeof forms)[keyof typeof forms]

export const forms = {
  statement: 0,
  /** A statement with a question at its end. */
  withQuestion: 1,
  /** Questions and requests alone. */
  request: 2,
  /** "I don't know.", "One moment." */
  emptyAnswer: 3,
} as const

export function formOf(passage: string): Form {
  const sentences = sentencesOf(passage)
  if (sentences.length > 0 && sentences.every((one) => asks(one) || requests(one) || knowsNothing(one))) {
    return sentences.every((one) => !asks(one) && knowsNothing(one)) ? forms.emptyAnswer : forms.request
  }
  return isQuestion(passage) ? forms.withQuestion : forms.statement
}

const informing = anyOf(`
  information info records? details? mentions? mentioned memor(?:y|ies) notes? data idea clue answer anything context knowledge
`)
const not = anyOf("do\\snot don['’]?t did\\snot didn['’]?t can\\s?not can['’]?t could\\snot couldn['’]?t have\\snot haven['’]?t")
const negated = `(?:${not}|(?:am|was|were|are) (?:not able|unable) to)`
const adverb = `(?:${anyOf('really actually currently honestly just still yet even have')} )?`
const we = anyOf('i we')
/** Where a sentence ends, or goes on with one of these words. */
const before = (...words: string[]) => `(?= *(?:[,.!(]|$)| (?:${words.join('|')})\\b)`

const requestFirst = new RegExp(`^${introductions}*(?:${anyOf(`
  find locate retrieve fetch search look dig pull recall show give send get read list repeat explain describe summari check tell remind
  provide share clarify specify let i we help
`)})`)
const request = new RegExp(
  `^${introductions}*(?:${[
    `(?:find|locate|retrieve|fetch|search(?: for)? ${determiner}|search for|look (?:up|for)|dig up|pull up|recall) ${word}`,
    `(?:show|give|send|get|read) (?:me|us) ${word}`,
    `(?:list|show|repeat|explain|describe|summari[sz]e) (?:${determiner}|everything|${interrogative})\\b`,
    `check (?:again )?(?:${interrogative}|if|whether|for)\\b`,
    `(?:tell|remind) (?:me|us) (?!to\\b|that\\b|every\\b)${word}`,
    '(?:provide|share|clarify|specify) (?:more|some|any|your|further|additional|what|which)\\b',
    'let (?:me|us) know\\b',
    `${we}(?: would|['’]?d)? (?:need|want|like|have) to (?:know|find out)\\b`,
    `${we}(?: was| am|['’]?m| were)? wonder(?:ing)? (?:${interrogative}|if|whether|about)\\b`,
    `help (?:me|us) (?:to )?(?:find|locate|remember|recall)\\b`,
  ].join('|')})`,
)
/** "… please", at the end of what is not a whole statement. */
const politely = /^[^.!?,;:]{1,120}[ ,](?:please|pls|bitte|por favor|s['’]il (?:vous|te) pla[iî]t)[.!]?$/

/** The beginning of what is not known: "where the key is", "if she called". */
const clause = `if|whether|${interrogative}`
const apology = "(?:(?:i['’]?m|i am|we['’]?re) )?(?:so |very |really |terribly )?(?:sorry|afraid|unfortunately|apologies)"
const beforeAnswer = `(?:${introductions}|${apology}[\\s,.!:–-]*){0,4}`
const emptyAnswerFirst = new RegExp(`^${beforeAnswer}(?:${anyOf('i we no not dunno idk beats hard there one just let nothing you')})`)
const emptyAnswer = new RegExp(
  `^${beforeAnswer}(?:${[
    `${we} ${adverb}${negated} ${adverb}(?:${[
      `(?:know|knew)${before('it', 'yet', 'enough', 'about', clause, determiner)}(?! how to\\b)`,
      `(?:remember|recall)${before('it', 'you', clause, determiner)}(?! how to\\b)`,
      `(?:say|answer|help|tell(?: you)?)${before('that', 'this', 'it', 'you', 'with', 'for', clause)}`,
      `(?:have|find|found|see|seen|got) (?:${word} ){0,4}?${informing}\\b`,
      '(?:find|found|see|locate) (?:it|that|this)(?= *(?:[,.!(]|$))',
    ].join('|')})`,
    `${we}(?: have|['’]?ve)?(?: got)? (?:have |had )?no (?:${word} ){0,2}?${informing}\\b`,
    `(?:i['’]?m|i am|we are|we['’]?re) not (?:sure|certain|aware)\\b`,
    `(?:no|not the slightest|not a) (?:idea|clue|information|record)\\b`,
    `(?:dunno|idk|beats me|no clue|hard to say)\\b`,
    `there(?: is| was| are| were|['’]s)(?: no| not(?: any)?|n['’]t(?: any)?) (?:${word} ){0,2}?${informing}${
      before('about', 'of', 'on', 'for', 'in', 'that', 'available')}`,
    '(?:one|just a) (?:moment|second|sec|minute)\\b',
    `(?:let me|${we}(?: will|['’]ll)) (?:check|look|see|search|find out)${before('it', 'that', 'this', 'again', 'up', 'into', clause)}`,
    `nothing (?:was )?(?:found|known|came up|comes up|on file)\\b`,
    `you (?:have not|haven['’]?t|did not|didn['’]?t|(?:have )?never) (?:yet )?(?:told|tell|mention(?:ed)?|said|say|shared?|given?|gave)\\b`,
  ].join('|')})`,
)
const emptyAnswerElsewhere = new RegExp(
  `^${anyOf(`
    (?:das\\s)?weiß\\sich\\s(?:leider\\s)?nicht ich\\sweiß\\s(?:es\\s|das\\s)?(?:leider\\s)?nicht keine\\sahnung
    je\\sne\\ssais\\spas aucune\\sidée no\\s(?:lo\\s)?sé ni\\sidea non\\s(?:lo\\s)?so não\\ssei weet\\sik\\sniet geen\\sidee не\\sзнаю
  `)}(?![\\p{L}\\p{N}])|^(?:我?不知道|知りません|わかりません|分かりません|모르겠)`,
  'iu',
)
const onlyApology = new RegExp(`^(?:${apology}|thanks?|thank you)\\b[^,;:]{0,40}$`)
/** A clause that may state something beside the first: "I don't know, but …". */
const betweenClauses = /[,;:–—]\s*|\s(?=(?:but|however|though|because|and|except)\s)/u
const conjunction = /^(?:but|however|though|because|and|except)\s+/iu

function requests(sentence: string): boolean {
  const lower = sentence.toLowerCase()
  return (requestFirst.test(lower) && request.test(lower)) || politely.test(lower)
}

/** True where a sentence says that its speaker knows nothing, or apologizes, and nothing else. */
function knowsNothing(sentence: string): boolean {
  if (onlyApology.test(sentence.toLowerCase())) return true
  if (!isEmptyAnswer(sentence)) return false
  // Each clause alone is no statement either.
  return sentence.split(betweenClauses).slice(1).map((one) => one.trim().replace(conjunction, '')).every(
    (one) => one === '' || onlyApology.test(one.toLowerCase()) || isEmptyAnswer(one) || asks(one) || requests(one),
  )
}

function isEmptyAnswer(sentence: string): boolean {
  const lower = sentence.toLowerCase()
  return (emptyAnswerFirst.test(lower) && emptyAnswer.test(lower)) || emptyAnswerElsewhere.test(sentence)
}
