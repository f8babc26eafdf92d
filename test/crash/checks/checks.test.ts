import { describe, expect, it } from 'vitest'
import type { Journal, Note, Noted } from '../journal.ts'
import type { Ledger, LedgerThread } from '../ledger.ts'
import { checks, judge, type Evidence } from './index.ts'

const thread = 't0'

/** Notes of one process, a microsecond apart unless they say otherwise. */
function journal(slot: number, notes: Array<Note & { at?: number }>, life = 0): Journal {
  return { slot, life, notes: notes.map((note, index): Noted => ({ at: 100 + index, ...note })) }
}

const send = (id: string): Note => ({ note: 'send', thread, id, kind: 'message' })
const stored = (id: string): Note => ({ note: 'stored', thread, id })
const asked = (...prompt: string[]): Note => ({ note: 'asked', thread, prompt, marks: [] })
const effect = (call: string, idempotent = false): Note => ({ note: 'effect', thread, run: 'r', call, tool: 'order', idempotent })
const written = (epoch: number, began: number): Note => ({ note: 'written', thread, epoch, what: 'commit', began, rows: [] })
const seen = (cursor: string, type = 'text-delta', more: object = {}): Note => ({ note: 'seen', watcher: '0/t0', thread, cursor, type, ...more })
const snapshot = (cursor: string, ids: string[] = []): Note => seen(cursor, 'data-thread-snapshot', { reason: 'resumed', ids })

const mail = (id: string, ord: number, more: object = {}) => ({ id, ord, kind: 'enter', route: 'wake', state: 'consumed', runId: 'r', ...more })
const row = (id: string, seq: number, more: object = {}) => ({ id, seq, role: 'signal', runId: 'r', text: '', marks: [id], calls: [], ...more })
const said = (seq: number, more: object = {}) => row(`said-${seq}`, seq, { role: 'assistant', text: 'Done.', marks: [], ...more })

/** A round in which one signal was sent, stored and answered, with what a case changes about it. */
function evidence(change: { journals?: Journal[]; thread?: Partial<LedgerThread>; ledger?: Partial<Ledger>; watching?: Evidence['watching'] } = {}): Evidence {
  const calm: LedgerThread = {
    id: thread, status: 'idle', epoch: 1, owner: null, mail: [mail('a', 1)], rows: [row('a', 1), said(2)], runs: [{ runId: 'r', status: 'finished', epoch: 1, attempts: 1 }],
  }
  return {
    journals: change.journals ?? [journal(0, [send('a'), stored('a')])],
    ledger: { integrity: 'ok', threads: [{ ...calm, ...change.thread }], ...change.ledger },
    watching: change.watching ?? 'all',
  }
}

/** Which checks object. */
function objections(changed: Evidence): string[] {
  return Object.entries(checks).flatMap(([name, check]) => (check(changed).length > 0 ? [name] : []))
}

describe('the checker', () => {
  it('has nothing against a round in which all went well', () => {
    expect(judge(evidence())).toEqual([])
  })

  const twoSends = [journal(0, [send('a'), stored('a'), send('b'), stored('b')])]

  it.each<[string, string[], Evidence]>([
    ['a damaged file', ['soundFile'], evidence({ ledger: { integrity: 'row 7 missing from index' } })],
    ['a confirmed signal that the store does not know', ['nothingLost'], evidence({ thread: { mail: [], rows: [] } })],
    ['a confirmed signal that is not in history', ['nothingLost', 'answered'], evidence({ thread: { rows: [said(2)] } })],
    ['a signal that is there twice', ['nothingTwice'], evidence({ thread: { rows: [row('a', 1), row('again', 2, { marks: ['a'] }), said(3)] } })],
    ['a signal that nobody sent', ['nothingTwice'], evidence({ thread: { mail: [mail('a', 1), mail('ghost', 2)], rows: [row('a', 1), row('ghost', 2), said(3)] } })],
    ['a prompt that has a signal twice', ['shownOnce'], evidence({ journals: [journal(0, [send('a'), stored('a'), { note: 'asked', thread, prompt: ['m'], marks: ['a', 'a'] }])] })],
    ['acceptance against the order of sends', ['inOrder'], evidence({ journals: twoSends, thread: { mail: [mail('b', 1), mail('a', 2)], rows: [row('b', 1), row('a', 2), said(3)] } })],
    ['history against the order of acceptance', ['inOrder'], evidence({ journals: twoSends, thread: { mail: [mail('a', 1), mail('b', 2)], rows: [row('b', 1), row('a', 2), said(3)] } })],
    ['a signal after the last answer', ['answered'], evidence({ thread: { rows: [said(1), row('a', 2)] } })],
    ['an answer without a word', ['answered'], evidence({ thread: { rows: [row('a', 1), said(2, { text: '' })] } })],
    ['a thread that still runs', ['nothingStuck'], evidence({ thread: { status: 'running' } })],
    ['a signal that still waits', ['nothingStuck'], evidence({ thread: { mail: [mail('a', 1, { state: 'taken' })] } })],
    ['a run that never ended', ['nothingStuck'], evidence({ thread: { runs: [{ runId: 'r', status: 'running', epoch: 1, attempts: 3 }] } })],
    ['a call without a result', ['callsSettled'], evidence({ thread: { rows: [row('a', 1), said(2, { calls: [{ call: 'c', tool: 'order', state: 'call' }] })] } })],
    ['an effect that was had twice', ['noEffectTwice'], evidence({ journals: [journal(0, [send('a'), stored('a'), effect('c')]), journal(1, [effect('c')])] })],
    ['a write of an old epoch after one of a newer', ['oneWriter'], evidence({ journals: [journal(0, [send('a'), stored('a'), { ...written(1, 300), at: 310 }]), journal(1, [{ ...written(2, 200), at: 210 }])] })],
    ['an epoch with two holders', ['oneHolder'], evidence({ journals: [journal(0, [send('a'), stored('a'), written(1, 100)]), journal(1, [written(1, 100)])] })],
    ['a word that was made after another process had the thread', ['noLateWords'], evidence({ journals: [journal(0, [send('a'), stored('a'), seen('1.1', 'text-delta', { words: [250] })]), journal(1, [{ ...written(2, 200), at: 210 }])] })],
    ['a prompt that does not begin with the one before', ['samePrompts'], evidence({ journals: [journal(0, [send('a'), stored('a'), asked('s', 'x')]), journal(1, [asked('s', 'y', 'z')])] })],
    ['two prompts of one length that differ', ['samePrompts'], evidence({ journals: [journal(0, [send('a'), stored('a'), asked('s', 'x')]), journal(1, [asked('s', 'y')])] })],
    ['one place that two saw differently', ['sameForAll'], evidence({ journals: [journal(0, [send('a'), stored('a'), seen('1.1', 'start')]), journal(1, [{ ...seen('1.1', 'finish'), watcher: '1/t0' } as Note])] })],
    ['a chunk that came twice', ['noGap'], evidence({ journals: [journal(0, [send('a'), stored('a'), seen('1.1', 'start'), seen('1.1', 'start')])] })],
    ['a chunk of an old epoch after one of a newer', ['noGap'], evidence({ journals: [journal(0, [send('a'), stored('a'), seen('2.1', 'start'), seen('1.9')])] })],
    ['a hole within an epoch', ['noGap'], evidence({ journals: [journal(0, [send('a'), stored('a'), seen('1.1', 'start'), seen('1.3')])] })],
    ['a hole between two lives of a watcher', ['noGap'], evidence({ journals: [journal(0, [send('a'), stored('a'), seen('1.1', 'start')]), journal(0, [seen('1.3')], 1)] })],
    ['an epoch that only another saw', ['noGap'], evidence({ journals: [journal(0, [send('a'), stored('a'), seen('1.1', 'finish'), seen('3.1', 'start')]), journal(1, [{ ...seen('2.1', 'start'), watcher: '1/t0' } as Note])] })],
  ])('finds %s', (_, found, changed) => {
    expect(objections(changed)).toEqual(found)
  })

  it.each<[string, Evidence]>([
    ['an idempotent tool that ran twice', evidence({ journals: [journal(0, [send('a'), stored('a'), effect('c', true)]), journal(1, [effect('c', true)])] })],
    ['a parked run in place of an answer', evidence({ thread: { rows: [row('a', 1)], runs: [{ runId: 'r', status: 'parked', epoch: 1, attempts: 11 }] } })],
    ['a send that was never confirmed and is gone', evidence({ journals: [journal(0, [send('a'), stored('a'), send('b')])] })],
    ['the same prompt once more', evidence({ journals: [journal(0, [send('a'), stored('a'), asked('s', 'x')]), journal(1, [asked('s', 'x'), asked('s', 'x', 'y')])] })],
    ['a word that was made before another process had the thread', evidence({ journals: [journal(0, [send('a'), stored('a'), seen('1.1', 'text-delta', { words: [150] })]), journal(1, [{ ...written(2, 200), at: 210 }])] })],
    ['a hole that a snapshot tells of', evidence({ journals: [journal(0, [send('a'), stored('a'), seen('1.1', 'start'), snapshot('1.4'), seen('1.6')])] })],
    ['deltas that a snapshot joined', evidence({ journals: [journal(0, [send('a'), stored('a'), snapshot('1.1'), seen('1.2', 'text-start'), seen('1.5', 'text-delta', { words: [1, 2, 3] })])] })],
    ['an epoch of another process, where only one\'s own are watched', evidence({ watching: 'own', journals: [journal(0, [send('a'), stored('a'), seen('1.1', 'finish'), seen('3.1', 'start')]), journal(1, [{ ...seen('2.1', 'start'), watcher: '1/t0' } as Note])] })],
  ])('allows %s', (_, changed) => {
    expect(objections(changed)).toEqual([])
  })
})
