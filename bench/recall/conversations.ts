import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { linkNeighbors, type Collection, type Posting } from '../../src/recall/rank/bm25.ts'
import { formOf } from '../../src/recall/text/form.ts'
import { extractTerms } from '../../src/recall/text/terms.ts'

export interface Conversation {
  id: string
  collection: Collection
  /** Of each turn. */
  texts: string[]
  questions: Question[]
}

export interface Question {
  text: string
  category: number
  /** Numbers of the turns that answer it. Some that are named are not in the conversation: they count as missed. */
  evidence: number[]
  named: number
  /** The number of its terms. */
  terms: number
  postings: Posting[]
}

interface Stored {
  id: string
  sessions: Array<{ turns: Array<{ id: string; speaker: string; text: string }> }>
  qa: Array<{ question: string; category: number; evidence: string[] }>
}

/** Conversations with questions and the turns that answer them. Questions without an answer (category 5) are left out. */
export function readConversations(folder: string): Conversation[] {
  return readdirSync(folder).filter((name) => name.endsWith('.json')).toSorted().map((name) => conversationOf(JSON.parse(readFileSync(join(folder, name), 'utf8')) as Stored))
}

function conversationOf({ id, sessions, qa }: Stored): Conversation {
  const turns = sessions.flatMap(({ turns: of }, session) => of.map((turn) => ({ id: turn.id, session, said: turn.text, text: `${turn.speaker}: ${turn.text}` })))
  const words = turns.map(({ text }) => extractTerms(text))
  const places = new Map<string, number[]>()
  for (const [at, of] of words.entries()) for (const word of new Set(of)) places.set(word, [...(places.get(word) ?? []), at])
  const thread = turns.map(({ session }) => session)
  const numbers = new Map(turns.map((turn, at) => [turn.id, at]))
  return {
    id,
    collection: { count: turns.length, length: words.map(({ length }) => length), thread, ...linkNeighbors(thread), form: turns.map(({ said }) => formOf(said)) },
    texts: turns.map(({ text }) => text),
    questions: qa.filter(({ category, evidence }) => category <= 4 && evidence.length > 0).map(({ question, category, evidence }) => ({
      text: question,
      category,
      evidence: evidence.flatMap((name) => numbers.get(name) ?? []),
      named: evidence.length,
      terms: new Set(extractTerms(question)).size,
      postings: [...new Set(extractTerms(question))].flatMap((term) => {
        const passages = places.get(term)
        return passages ? { term, passages } : []
      }),
    })),
  }
}
