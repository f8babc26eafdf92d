import { asks, sentencesOf } from './questions.ts'
import { searchTerms } from './terms.ts'

/** From a time to another, exclusive, in milliseconds. Days are those of UTC. */
interface TimeSpan {
  from: number
  to: number
}

/** A time that a question names. */
export interface NamedTime {
  /** Several for a day or a month without a year: one for each year that may be meant. */
  spans: readonly TimeSpan[]
  /** The terms of the words that name it: a passage with all of them mentions the time. Fewer than two mention nothing. */
  terms: readonly string[]
}

const day = 86_400_000
const monthNames = 'january february march april may june july august september october november december'.split(' ')
const dayNames = 'sunday monday tuesday wednesday thursday friday saturday'.split(' ')
const month = `(${[
  'jan(?:uary)?', 'feb(?:ruary)?', 'mar(?:ch)?', 'apr(?:il)?', 'may', 'june?', 'july?', 'aug(?:ust)?', 'sept?(?:ember)?', 'oct(?:ober)?',
  'nov(?:ember)?', 'dec(?:ember)?',
].join('|')})`
const numbers = 'a one two three four five six seven eight nine ten eleven twelve'.split(' ')
const dayOfMonth = '(\\d{1,2})(?:st|nd|rd|th)?'

/** The most years that a day or a month without a year may mean: the latest ones. */
export const maxYears = 12

/** How a text names a time. `years`: those of the messages. */
type Reader = readonly [pattern: RegExp, spans: (found: readonly string[], years: readonly number[], now: number) => TimeSpan[]]

const dates: readonly Reader[] = [
  [/\b(\d{4})-(\d\d)-(\d\d)\b/g, ([year, number, of]) => [daySpan(Number(year), Number(number) - 1, Number(of))]],
  [
    new RegExp(`\\b${dayOfMonth} (?:of )?${month}\\b\\.?,?(?: (\\d{4})\\b)?`, 'gi'),
    ([of, name, year], years) => yearsOf(year, years).map((one) => daySpan(one, monthNumber(name), Number(of))),
  ],
  [
    new RegExp(`\\b${month}\\.? ${dayOfMonth}\\b(?!:)(?:,? (\\d{4})\\b)?`, 'gi'),
    ([name, of, year], years) => yearsOf(year, years).map((one) => daySpan(one, monthNumber(name), Number(of))),
  ],
  [new RegExp(`\\b${month},? (\\d{4})\\b`, 'gi'), ([name, year]) => [monthSpan(Number(year), monthNumber(name))]],
  [
    new RegExp(`\\b(?:in|of|during|last|this|since|until|early|late|mid) ${month}\\b`, 'gi'),
    ([name], years) => years.map((one) => monthSpan(one, monthNumber(name))),
  ],
  [/\b((?:19|20)\d\d)\b/g, ([year]) => [{ from: Date.UTC(Number(year), 0), to: Date.UTC(Number(year) + 1, 0) }]],
]

/** Times that are relative to now. Read in questions alone: a statement with "yesterday" does not ask for messages of that day. */
const relativeTimes: readonly Reader[] = [
  [/\byesterday\b/gi, (_, __, now) => [dayAt(now - day)]],
  [
    new RegExp(`\\b(\\d{1,3}|${numbers.join('|')}) (day|week|month|year)s? ago\\b`, 'gi'),
    ([count = '', unit = ''], _, now) => {
      const length = day * ({ day: 1, week: 7, month: 30, year: 365 }[unit.toLowerCase()] ?? 1)
      const word = numbers.indexOf(count.toLowerCase())
      // Whole days: all searches of a day are the same.
      const middle = dayAt(now - length * (word < 0 ? Number(count) : Math.max(1, word)))
      return [{ from: middle.from - (length - day) / 2, to: middle.to + (length - day) / 2 }]
    },
  ],
  [
    /\blast (week|month|year)\b/gi,
    ([unit], _, now) => {
      const date = new Date(now)
      if (unit?.toLowerCase() === 'month') return [monthSpan(date.getUTCFullYear(), date.getUTCMonth() - 1)]
      if (unit?.toLowerCase() === 'year') return [{ from: Date.UTC(date.getUTCFullYear() - 1, 0), to: Date.UTC(date.getUTCFullYear(), 0) }]
      const monday = dayAt(now).from - ((date.getUTCDay() + 6) % 7) * day
      return [{ from: monday - 7 * day, to: monday }]
    },
  ],
  [
    new RegExp(`\\b(?:last|on) (${dayNames.join('|')})\\b`, 'gi'),
    ([name = ''], _, now) => {
      const before = (new Date(now).getUTCDay() - dayNames.indexOf(name.toLowerCase()) + 7) % 7
      return [dayAt(now - (before === 0 ? 7 : before) * day)]
    },
  ],
]

/**
 * The times that a question names, in English or as `2031-05-24`: dates in any sentence, and in its questions also times relative to now
 * ("yesterday", "two weeks ago", "last May"). `years`: the years of the messages that are searched, the latest first.
 */
export function readTimes(text: string, now: number, years: () => readonly number[]): NamedTime[] {
  const found: NamedTime[] = []
  let known: readonly number[] | undefined
  const read = (sentence: string, readers: readonly Reader[]) => {
    let rest = sentence
    for (const [pattern, spansOf] of readers) {
      rest = rest.replaceAll(pattern, (words: string, ...groups: string[]) => {
        known ??= years().slice(0, maxYears)
        const spans = spansOf(groups, known, now).filter(({ from, to }) => from < to)
        if (spans.length > 0) found.push({ spans, terms: searchTerms(words).map(({ term }) => term) })
        // A date is read once: its year is no time of its own.
        return ' '
      })
    }
  }
  for (const sentence of sentencesOf(text)) read(sentence, asks(sentence) ? [...dates, ...relativeTimes] : dates)
  return found
}

/** After half of these times, a passage counts half: people write about an event soon after it, and plan some before. */
const halfLifeAfter = 14 * day
const halfLifeBefore = 7 * day

/** How near a time is to the spans: 1 within one of them. */
export function nearness(time: number, spans: readonly TimeSpan[]): number {
  let nearest = 0
  for (const { from, to } of spans) {
    const near = time < from ? 0.5 ** ((from - time) / halfLifeBefore) : time < to ? 1 : 0.5 ** ((time - to) / halfLifeAfter)
    if (near > nearest) nearest = near
  }
  return nearest
}

function yearsOf(year: string | undefined, years: readonly number[]): readonly number[] {
  return year === undefined ? years : [Number(year)]
}

function monthNumber(name = ''): number {
  return monthNames.findIndex((one) => one.startsWith(name.toLowerCase().slice(0, 3)))
}

function daySpan(year: number, ofYear: number, ofMonth: number): TimeSpan {
  return { from: Date.UTC(year, ofYear, ofMonth), to: Date.UTC(year, ofYear, ofMonth + 1) }
}

function monthSpan(year: number, ofYear: number): TimeSpan {
  return { from: Date.UTC(year, ofYear), to: Date.UTC(year, ofYear + 1) }
}

function dayAt(time: number): TimeSpan {
  const from = Math.floor(time / day) * day
  return { from, to: from + day }
}
