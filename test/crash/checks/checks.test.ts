import { describe, expect, it } from 'vitest'
import type { Effect } from '../effects.ts'
import type { Journal, Note, Noted, SeenMessage } from '../journal.ts'
import type { Ledger, LedgerThread } from '../ledger.ts'
import { checks, judge, type Evidence } from './index.ts'
import { nextBoundary, oneRun } from './peace.ts'

const thread = 't0'

/** Notes of one process, a microsecond apart unless they say otherwise. */
function journal(slot: number, notes: Array<Note & { at?: number }>, life = 0): Journal {
  return { slot, life, notes: notes.map((note, index): Noted => ({ at: 100 + index, ...note })) }
}

const send = (id: string): Note => ({ note: 'send', thread, id, kind: 'message' })
const stored = (id: string): Note => ({ note: 'stored', thread, id })
const outcome = (id: string, more: object = {}): Note => ({ note: 'outcome', thread, id, action: 'woke', runId: 'r', step: 0, ...more })
const asked = (...prompt: string[]): Note => ({ note: 'asked', thread, prompt, marks: ['a', 'b'] })
const leftAtClose: Note = { note: 'trouble', what: `runs or titles did not end when they were aborted; the process closes without them {"threadIds":["${thread}"]}` }
const written = (epoch: number, began: number): Note => ({ note: 'written', thread, epoch, what: 'commit', began, rows: [] })
const said = (cursor: string, type = 'text-delta', more: object = {}): Note => ({ note: 'said', thread, cursor, type, ...more })
const seen = (cursor: string, type = 'text-delta', more: object = {}): Note => ({ note: 'seen', watcher: '0/t0', thread, cursor, type, ...more })
const watching = (after?: string): Note => ({ note: 'watching', watcher: '0/t0', thread, ...(after === undefined ? {} : { after }) })
const snapshot = (cursor: string, messages: SeenMessage[] = [], reason = 'resumed'): Note => seen(cursor, 'data-thread-snapshot', { reason, messages })

const mail = (id: string, ord: number, more: object = {}) => ({ id, ord, kind: 'enter', route: 'wake', state: 'consumed', runId: 'r', step: 0, ...more })
const row = (id: string, seq: number, more: object = {}) => ({ id, messageId: id, seq, role: 'signal', runId: 'r', text: '', marks: [id], calls: [], ...more })
const spoken = (seq: number, more: object = {}) => row(`said-${seq}`, seq, { role: 'assistant', text: '11 12 13 ', marks: [], ...more })
const call = (state: string, more: object = {}) => ({ call: 'c', tool: 'order', state, ...more })
/** A step that asks for a call, and the row with what became of it. */
const worked = (...settled: Array<ReturnType<typeof call>>) => [
  row('a', 1), spoken(2, { calls: [call('call')] }), ...settled.map((one, index) => row(`tool-${index}`, 3 + index, { role: 'tool', marks: [], calls: [one] })), spoken(9),
]
const record = { inHistory: true, started: true, decided: false }
const effect = (phase: Effect['phase'], more: Partial<Effect> = {}): Effect => ({
  at: 50, phase, by: '0.0', thread, run: 'r', call: 'c', tool: 'order', idempotent: false, ...(phase === 'begun' ? { record } : {}), ...more,
})

/** A round in which one signal was sent, stored and answered, with what a case changes about it. */
function evidence(change: { notes?: Array<Note & { at?: number }>; others?: Journal[]; effects?: Effect[]; thread?: Partial<LedgerThread>; ledger?: Partial<Ledger> } = {}): Evidence {
  const calm: LedgerThread = {
    id: thread, status: 'idle', epoch: 1, owner: null, mail: [mail('a', 1)], rows: [row('a', 1), spoken(2)], runs: [{ runId: 'r', status: 'finished', epoch: 1, attempts: 1 }],
  }
  return {
    journals: [journal(0, [send('a'), stored('a'), asked('s'), ...(change.notes ?? [])]), ...(change.others ?? [])],
    effects: change.effects ?? [],
    ledger: { integrity: 'ok', threads: [{ ...calm, ...change.thread }], ...change.ledger },
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

  const b = [send('b'), stored('b')]
  const late = 10_000_000
  const telling = [said('1.1', 'start'), said('1.2', 'data-user-message', { id: 'a' }), said('1.3', 'text-delta', { words: [11] }), said('1.4', 'text-delta', { words: [12] }), said('1.5', 'finish')]

  it.each<[string, string[], Evidence]>([
    ['a damaged file', ['soundFile'], evidence({ ledger: { integrity: 'row 7 missing from index' } })],
    ['a confirmed signal that the store does not know', ['nothingLost'], evidence({ thread: { mail: [], rows: [] } })],
    ['a confirmed signal that is not in history', ['nothingLost', 'answered'], evidence({ thread: { rows: [spoken(2)] } })],
    ['a signal that is there twice', ['nothingTwice'], evidence({ thread: { rows: [row('a', 1), row('again', 2, { marks: ['a'] }), spoken(3)] } })],
    ['a signal that nobody sent', ['nothingTwice', 'answered'], evidence({ thread: { mail: [mail('a', 1), mail('ghost', 2)], rows: [row('a', 1), row('ghost', 2), spoken(3)] } })],
    ['a prompt that has a signal twice', ['shownOnce'], evidence({ notes: [{ note: 'asked', thread, prompt: ['s'], marks: ['a', 'a'] }] })],
    ['acceptance against the order of sends', ['inOrder'], evidence({ notes: b, thread: { mail: [mail('b', 1), mail('a', 2)], rows: [row('b', 1), row('a', 2), spoken(3)] } })],
    ['history against the order of acceptance', ['inOrder'], evidence({ notes: b, thread: { mail: [mail('a', 1), mail('b', 2)], rows: [row('b', 1), row('a', 2), spoken(3)] } })],
    ['a signal after the last answer', ['answered'], evidence({ thread: { rows: [spoken(1), row('a', 2)] } })],
    ['an answer without a word', ['answered'], evidence({ thread: { rows: [row('a', 1), spoken(2, { text: '' })] } })],
    ['a signal that no model was shown', ['answered'], evidence({ notes: [send('x'), stored('x')], thread: { mail: [mail('a', 1), mail('x', 2)], rows: [row('a', 1), row('x', 2), spoken(3)] } })],
    ['a signal that only a later run answered', ['answered'], evidence({ thread: { rows: [row('a', 1), spoken(2, { runId: 'q' })], runs: [{ runId: 'r', status: 'finished', epoch: 1, attempts: 1 }, { runId: 'q', status: 'finished', epoch: 1, attempts: 1 }] } })],
    ['a signal whose run failed', ['answered'], evidence({ thread: { runs: [{ runId: 'r', status: 'failed', epoch: 1, attempts: 1 }] } })],
    ['a thread that still runs', ['nothingStuck'], evidence({ thread: { status: 'running' } })],
    ['a signal that still waits', ['nothingStuck'], evidence({ thread: { mail: [mail('a', 1, { state: 'taken' })] } })],
    ['a run that never ended', ['answered', 'nothingStuck'], evidence({ thread: { runs: [{ runId: 'r', status: 'running', epoch: 1, attempts: 3 }] } })],
    ['an outcome `discarded` of what was answered', ['trueOutcomes'], evidence({ notes: [outcome('a', { action: 'discarded' })] })],
    ['an outcome that names another run', ['trueOutcomes'], evidence({ notes: [outcome('a', { runId: 'q' })] })],
    ['an outcome that names another step', ['trueOutcomes'], evidence({ notes: [outcome('a', { action: 'delivered', step: 3 })] })],
    ['an outcome `persisted` of what started a run', ['trueOutcomes'], evidence({ notes: [outcome('a', { action: 'persisted' })] })],
    ['an outcome of what is not stored', ['trueOutcomes'], evidence({ notes: [send('b'), outcome('b')] })],
    ['a send without an outcome in a process that came to its end', ['allAnswered'], evidence({ notes: [{ note: 'stopping' }, { note: 'closed' }] })],
    ['a send that was neither confirmed nor refused', ['allAnswered'], evidence({ notes: [outcome('a'), send('b'), outcome('b', { action: 'rejected', reason: 'closed' }), { note: 'stopping' }, { note: 'closed' }] })],
    ['a send that was refused for nothing', ['trueRefusals'], evidence({ notes: [send('b'), { note: 'refused', thread, id: 'b', why: 'store_full' }] })],
    ['a send that was refused before the process was asked to end', ['trueRefusals'], evidence({ notes: [send('b'), { note: 'refused', thread, id: 'b', why: 'closed' }, { note: 'stopping' }] })],
    ['a send that was refused and is stored', ['trueRefusals'], evidence({ notes: [send('b'), { note: 'stopping' }, { note: 'refused', thread, id: 'b', why: 'closed' }], thread: { mail: [mail('a', 1), mail('b', 2)], rows: [row('a', 1), row('b', 2), spoken(3)] } })],
    ['a complaint that nothing explains', ['noTrouble'], evidence({ notes: [{ note: 'trouble', what: 'a run could not be aborted {}' }] })],
    ['a lease that a failure of the store left unconfirmed', ['noTrouble'], evidence({ notes: [{ note: 'trouble', what: 'the host of a thread failed; the thread is claimed again {"error":"HeedError: The lease of thread t is not confirmed: The database is gone."}' }] })],
    ['a run that a process left that closed, although the store had answered', ['noTrouble'], evidence({ notes: [written(1, 0), leftAtClose] })],
    ['a run that a process left that had no processor before it closed', ['noTrouble'], evidence({ notes: [outcome('a'), { note: 'stalled', ms: 214 }, { note: 'stopping' }, leftAtClose] })],
    ['a call without a result', ['callsSettled'], evidence({ thread: { rows: worked() } })],
    ['a call with two results', ['callsSettled'], evidence({ effects: [effect('begun'), effect('done')], thread: { rows: worked(call('result', { done: 'c' }), call('result', { done: 'c' })) } })],
    ['a step that is in history twice', ['callsSettled'], evidence({ effects: [effect('begun'), effect('done')], thread: { rows: [...worked(call('result', { done: 'c' })), spoken(10, { calls: [call('call')] })] } })],
    ['a result that no tool came to', ['callsSettled'], evidence({ effects: [effect('begun')], thread: { rows: worked(call('result', { done: 'c' })) } })],
    ['a call that was denied and ran', ['callsSettled'], evidence({ effects: [effect('begun'), effect('done')], thread: { rows: worked(call('output-denied')) } })],
    ['a call that failed', ['callsSettled'], evidence({ effects: [effect('begun')], thread: { rows: worked(call('output-error', { error: 'EIO' })) } })],
    ['an effect that was had twice', ['noEffectTwice'], evidence({ effects: [effect('begun'), effect('begun', { by: '1.0' }), effect('done', { by: '1.0' })], thread: { rows: worked(call('result', { done: 'c' })) } })],
    ['an effect that history knows nothing of', ['effectsKnown'], evidence({ effects: [effect('begun')] })],
    ['an effect before its step was stored', ['recordedFirst'], evidence({ effects: [effect('begun', { record: { ...record, inHistory: false } }), effect('done')], thread: { rows: worked(call('result', { done: 'c' })) } })],
    ['an effect before it was stored that it begins', ['recordedFirst'], evidence({ effects: [effect('begun', { record: { ...record, started: false } }), effect('done')], thread: { rows: worked(call('result', { done: 'c' })) } })],
    ['a write of an old epoch after one of a newer', ['oneWriter'], evidence({ notes: [{ ...written(1, 300), at: 310 }], others: [journal(1, [{ ...written(2, 200), at: 210 }])] })],
    ['an epoch with two holders', ['oneHolder'], evidence({ notes: [written(1, 100)], others: [journal(1, [written(1, 100)])] })],
    ['a word that was made after another process had the thread', ['noLateWords'], evidence({ notes: [seen('1.1', 'text-delta', { words: [250] })], others: [journal(1, [{ ...written(2, 200), at: 210 }])] })],
    ['a prompt that does not begin with the one before', ['samePrompts'], evidence({ notes: [asked('s', 'x')], others: [journal(1, [asked('s', 'y', 'z')])] })],
    ['two prompts of one length that differ', ['samePrompts'], evidence({ notes: [asked('s', 'x')], others: [journal(1, [asked('s', 'y')])] })],
    ['one place that two saw differently', ['sameForAll'], evidence({ notes: [seen('1.1', 'start')], others: [journal(1, [{ ...seen('1.1', 'finish'), watcher: '1/t0' } as Note])] })],
    ['a place that was seen as nobody said it', ['sameForAll'], evidence({ notes: [said('1.1', 'start'), seen('1.1', 'finish')] })],
    ['a chunk that came twice', ['noGap'], evidence({ notes: [seen('1.1', 'start'), seen('1.1', 'start')] })],
    ['a chunk of an old epoch after one of a newer', ['noGap'], evidence({ notes: [seen('2.1', 'start'), seen('1.9')] })],
    ['a hole within an epoch', ['noGap'], evidence({ notes: [...telling, seen('1.1', 'start'), seen('1.5', 'finish')] })],
    ['a hole between two lives of a watcher', ['noGap'], evidence({ notes: [...telling, seen('1.1', 'start')], others: [journal(0, [watching('1.1'), seen('1.5', 'finish')], 1)] })],
    ['an epoch that was said and not seen', ['noGap'], evidence({ notes: [...telling, said('2.1', 'start'), said('3.1', 'start'), seen('1.5', 'finish'), seen('3.1', 'start')] })],
    ['a hole right after a snapshot', ['noGap'], evidence({ notes: [...telling, snapshot('1.1', [{ id: 'a', role: 'signal', text: '' }]), seen('1.5', 'finish')] })],
    ['a watcher that hears nothing any more', ['nobodyDeaf'], evidence({ notes: [watching(), ...telling, seen('1.1', 'start'), { note: 'stopping', at: late }] })],
    ['a watcher that never heard anything', ['nobodyDeaf'], evidence({ notes: [watching(), ...telling, { note: 'stopping', at: late }] })],
    ['a snapshot of what is not in history', ['trueSnapshots'], evidence({ notes: [snapshot('1.1', [{ id: 'ghost', role: 'signal', text: '' }])] })],
    ['a snapshot without a message from its middle', ['trueSnapshots'], evidence({ notes: [snapshot('1.1', [{ id: 'a', role: 'signal', text: '' }, { id: 'said-3', role: 'assistant', text: '' }])], thread: { rows: [row('a', 1), spoken(2), spoken(3)] } })],
    ['a snapshot without a signal that was told before it', ['trueSnapshots'], evidence({ notes: [...telling, snapshot('1.5')] })],
    ['a snapshot without words that were said before it', ['trueSnapshots'], evidence({ notes: [...telling, snapshot('1.5', [{ id: 'a', role: 'signal', text: '' }, { id: 'said-2', role: 'assistant', text: '11 ' }])] })],
    ['a snapshot with other words than history', ['trueSnapshots'], evidence({ notes: [snapshot('1.5', [{ id: 'a', role: 'signal', text: '' }, { id: 'said-2', role: 'assistant', text: '99 ' }])] })],
    ['words that a snapshot had and that are said again', ['trueSnapshots'], evidence({ notes: [...telling, snapshot('1.2', [{ id: 'a', role: 'signal', text: '' }, { id: 'said-2', role: 'assistant', text: '11 12 13 ' }]), seen('1.3', 'text-delta', { words: [11] })] })],
    ['watchers that are told by snapshots alone', ['heardLive'], evidence({
      notes: [{ note: 'calm' }, ...Array.from({ length: 60 }, (_, index) => said(`1.${index + 1}`, 'step-start'))],
      others: [journal(1, [{ note: 'calm', at: 102 }, { note: 'stopping', at: 1_000 }])],
    })],
    ['a snapshot where nothing had failed', ['noSnapshotInCalm'], evidence({ notes: [{ note: 'calm' }, ...telling, snapshot('1.5', [{ id: 'a', role: 'signal', text: '' }, { id: 'said-2', role: 'assistant', text: '11 12 13 ' }], 'behind'), { note: 'stopping' }] })],
  ])('finds %s', (_, found, changed) => {
    expect(objections(changed)).toEqual(found)
  })

  it.each<[string, Evidence]>([
    ['a run that a process left that closed before the store answered', evidence({ notes: [leftAtClose, written(1, 0)] })],
    ['a run that a process left that had no processor while it closed', evidence({ notes: [outcome('a'), { note: 'stopping' }, { note: 'stalled', ms: 214 }, leftAtClose] })],
    ['an idempotent tool that ran twice', evidence({ effects: [effect('begun', { idempotent: true }), effect('begun', { idempotent: true, by: '1.0' }), effect('done', { by: '1.0' })], thread: { rows: worked(call('result', { done: 'c' })) } })],
    ['a tool that was interrupted', evidence({ effects: [effect('begun')], thread: { rows: worked(call('output-error', { error: 'order was interrupted: …' })) } })],
    ['a call that was decided', evidence({ effects: [effect('begun', { record: { ...record, started: false, decided: true } }), effect('done')], thread: { rows: worked(call('result', { done: 'c' })) } })],
    ['a call that began late and of which the model was told that nobody knows', evidence({ effects: [effect('begun', { record: { ...record, started: false } })], thread: { rows: worked(call('output-error', { error: 'order was interrupted: … It is not known whether it took effect.' })) } })],
    ['a parked run in place of an answer', evidence({ thread: { rows: [row('a', 1)], runs: [{ runId: 'r', status: 'parked', epoch: 1, attempts: 11 }] } })],
    ['a send that was never confirmed and is gone', evidence({ notes: [send('b')] })],
    ['a send that a process refused when it ended', evidence({ notes: [outcome('a'), { note: 'stopping' }, send('b'), { note: 'refused', thread, id: 'b', why: 'closed' }, outcome('b', { action: 'rejected', reason: 'closed' }), { note: 'closed' }] })],
    ['a lease that ran out', evidence({ notes: [{ note: 'trouble', what: 'the host of a thread failed; the thread is claimed again {"error":"The lease of thread t0 expired. The thread continues here unless another process has claimed it."}' }] })],
    ['a lease that a process without a moment could not renew', evidence({ notes: [{ note: 'trouble', what: 'the host of a thread failed; the thread is claimed again {"error":"HeedError: The lease of thread t is not confirmed: The lease of this process could not be renewed."}' }] })],
    ['the same prompt once more', evidence({ notes: [asked('s', 'x')], others: [journal(1, [asked('s', 'x'), asked('s', 'x', 'y')])] })],
    ['a word that was made before another process had the thread', evidence({ notes: [seen('1.1', 'text-delta', { words: [150] })], others: [journal(1, [{ ...written(2, 200), at: 210 }])] })],
    ['a hole that a snapshot tells of', evidence({ notes: [...telling, seen('1.1', 'start'), snapshot('1.4', [{ id: 'a', role: 'signal', text: '' }, { id: 'said-2', role: 'assistant', text: '11 12 13 ' }]), seen('1.5', 'finish')] })],
    ['deltas that a snapshot joined', evidence({ notes: [...telling, snapshot('1.2', [{ id: 'a', role: 'signal', text: '' }]), seen('1.4', 'text-delta', { words: [11, 12] }), seen('1.5', 'finish')] })],
    ['an echo that a snapshot had', evidence({ notes: [...telling, snapshot('1.1', [{ id: 'a', role: 'signal', text: '' }]), seen('1.3', 'text-delta', { words: [11] })] })],
    ['a chunk that was said as the process ended', evidence({ notes: [watching(), ...telling, seen('1.1', 'start'), { note: 'stopping' }] })],
  ])('allows %s', (_, changed) => {
    expect(objections(changed)).toEqual([])
  })

  const began = (call: number, at: number): Note & { at: number } => ({ note: 'asked', thread, prompt: ['s'], marks: [], call, at })
  const over = (call: number, at: number): Note & { at: number } => ({ note: 'over', thread, call, at })

  it('finds two runs on a thread at once', () => {
    const first = [began(0, 1_000), over(0, 2_000)]
    expect(oneRun(evidence({ notes: first, others: [journal(1, [began(0, 2_000), over(0, 3_000)])] }))).toEqual([])
    expect(oneRun(evidence({ notes: first, others: [journal(1, [began(0, 1_500), over(0, 3_000)])] }))).toHaveLength(1)
    expect(oneRun(evidence({ notes: first, effects: [effect('begun', { by: '1.0', at: 1_900 }), effect('done', { by: '1.0', at: 2_500 })] }))).toHaveLength(1)
  })

  it('finds a boundary that passed by what was accepted', () => {
    const accepted: Note & { at: number } = { note: 'accepted', thread, id: 'a', at: 1_000 }
    const drain = (from: number, rows: string[]): Note & { at: number } => ({ note: 'written', thread, epoch: 1, what: 'drain', began: from, rows, at: from + 10 })
    const found = { mail: [mail('a', 1, { route: 'deliver', step: 1 })] }
    expect(nextBoundary(evidence({ notes: [accepted], others: [journal(1, [drain(900, []), drain(1_100, ['a'])])], thread: found }))).toEqual([])
    expect(nextBoundary(evidence({ notes: [accepted], others: [journal(1, [drain(1_100, []), drain(1_200, ['a'])])], thread: found }))).toHaveLength(1)
  })
})
