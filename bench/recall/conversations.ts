import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { linkNeighbors, type Collection, type Posting } from '../../src/recall/rank/bm25.ts'
import { formOf } from '../../src/recall/text/form.ts'
import { sessionsOf } from '../../src/recall/rank/sessions.ts'
import { extractTerms, searchTerms } from '../../src/recall/text/terms.ts'
import { readTimes, type NamedTime } from '../../src/recall/text/times.ts'

export interface Conversation {
  id: string
  collection: Collection
  /** Of each turn. */
  texts: string[]
  questions: Question[]
}

export interface Question {
  text: string
  category: string
  /** Numbers of the turns that answer it. Some that are named are not in the conversation: they count as missed. */
  evidence: number[]
  named: number
  /** The number of its terms. */
  terms: number
  postings: Posting[]
  times: NamedTime[]
}

/** A conversation of several sessions, with questions and the ids of the turns that answer them. */
export interface Stored {
  id: string
  sessions: Array<{ at: number; turns: StoredTurn[] }>
  qa: Array<{ question: string; category: string; evidence: string[] }>
}

export interface StoredTurn {
  id: string
  at: number
  text: string
}

/** A conversation as its file has it. */
interface File {
  id: string
  sessions: Array<{ at: string; turns: Array<{ id: string; speaker: string; text: string }> }>
  qa: Array<{ question: string; category: number; evidence: string[] }>
}

const categories = ['multi-hop', 'temporal', 'open', 'single-hop']

/** The conversations of a folder. Questions without an answer (category 5) are left out. */
export function readStored(folder: string): Stored[] {
  return readdirSync(folder).filter((name) => name.endsWith('.json')).toSorted().map((name) => {
    const { id, sessions, qa } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as File
    return {
      id,
      sessions: sessions.map(({ at, turns }) => {
        const time = timeOf(at)
        return { at: time, turns: turns.map((turn, n) => ({ id: turn.id, at: time + n * 60_000, text: `${turn.speaker}: ${turn.text}` })) }
      }),
      qa: qa.filter(({ category, evidence }) => category <= 4 && evidence.length > 0)
        .map(({ question, category, evidence }) => ({ question, category: categories[category - 1] ?? '', evidence })),
    }
  })
}

/** The time of "1:56 pm on 8 May, 2023". */
function timeOf(text: string): number {
  const [, hour = '', minute = '', half = '', date = ''] = /^(\d+):(\d+) (am|pm) on (.+)$/.exec(text) ?? []
  const time = Date.parse(`${date} UTC`) + ((Number(hour) % 12) + (half === 'pm' ? 12 : 0)) * 3_600_000 + Number(minute) * 60_000
  if (Number.isNaN(time)) throw new Error(`not a time: ${text}`)
  return time
}

/** With a thread for each session, or one for all. */
export function conversationOf({ id, sessions, qa }: Stored, threads: 'each' | 'one'): Conversation {
  const turns = sessions.flatMap(({ turns: of }, session) => of.map((turn) => ({ ...turn, session: threads === 'each' ? session : 0 })))
  const words = turns.map(({ text }) => extractTerms(text))
  const places = new Map<string, number[]>()
  for (const [at, of] of words.entries()) {
    for (const word of new Set(of)) {
      const known = places.get(word)
      if (known) known.push(at)
      else places.set(word, [at])
    }
  }
  const links = linkNeighbors(turns.map(({ session }) => session))
  const createdAt = turns.map(({ at }) => at)
  const count = turns.length
  const numbers = new Map(turns.map((turn, at) => [turn.id, at]))
  const years = [...new Set(createdAt.map((time) => new Date(time).getUTCFullYear()))].toReversed()
  return {
    id,
    collection: {
      count,
      length: words.map(({ length }) => length),
      ...links,
      ...sessionsOf({ count, previous: links.previous, createdAt }),
      form: turns.map(({ text }) => formOf(text.replace(/^\p{Lu}\p{L}+: /u, ''))),
      createdAt,
    },
    texts: turns.map(({ text }) => text),
    questions: qa.map(({ question, category, evidence }) => {
      const terms = searchTerms(question)
      return {
        text: question,
        category,
        evidence: evidence.flatMap((name) => numbers.get(name) ?? []),
        named: evidence.length,
        terms: terms.length,
        postings: terms.flatMap(({ term, forms }) => {
          const passages = [...new Set(forms.flatMap((form) => places.get(form) ?? []))].toSorted((a, b) => a - b)
          return passages.length > 0 ? { term, passages } : []
        }),
        // Asked a day after the last turn.
        times: readTimes(question, (createdAt.at(-1) ?? 0) + 86_400_000, () => years),
      }
    }),
  }
}
