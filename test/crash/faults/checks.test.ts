import { describe, expect, it } from 'vitest'
import type { Effect } from '../effects.ts'
import type { Journal, Note, Noted } from '../journal.ts'
import type { LedgerThread } from '../ledger.ts'
import { faultChecks, judgeFaults, type FaultEvidence, type FaultSpan } from './checks.ts'

const thread = 't0'

/** Notes of one process, a microsecond apart unless they have a time. */
function journal(slot: number, notes: Array<Note & { at?: number }>): Journal {
  return { slot, life: 0, notes: notes.map((note, index): Noted => ({ at: 100 + index, ...note })) }
}

type Timed = Note & { at?: number }

const send = (id: string, at?: number): Timed => ({ note: 'send', thread, id, kind: 'message', ...(at === undefined ? {} : { at }) })
const stored = (id: string): Note => ({ note: 'stored', thread, id })
const outcome = (id: string, more: object = {}): Note => ({ note: 'outcome', thread, id, action: 'woke', runId: 'r', step: 0, ...more })
const refused = (id: string, why: string, at: number): Timed => ({ note: 'refused', thread, id, why, at })
const rejected = (id: string): Note => outcome(id, { action: 'rejected', reason: 'the store failed', runId: undefined, step: undefined })
const asked = (at: number, prompt = ['s']): Timed => ({ note: 'asked', thread, prompt, marks: ['a'], at })
const trouble = (what: string): Note => ({ note: 'trouble', what })
const taken = (at: number, epoch: number, more: object = {}): Timed => ({ note: 'leaseTaken', thread, epoch, takenOver: true, again: false, at, ...more })
const written = (epoch: number): Note => ({ note: 'written', thread, epoch, what: 'commit', began: 100, rows: [] })
const away: FaultSpan = { fault: 'away', from: 1_000, to: 2_000 }

const call = (state: string, more: object = {}) => ({ call: 'c', tool: 'order', state, ...more })
const row = (id: string, seq: number, more: object = {}) => ({ id, messageId: id, seq, role: 'signal', runId: 'r', text: '', marks: [id], calls: [], ...more })
const interrupted = { rows: [
  row('a', 1), row('s', 2, { role: 'assistant', marks: [], text: '1 ', calls: [call('call')] }),
  row('t', 3, { role: 'tool', marks: [], calls: [call('output-error', { error: 'order was interrupted. It is not known whether it took effect.' })] }),
  row('e', 4, { role: 'assistant', marks: [], text: '2 ' }),
] }
const effect = (phase: Effect['phase'], at: number): Effect => ({
  at, phase, by: '0.0', thread, run: 'r', call: 'c', tool: 'order', idempotent: false, ...(phase === 'begun' ? { record: { inHistory: true, started: true, decided: false } } : {}),
})
const starting: Note = { note: 'callsStarting', thread, calls: ['c'] }
const mail = (id: string, more: object = {}) => ({ id, ord: 2, kind: 'turn', route: 'queue', state: 'consumed', runId: 'r', step: 0, ...more })

/** A round in which one signal was sent, stored and answered, with what a case changes about it. */
function evidence(change: { notes?: Timed[]; others?: Journal[]; effects?: Effect[]; thread?: Partial<LedgerThread>; mail?: LedgerThread['mail']; spans?: FaultSpan[] } = {}): FaultEvidence {
  const calm: LedgerThread = {
    id: thread, status: 'idle', epoch: 1, owner: null, rows: [row('a', 1), row('s', 2, { role: 'assistant', marks: [], text: '1 ' })],
    mail: [{ id: 'a', ord: 1, kind: 'enter', route: 'wake', state: 'consumed', runId: 'r', step: 0 }, ...(change.mail ?? [])], runs: [{ runId: 'r', status: 'finished', epoch: 1, attempts: 1 }],
  }
  return {
    journals: [journal(0, [send('a'), stored('a'), asked(102), outcome('a'), ...(change.notes ?? [])]), ...(change.others ?? [])],
    effects: change.effects ?? [],
    ledger: { integrity: 'ok', threads: [{ ...calm, ...change.thread }] },
    spans: change.spans ?? [],
  }
}

function objections(changed: FaultEvidence): string[] {
  return Object.entries(faultChecks).flatMap(([name, check]) => (check(changed).length > 0 ? [name] : []))
}

describe('the checks of faults', () => {
  it('have nothing against a round in which all went well', () => {
    expect(judgeFaults(evidence())).toEqual([])
  })

  const gone = [send('g', 1_100), refused('g', 'store_gone', 1_200)]
  const endAbort: Note[] = [send('q'), stored('q'), { note: 'endAbort', thread, run: 'r', queued: 'q' }]
  const answer = (aborted: boolean): Note => ({ note: 'endAbortAnswer', thread, run: 'r', aborted })
  const repeated = (count: number) => Array.from({ length: count }, (_, index) => asked(500 + index))

  it.each<[string, string[], Parameters<typeof evidence>[0]]>([
    ['a send that is stored after the store was gone', ['failStop'], { spans: [away], notes: [...gone, send('h', 1_300), { note: 'accepted', thread, id: 'h', at: 1_301 }] }],
    ['a model that is called after the store was gone', ['failStop'], { spans: [away], notes: [...gone, asked(1_300)] }],
    ['a process that is ready after the store was gone', ['notReady'], { spans: [away], notes: [...gone, { note: 'readiness', ready: true, began: 1_300, at: 1_310 }] }],
    ['a failure that is logged twice', ['loggedOnce'], { notes: [trouble('the storage failed: x'), trouble('the storage failed: x')] }],
    ['a send that is refused without a fault', ['refusedForFaults'], { notes: [send('x'), refused('x', 'store_failed', 500)] }],
    ['a send that is refused after the last fault', ['refusedForFaults'], { spans: [{ fault: 'full', from: 1, to: 2 }], notes: [{ note: 'calm' }, send('x'), refused('x', 'store_full', 500)] }],
    ['a send that is refused with another code', ['refusedForFaults'], { spans: [{ fault: 'full', from: 1, to: 2 }], notes: [send('x'), refused('x', 'store_corrupt', 500)] }],
    ['a rejected send that is stored', ['refusedIsNotStored'], { spans: [away], notes: [send('x'), refused('x', 'store_gone', 500), rejected('x')], mail: [mail('x')] }],
    ['a model that is called nine times with one prompt', ['noStorm'], { notes: repeated(9) }],
    ['a run that is parked', ['noneParked'], { thread: { runs: [{ runId: 'r', status: 'parked', epoch: 1, attempts: 11 }] } }],
    ['a process that takes its own thread over', ['oneTaker'], { notes: [written(1), taken(500, 2)] }],
    ['a result that its own process dropped', ['noResultLost'], { thread: interrupted, notes: [starting, taken(700, 2, { again: true })], effects: [effect('begun', 500), effect('done', 600)] }],
    ['a call that never began and counts as interrupted', ['interruptedHadBegun'], { thread: interrupted }],
    ['a signal that an abort left', ['clearedAtEnd'], { notes: [...endAbort, answer(false), outcome('q', { action: 'queued' })], mail: [mail('q')] }],
    ['an abort that answers something else', ['trueAborts'], { notes: [...endAbort, answer(true)], mail: [mail('q', { state: 'cancelled', runId: null })] }],
    ['a run that was aborted without a call', ['trueAborts'], { thread: { runs: [{ runId: 'r', status: 'aborted', epoch: 1, attempts: 1 }] } }],
  ])('object to %s', (_, expected, change) => {
    expect(objections(evidence(change))).toEqual(expect.arrayContaining(expected))
  })

  it.each<[string, Parameters<typeof evidence>[0]]>([
    ['refusals while the store was gone', { spans: [away], notes: [...gone, rejected('g'), { note: 'readiness', ready: false, began: 1_300, at: 1_310 }, { note: 'readiness', ready: true, began: 2_300, at: 2_310 }] }],
    ['a send whose answer was lost', { spans: [away], notes: [send('x'), { note: 'storeFailed', method: 'accept', thread, lost: true, ids: ['x'] }, refused('x', 'store_failed', 500), rejected('x')] }],
    ['a model that is called again after each failure', { notes: repeated(7) }],
    ['a lease that a failed host gave up', { notes: [written(1), taken(500, 2, { again: true })] }],
    ['a signal that an abort cancelled', { notes: [...endAbort, answer(false), outcome('q', { action: 'discarded' })], mail: [mail('q', { state: 'cancelled', runId: null })] }],
    ['a result that was lost while the store failed', { thread: interrupted, spans: [{ fault: 'locked', from: 400, to: 650 }], notes: [starting, taken(700, 2, { again: true })], effects: [effect('begun', 500), effect('done', 600)] }],
  ])('have nothing against %s', (_, change) => {
    expect(judgeFaults(evidence(change))).toEqual([])
  })
})
