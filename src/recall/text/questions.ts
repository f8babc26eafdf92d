/*
 * Questions are recognized by their mark, and by their form where they are written without one: an interrogative with a verb, or a verb
 * before its subject. A statement that begins with the same word ("when we moved, …", "what I like is …") has its subject first.
 */

/** A pattern for any of these words. */
export const anyOf = (list: string) => `(?:${list.trim().split(/\s+/).join('|')})`

const negation = "(?:n?['’]?t)?"
const verbs = 'am is are was were do does did can could will would shall should may might must ca wo'
const auxiliary = `${anyOf(`${verbs} has have had`)}${negation}`
/** Without those that a statement without its subject begins with, before an article: "had a nice week", "has the flu". */
const verbFirst = `${anyOf(verbs)}${negation}`
const pronoun = anyOf('i you he she it we they there (?:any|some|every|no)(?:one|body|thing)')
export const determiner = anyOf('this that these those the a an my your his her its our their any all both each')
const subject = `(?:${pronoun}|${determiner})`
export const interrogative = anyOf('what which who whom whose when where why how')
/*
 * Each thread that indexes or searches compiles these patterns, which took a tenth of a second as plain alternatives of `\p{L}` without
 * regard to case. So they are matched against lower case, a word is anything but spaces and marks, and a pattern is compiled for a sentence
 * with one of its first words.
 */

export const word = '[^\\s!-&(-,./:-@[-`{-~¡«»¿\u2010-\u2018\u201A-\u201F…、。「」！（），：；？]+'
/** Words before a question that do not belong to it. */
export const introductions = `(?:${anyOf(
  'and but so or also then ok okay well hey hi hello please now again sorry thanks sure yes no right anyway actually btw',
)}\\b[\\s,.!:–-]*)`

const englishFirst = new RegExp(`^${introductions}*(?:${interrogative}|${auxiliary}|tell|remind|any)`)
const english = new RegExp(
  `^${introductions}*(?:${[
    // "what's", "whats"; "which hotel did", "how many children does".
    `${interrogative}['’]?(?:s|re|d|ll|ve)\\b`,
    `${interrogative} (?!${subject}\\b)(?:${word} ){0,4}?${auxiliary}\\b`,
    // An interrogative that is the subject, or part of it, needs no auxiliary: "who adopted", "which bus goes".
    `(?:who|whose|which) (?!${subject}\\b)(?:${word} ){0,11}${word}$`,
    'what (?:happened|happens|makes|made|went|goes|came|comes|caused|causes|about|if|else|kind|sort|type|time)\\b',
    'how (?:about|come|many|much|long|often|far|old|big|tall|to)\\b',
    'why not\\b',
    `${auxiliary} (?:not )?${pronoun}\\b`,
    `${verbFirst} (?:not )?${determiner}\\b`,
    `(?:does|did) (?!not\\b)${word} ${word}`,
    `(?:tell|remind) (?:me|us) (?:again )?(?:${interrogative}|if|whether)\\b`,
    'tell (?:me|us) (?:again )?(?:about|the)\\b',
    'any(?:one|body|thing)? (?:idea|news|clue|chance|knows?|remembers?)\\b',
  ].join('|')})`,
)
const onlyIntroduction = new RegExp(`^${introductions}+$`)
/** A verb before a name: "is Biscuit a beagle". After a name, "Will Smith is …", stands the verb of a statement. */
const beforeName = new RegExp(`^(?:[Ii]s|[Aa]re|[Ww]as|[Ww]ere|[Cc]an|[Ww]ill|[Ss]hould) \\p{Lu}\\p{Ll}+ (?!${auxiliary}\\b)${word}`, 'u')

/** Interrogatives of other languages. As the first words of a text without a mark at its end and without a clause, they ask. */
const others = new RegExp(
  `^${anyOf(`
    was\\s(?:ist|sind|war|waren|hat|hast|habe|haben|macht|machst|kostet|heißt|bedeutet|soll|sollte|kann|wird|will)
    wer wem wessen wo wohin woher wann warum wieso weshalb wie welche[rsnm]? wieviele?
    que quoi qui quand pourquoi comment combien quel(?:le)?s? est-ce qu['’]est-ce
    qué quién(?:es)? dónde cuándo cómo cuál(?:es)? cuánt[oa]s? chi cosa dov['’]è perché quale quali quant[oi] quais quem onde
    wat waar wanneer waarom hoe welke?
    что кто где когда почему как какой какая какие сколько
  `)}[ ’'][^,.!:;]+$`,
  'iu',
)

/** Particles at the end of a question in languages without a change of order: Chinese, Japanese, Korean. */
const particle = /[吗嗎か까][。.]?$/u
const marked = /[?？؟]["')\]”」]?$/u
const betweenSentences = /(?<=[.!?。！？])\s+|\n+/u

/** True where a passage ends with a question mark, or has the form of a question in each of its sentences. */
export function isQuestion(passage: string): boolean {
  if (marked.test(passage.trim())) return true
  const sentences = sentencesOf(passage)
  return sentences.length > 0 && sentences.every(asks)
}

/** The sentences of a passage, without those that only introduce another ("Hi!", "Well."). */
export function sentencesOf(passage: string): string[] {
  return passage.split(betweenSentences).map((one) => one.trim()).filter((one) => one !== '' && !onlyIntroduction.test(one.toLowerCase()))
}

/** True where a sentence has the mark or the form of a question. */
export function asks(sentence: string): boolean {
  if (marked.test(sentence) || sentence.startsWith('¿') || particle.test(sentence)) return true
  const lower = sentence.toLowerCase()
  return (englishFirst.test(lower) && english.test(lower)) || beforeName.test(sentence) || others.test(sentence)
}
