import { contentsOf } from '../ledger.ts'
import type { LogEvent } from './store-log.ts'

/** One thread in the store, from its creation or its restore to its deletion or to the next restore. */
export interface Life {
  thread: string
  key: number
  /** The first epoch that was given to it, and the last that it had. */
  first: number
  last: number
  restored: boolean
  born: number
  died: number
  /** The first epoch that a later life may have. */
  floor: number
  mail: Map<string, LivedMail>
  runs: Map<string, Array<{ status: string; at: number }>>
  /** All rows that it ever had, as they were last. */
  rows: Map<string, LivedRow>
  /** All words that its rows ever had, also those that were removed from them later, such as text that could not be checked. */
  words: Set<string>
  /** The contents that it began with, where it is a copy, and those that its source had at that moment. */
  copy?: { began: string[]; source: string[] | undefined }
  /** What was stored in it after its end. */
  late: LogEvent[]
}

interface LivedMail {
  route: string
  states: Array<{ state: string; at: number; runId: string | null; step: number | null }>
}

interface LivedRow {
  id: string
  messageId: string
  role: string
  runId: string | null
  text: string
  calls: string[]
  present: boolean
}

/** Which thread a copy is of: its id says so. */
export const copySeparator = '~'

/** The lives of all threads, by what the log says, in the order of their beginnings. */
export function livesIn(log: readonly LogEvent[]): Life[] {
  const lives: Life[] = []
  const byKey = new Map<number, Life>()
  let copying: Life | undefined
  let [ended, restored]: [Life[], Life[]] = [[], []]
  for (const event of log) {
    if (copying && event.key !== copying.key) copying = undefined
    if (event.what === 'restore') restored = ended
    if (event.what === 'floor') for (const life of restored.splice(0)) life.floor = event.floor
    if (event.what !== 'end' && event.what !== 'thread') ended = []
    if (event.what === 'thread') {
      const life = newLife(event, byKey.has(event.key))
      const source = event.id.includes(copySeparator) ? alive(lives, event.id.split(copySeparator)[0] ?? '') : undefined
      if (event.id.includes(copySeparator) && !life.restored) {
        life.copy = { began: [], source: source && present(source) }
        copying = life
      }
      lives.push(life)
      byKey.set(event.key, life)
      continue
    }
    const life = byKey.get(event.key)
    if (life) note(life, event, copying === life)
    if (life && event.what === 'end') ended.push(life)
  }
  return lives
}

/** What a life had at the end of the log, or when it ended. The ids of rows differ in a copy. */
export function present(life: Life): string[] {
  return [...life.rows.values()].flatMap((row) => (row.present ? [wordsOf(row)] : [])).toSorted()
}

function wordsOf({ role, text, calls }: Pick<LivedRow, 'role' | 'text' | 'calls'>): string {
  return `${role}: ${text}${calls.join(' ')}`
}

function alive(lives: readonly Life[], thread: string): Life | undefined {
  const last = lives.findLast((life) => life.thread === thread)
  return last?.died === Infinity ? last : undefined
}

function newLife({ id, key, life, epoch, at }: Extract<LogEvent, { what: 'thread' | 'epoch' }>, restored: boolean): Life {
  return {
    thread: id, key, first: life, last: epoch, restored, born: at, died: Infinity, floor: Infinity, mail: new Map(), runs: new Map(), rows: new Map(), words: new Set(), late: [],
  }
}

function note(life: Life, event: LogEvent, copying: boolean): void {
  if (life.died !== Infinity && event.what !== 'row-removed') return void life.late.push(event)
  switch (event.what) {
    case 'epoch':
      // A restore inserts the threads as they were, and then raises them.
      if (life.first !== event.life) life.first = event.life
      life.last = event.epoch
      return
    case 'end':
      life.died = event.at
      life.floor = event.floor
      return
    case 'mail':
      if (!event.id.startsWith('decid')) life.mail.set(event.id, { route: event.route, states: [event] })
      return
    case 'state': {
      const mail = life.mail.get(event.id)
      if (!mail) return
      mail.route = event.route
      mail.states.push(event)
      return
    }
    case 'row': {
      const { id, messageId, role, runId, content } = event
      const { text, calls } = contentsOf(content)
      const row: LivedRow = { id, messageId, role, runId, text, calls: calls.map(({ call }) => call), present: true }
      life.rows.set(id, row)
      for (const word of text.split(' ')) life.words.add(word)
      if (copying) life.copy?.began.push(wordsOf(row))
      return
    }
    case 'row-removed': {
      const row = life.rows.get(event.id)
      if (row && life.died === Infinity) row.present = false
      return
    }
    case 'run': {
      const run = life.runs.get(event.id)
      if (run) run.push(event)
      else life.runs.set(event.id, [event])
    }
  }
}
