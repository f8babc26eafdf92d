import type { SeenMessage } from '../journal.ts'
import type { LedgerThread } from '../ledger.ts'
import type { Check, Violation } from './evidence.ts'
import { compare, isSnapshot, logs, saidOn, type Said, type Seen } from './places.ts'

interface Told {
  id: string
  role: string
  text: string
  /** Put into history beside a run, after whatever that had said and was still to say. */
  beside: boolean
}

/**
 * A snapshot is what history had, message for message and word for word, up to the place that it has in the stream: no earlier chunk is
 * missing in it, and nothing in it is published again.
 */
export const trueSnapshots: Check = (evidence) => {
  const everything = saidOn(evidence)
  const histories = new Map(evidence.ledger.threads.map((thread) => [thread.id, historyOf(thread)]))
  return [...logs(evidence)].flatMap(([watcher, log]) => {
    let told: { words: ReadonlySet<string>; ids: ReadonlySet<string>; cursor: string } | undefined
    return log.flatMap((seen): Violation[] => {
      const say = (what: string): Violation[] => [{ promise: 'W1.2', what: `${watcher} ${what}` }]
      if (seen.note === 'watching') {
        if (seen.after === undefined) told = undefined
        return []
      }
      if (isSnapshot(seen)) {
        const { messages = [] } = seen
        told = { words: new Set(messages.flatMap(({ text }) => wordsOf(text))), ids: new Set(messages.map(({ id }) => id)), cursor: seen.cursor }
        const problem = problemOf(seen, messages, histories.get(seen.thread) ?? [], everything.get(seen.thread) ?? [])
        return problem === undefined ? [] : say(`in ${seen.by} got the snapshot ${seen.cursor} (${seen.reason}) that ${problem}`)
      }
      const again = told && (seen.words?.some((word) => told?.words.has(String(word))) || (seen.id !== undefined && told.ids.has(seen.id)))
      return again ? say(`in ${seen.by} saw in ${seen.cursor} (${seen.type}) what the snapshot ${told?.cursor} had`) : []
    })
  })
}

function problemOf(snapshot: Seen, messages: readonly SeenMessage[], history: readonly Told[], said: readonly Said[]): string | undefined {
  const places = new Map(history.map((message, index) => [message.id, index]))
  const strange = messages.find(({ id }) => !places.has(id))
  if (strange) return `has ${strange.id} (${strange.role}), which is not in history`
  const body = messages.slice(0, messages.findLastIndex(({ id }) => history[places.get(id) ?? -1]?.beside !== true) + 1)
  for (const [index, { id, text }] of body.entries()) {
    const place = places.get(id) ?? -1
    const before = body[index - 1]
    if (before && places.get(before.id) !== place - 1) return `has ${id} right after ${before.id}, and history doesn't`
    const whole = history[place]?.text ?? ''
    if (index < body.length - 1 ? whole !== text : !whole.startsWith(text)) return `has other words of ${id} than history`
  }
  const [first] = messages
  const start = first ? (places.get(first.id) ?? 0) : 0
  const has = new Set(messages.map(({ id }) => id))
  const words = new Set(messages.flatMap(({ text }) => wordsOf(text)))
  const kept = new Set(history.slice(start).flatMap(({ text }) => wordsOf(text)))
  for (const one of said) {
    if (compare(one.cursor, snapshot.cursor) > 0 || one.at > snapshot.at) continue
    if (one.id !== undefined && (places.get(one.id) ?? -1) >= start && !has.has(one.id)) return `lacks ${one.id}, told in ${one.cursor}`
    const lost = one.words?.find((word) => kept.has(String(word)) && !words.has(String(word)))
    if (lost !== undefined) return `lacks a word that was said in ${one.cursor}`
  }
  return undefined
}

/** Messages as readers see them: what an assistant says in several rows is one. */
function historyOf({ rows, mail }: LedgerThread): Told[] {
  const beside = new Set(mail.filter(({ route }) => route === 'persist').map(({ id }) => id))
  const messages: Told[] = []
  for (const { id, messageId, role, text } of rows) {
    if (role === 'context') continue
    const spoken = role === 'assistant' || role === 'tool'
    const open = messages.at(-1)
    if (spoken && open?.id === messageId) open.text += text
    else messages.push({ id: spoken ? messageId : id, role, text: role === 'signal' ? '' : text, beside: beside.has(id) })
  }
  return messages
}

function wordsOf(text: string): string[] {
  return text.split(' ').filter((word) => word !== '')
}
