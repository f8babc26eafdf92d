import { describe, expect, it } from 'vitest'
import type { Effect } from '../effects.ts'
import type { Journal, Note, Noted } from '../journal.ts'
import type { LedgerThread } from '../ledger.ts'
import { checks, judge } from './checks.ts'
import type { LivesEvidence } from './evidence.ts'
import { livesIn } from './lives.ts'
import type { LogEvent } from './store-log.ts'

const thread = 't0'
/** A millisecond, so that no two things happen at once. */
const ms = 1_000

/** An event of the log; without more, of the first thread that there is. */
interface Event {
  what: LogEvent['what']
  at: number
  key?: number
  id?: string
  [more: string]: unknown
}

const content = (text: string) => JSON.stringify({ parts: [{ type: 'text', text }] })
const calling = (call: string) => JSON.stringify({ parts: [{ type: 'tool-invocation', toolInvocation: { toolCallId: call, toolName: 'order', state: 'call' } }] })
const created = (at: number, life: number, more: object = {}): Event => ({ what: 'thread', at, life, epoch: life, ...more })
const epoch = (at: number, life: number, now: number): Event => ({ what: 'epoch', at, life, epoch: now })
const end = (at: number, floor: number): Event => ({ what: 'end', at, floor })
const mail = (at: number, id: string, more: object = {}): Event => ({ what: 'mail', at, id, state: 'pending', route: 'wake', runId: null, step: null, ...more })
const state = (at: number, id: string, now: string, more: object = {}): Event => ({ what: 'state', at, id, state: now, route: 'wake', runId: 'r', step: 0, ...more })
const row = (at: number, id: string, more: object = {}): Event => ({ what: 'row', at, id, messageId: id, role: 'signal', runId: 'r', content: content(`[[${thread}|${id}]]`), ...more })
const run = (at: number, id: string, status: string): Event => ({ what: 'run', at, id, status })
const answer = (at: number, id: string, words = '11 12 '): Event => row(at, id, { role: 'assistant', content: content(words) })

/** One life in which a signal was answered. */
const whole: Event[] = [
  created(10, 0), mail(20, 'a'), epoch(20, 0, 1), state(21, 'a', 'taken'), run(21, 'r', 'running'), row(21, 'a'), answer(30, 'said'), state(31, 'a', 'consumed'), run(31, 'r', 'finished'),
]
/** The same, deleted, and a second life with another key. */
const again: Event[] = [...whole, end(40, 2), { ...created(50, 2), key: 2 }]

function journal(slot: number, found: Array<Note & { at?: number }>): Journal {
  return { slot, life: 0, notes: found.map((note, index): Noted => ({ ...note, at: note.at === undefined ? 60 * ms + index : note.at * ms })) }
}

const sent = (id: string, at = 18): Array<Note & { at: number }> => [{ note: 'send', thread, id, kind: 'message', at }, { note: 'stored', thread, id, at: 22 }]
const outcome = (more: object = {}): Note & { at: number } => ({ note: 'outcome', thread, id: 'a', action: 'woke', runId: 'r', step: 0, at: 50, ...more })
const abort = (at: number, clear = false): Note & { at: number } => ({ note: 'abort', thread, call: 7, clear, at })
const aborted = (at: number, yes: boolean, runId = 'r'): Note & { at: number } => ({ note: 'abort-answered', thread, call: 7, aborted: yes, runId, at })
const seen = (cursor: string, more: object = {}): Note => ({ note: 'seen', watcher: '0/t0', thread, cursor, type: 'step-start', ...more })
const snapshot = (cursor: string, ids: string[], text = ''): Note => seen(cursor, { type: 'data-thread-snapshot', reason: 'replaced', messages: ids.map((id) => ({ id, role: 'assistant', text })) })
const watching = (after?: string, since = 0): Note & { at: number } => ({ note: 'watching', watcher: '0/t0', thread, since: since * ms, at: since, ...(after === undefined ? {} : { after }) })
const effect = (more: Partial<Effect> = {}): Effect => ({ at: 25 * ms, phase: 'begun', by: '0.0', thread, run: 'r', call: 'c', tool: 'order', idempotent: false, ...more })

const calm: LedgerThread = {
  id: thread, status: 'idle', epoch: 1, owner: null,
  mail: [{ id: 'a', ord: 1, kind: 'enter', route: 'wake', state: 'consumed', runId: 'r', step: 0 }],
  rows: [
    { id: 'a', messageId: 'a', seq: 1, role: 'signal', runId: 'r', text: '', marks: ['a'], calls: [] },
    { id: 'said', messageId: 'said', seq: 2, role: 'assistant', runId: 'r', text: '11 12 ', marks: [], calls: [] },
  ],
  runs: [{ runId: 'r', status: 'finished', epoch: 1, attempts: 1 }],
}
/** A later life of the thread in which nothing was sent. */
const empty: LedgerThread = { ...calm, mail: [], rows: [], runs: [] }

function evidence({ log = whole, found = [], effects = [], ledger = log === whole ? calm : empty }: {
  log?: Event[]; found?: Array<Note & { at?: number }>; effects?: Effect[]; ledger?: LedgerThread
} = {}): LivesEvidence {
  const shown: Note & { at: number } = { note: 'asked', thread, prompt: ['s'], marks: ['a'], at: 22 }
  return {
    journals: [journal(0, [...sent('a'), shown, ...found])],
    effects,
    ledger: { integrity: 'ok', threads: [ledger] },
    log: log.map((event, n) => ({ key: 1, id: thread, ...event, n, at: event.at * ms }) as LogEvent),
  }
}

function objections(given: LivesEvidence): string[] {
  const lived = { ...given, lives: livesIn(given.log) }
  return Object.entries(checks).flatMap(([name, check]) => (check(lived).length > 0 ? [name] : []))
}

const copyOf = (...contents: string[]): Event[] => [
  { ...created(45, 3, { id: 't0~1' }), key: 3 }, ...contents.map((text, index): Event => ({ ...row(45, `k${index}`, { role: index === 0 ? 'signal' : 'assistant', content: text }), key: 3 })), run(46, 'other', 'finished'),
]

describe('the checker of lives', () => {
  it('has nothing against a life in which all went well, nor against one that follows a deletion', () => {
    expect(judge(evidence())).toEqual([])
    expect(judge(evidence({ log: again }))).toEqual([])
  })

  it.each<[string, string[], LivesEvidence]>([
    ['a life whose epochs begin again', ['epochsGrow'], evidence({ log: [...whole, end(40, 2), { ...created(50, 0), key: 2 }] })],
    ['a restored life with the epochs of before', ['epochsGrow'], evidence({ log: [...whole, end(40, 0), created(40, 0)] })],
    ['a row that is stored in a deleted thread', ['nothingAfterTheEnd'], evidence({ log: [...again, answer(60, 'late')] })],
    ['two runs at once', ['oneActiveRun'], evidence({ log: [...whole.slice(0, -1), run(35, 'q', 'running')] })],
    ['a row of a run of an earlier life', ['ownRuns'], evidence({ log: [...again, { ...answer(60, 'late'), key: 2 }] })],
    ['a confirmed signal that no life has', ['onceEach'], evidence({ log: [created(10, 0), epoch(20, 0, 1), run(21, 'r', 'finished')] })],
    ['a signal that two lives have', ['onceEach'], evidence({ log: [...again, { ...mail(60, 'a'), key: 2 }] })],
    ['a copy that lacks a row', ['clonesWhole'], evidence({ log: [...whole, ...copyOf(content('[[t0|a]]'))] })],
    ['an effect of a call that was never stored', ['effectsKnown'], evidence({ effects: [effect()] })],
    ['an effect that was had twice', ['noEffectTwice'], evidence({ log: [...whole, row(32, 'asks', { role: 'assistant', content: calling('c') })], effects: [effect(), effect({ by: '1.0', at: 33 * ms })] })],
    ['an outcome that names another run', ['trueOutcomes'], evidence({ found: [outcome({ runId: 'q' })] })],
    ['an outcome `deleted` in a life that goes on', ['trueOutcomes'], evidence({ found: [outcome({ action: 'discarded', reason: 'deleted', runId: undefined })] })],
    ['a send that never gets an outcome', ['outcomesKnown'], evidence({ found: [{ note: 'open', ids: ['a'] }] })],
    ['a call that got an error of the store', ['callsAnswered'], evidence({ found: [{ note: 'answered', thread, id: 'x', how: 'store_failed' }] })],
    ['an abort of a run that finished', ['trueAborts'], evidence({ found: [abort(25), aborted(40, true)] })],
    ['an abort that was answered before it was stored', ['trueAborts'], evidence({ log: [...whole.slice(0, -1), run(60, 'r', 'aborted')], found: [abort(25), aborted(40, true)] })],
    ['an abort that denies what it did', ['trueAborts'], evidence({ log: [...whole.slice(0, -1), run(31, 'r', 'aborted')], found: [abort(25), aborted(40, false)] })],
    ['an abort that failed', ['abortsAnswered'], evidence({ found: [abort(25), { note: 'abort-failed', thread, call: 7, code: 'store_failed', at: 40 }] })],
    ['an abort that was never answered', ['abortsAnswered'], evidence({ found: [abort(25), outcome(), { note: 'stopping' }, { note: 'closed' }] })],
    ['a signal that was to be cleared and is taken later', ['clearedTruly'], evidence({ log: [...whole, mail(22, 'b'), state(60, 'b', 'taken', { runId: 'q' })], found: [abort(30, true), aborted(40, false)] })],
    ['a signal that was cancelled although nobody cleared', ['cancelledOnWish'], evidence({ log: [...whole, mail(22, 'b'), state(35, 'b', 'cancelled')], found: [...sent('b', 19), abort(30), aborted(40, false)] })],
    ['a signal that an abort of a run of the former life cancelled', ['cancelledOnWish'], evidence({ log: [...again, mail(52, 'b'), state(55, 'b', 'cancelled')].map((event, index) => (index < again.length ? event : { ...event, key: 2 })), found: [...sent('b', 51), abort(30, true), aborted(60, false)] })],
    ['a snapshot of the next life that does not say so', ['lifeBegins'], evidence({ log: again, found: [watching(), seen('1.1'), { ...snapshot('2.0', []), reason: 'behind' } as Note] })],
    ['a watcher that goes on in the next life', ['lifeBegins'], evidence({ log: again, found: [watching(), seen('1.1'), seen('3.1')] })],
    ['a watcher that returns with a cursor of a former life', ['lifeBegins'], evidence({ log: again, found: [watching('1.1', 55), seen('3.1')] })],
    ['a chunk of a deleted thread for who comes later', ['noFormerWords'], evidence({ log: again, found: [{ note: 'ended', thread, done: true, at: 42 }, watching(undefined, 55), seen('1.1')] })],
    ['a snapshot with a message of a former life', ['snapshotsOfLife', 'trueSnapshots'], evidence({ log: again, found: [watching(), snapshot('2.0', ['said'])] })],
    ['a snapshot with a word of a former life', ['snapshotsOfLife'], evidence({ log: [...again, { ...answer(52, 'said', '13 '), key: 2, runId: null } as Event], found: [{ ...snapshot('2.0', ['said'], '11'), at: 52 }] })],
  ])('finds %s', (_, found, given) => {
    expect(objections(given).toSorted()).toEqual(found.toSorted())
  })

  it.each<[string, LivesEvidence]>([
    ['a restore that raises the epochs', evidence({ log: [...whole, end(40, 0), created(40, 0), epoch(40, 3, 3)] })],
    ['a signal that a restore brought back', evidence({ log: [...whole, end(40, 0), created(40, 0), mail(40, 'a', { state: 'consumed' }), epoch(40, 3, 3)] })],
    ['an effect that a restore undid', evidence({ log: [...whole, row(32, 'asks', { role: 'assistant', content: calling('c') }), end(40, 0), created(40, 0), epoch(40, 3, 3)], effects: [effect(), effect({ at: 50 * ms })] })],
    ['a whole copy', evidence({ log: [...whole, ...copyOf(content('[[t0|a]]'), content('11 12 '))] })],
    ['an outcome `deleted` after a deletion', evidence({ log: again, found: [outcome({ action: 'discarded', reason: 'deleted', runId: undefined })] })],
    ['an abort that came too late', evidence({ found: [abort(25), aborted(40, false)] })],
    ['an abort that closed processes do not answer', evidence({ found: [abort(25), { note: 'abort-failed', thread, call: 7, code: 'closed', at: 40 }] })],
    ['a signal that was taken before the answer', evidence({ log: [...whole, mail(22, 'b'), state(35, 'b', 'taken', { runId: 'q' })], found: [abort(30, true), aborted(40, false)] })],
    ['a signal that was cleared', evidence({ log: [...whole, mail(22, 'b'), state(35, 'b', 'cancelled')], found: [...sent('b', 19), abort(30, true), aborted(40, false)] })],
    ['a snapshot at the beginning of a life', evidence({ log: again, found: [watching(), seen('1.1'), snapshot('2.0', []), seen('3.1')] })],
    ['a snapshot with a word that was removed later', evidence({ log: [...whole, answer(35, 'said', ''), ...again.slice(whole.length)], found: [watching(undefined, 15), { ...snapshot('1.0', ['said'], '11'), at: 32 }] })],
    ['a thread that did not exist and then begins', evidence({ log: [...whole, end(40, 2), { ...created(50, 4), key: 2 }], found: [watching(), seen('1.1'), snapshot('2.0', []), seen('5.1')] })],
    ['a chunk of a deleted thread for who was there before', evidence({ log: again, found: [watching(undefined, 15), { note: 'ended', thread, done: true, at: 42 }, seen('1.1')] })],
  ])('allows %s', (_, given) => {
    expect(objections(given)).toEqual([])
  })
})
