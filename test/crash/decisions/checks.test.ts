import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { orderedJSON } from '../../../src/base/json.ts'
import type { Effect } from '../effects.ts'
import type { Journal, Note, Noted } from '../journal.ts'
import type { LedgerThread } from '../ledger.ts'
import { checks, judge } from './checks.ts'
import type { Click, Shown, Told } from './notes.ts'
import { flawsOf } from './office.ts'
import type { DecisionEvidence, StoredCall, Truth } from './truth.ts'

const thread = 't0'
const args = { n: 'n1' }
const digestOf = (tool: string, given: unknown) => createHash('sha256').update(orderedJSON([tool, given])).digest('base64url')
const shown = (more: Partial<Shown> = {}): Shown => ({ approvalId: 'r1', toolCallId: 'c', tool: 'pay', args, path: ['chief', 'pay'], digest: digestOf('pay', args), kind: 'approval', ...more })
const click = (more: Partial<Click> = {}): Note => ({ note: 'decides', click: 'k1', decider: 'ann@0.0', form: 'request', agent: 'chief', thread, run: 'r', shown: shown(), approved: true, ...more })
const told = (more: Partial<Told> = {}): Told => ({ approvalId: 'r1', approved: true, by: 'ann@0.0', at: 7, ...more })
const decided = (more: Partial<Told> = {}, id = 'k1'): Note => ({ note: 'decided', click: id, told: told(more) })
const refused = (code: string, more: { told?: Told; field?: string } = {}, id = 'k1'): Note => ({ note: 'undecided', click: id, code, ...more })
const record = { inHistory: true, started: true, decided: true }
const effect = (phase: Effect['phase'], more: Partial<Effect> = {}): Effect => ({
  at: 50, phase, by: '0.0', thread, run: 'r', call: 'c', tool: 'pay', idempotent: false, agent: 'chief', args, ...(phase === 'done' ? {} : { record }), ...more,
})
const ran = [effect('begun'), effect('done')]
const stored = (more: Partial<StoredCall> = {}): StoredCall => ({
  thread, run: 'r', status: 'finished', call: 'c', tool: 'pay', args, asked: 1, outcomes: [{ state: 'result', result: { done: 'c', n: 'n1' } }], ...more,
})
const order = (data: object, effects: Effect[] = [effect('begun', { tool: 'order', data: { click: 'k1' } }), effect('done', { tool: 'order' })]) => ({
  notes: [click({ shown: shown({ tool: 'order', path: ['chief', 'order'], digest: digestOf('order', args), kind: 'suspend' }), ...data }), decided({ approved: undefined as never })],
  effects, calls: [stored({ tool: 'order' })], made: [{ ...told({ approved: undefined as never }), thread, approvalId: 'r1' }], clicks: [{ thread, click: 'k1', made: told({ approved: undefined as never }) }],
})
const denied = (reason: string) => stored({ outcomes: [{ state: 'output-denied', reason }] })
const failed = (error: string, more: Partial<StoredCall> = {}) => stored({ outcomes: [{ state: 'output-error', error }], ...more })

interface Change extends Partial<Truth> {
  runs?: LedgerThread['runs']
  notes?: Note[]
  effects?: Effect[]
  killed?: boolean
}

function journal(notes: Note[]): Journal {
  return { slot: 0, life: 0, notes: notes.map((note, index): Noted => ({ at: 100 + index, ...note })) }
}

/** A round in which one call was shown, approved and run, with what a case changes about it. */
function evidence({ notes = [click(), decided()], effects = ran, killed, runs = [], ...truth }: Change = {}): DecisionEvidence {
  const calm: LedgerThread = { id: thread, status: 'idle', epoch: 1, owner: null, mail: [], rows: [], runs: [] }
  const row: LedgerThread['rows'][number] = {
    id: 'a', messageId: 'a', seq: 1, role: 'assistant', runId: 'r', text: '', marks: [], calls: (truth.calls ?? [stored()]).map(({ call, tool }) => ({ call, tool, state: 'call' })),
  }
  return {
    journals: [journal([...notes, ...(killed ? [] : [{ note: 'closed' } as const])])],
    effects,
    ledger: { integrity: 'ok', threads: [{ ...calm, rows: [row], runs }] },
    truth: { made: [{ ...told(), thread, approvalId: 'r1' }], clicks: [{ thread, click: 'k1', made: told() }], calls: [stored()], foreign: [], ...truth },
  }
}

function objections(changed: DecisionEvidence): string[] {
  return Object.entries(checks).flatMap(([name, check]) => ((check?.(changed) ?? []).length > 0 ? [name] : []))
}

const no = { approved: false, reason: 'k1' }
const declined = { made: [{ ...told(no), thread, approvalId: 'r1' }], clicks: [{ thread, click: 'k1', made: told(no) }], calls: [denied('k1')], notes: [click({ approved: false }), decided(no)] }
const interrupted = 'pay was interrupted: … It is not known whether it took effect.'
const begins: Note[] = [click(), decided(), { note: 'begins', thread, calls: ['c'] }]
const written = (began: number): Note => ({ note: 'written', thread, epoch: 1, what: 'commit', began, rows: [] })
const left: Note = { note: 'trouble', what: `runs or titles did not end when they were aborted; the process closes without them {"threadIds":["${thread}"]}` }
const abortedRun = { runId: 'r', status: 'aborted', epoch: 1, attempts: 1 }
const leftRun = { calls: [failed(interrupted)], effects: [] }
const stopped = 'pay was stopped: the run was aborted.'
const notRun = 'The run was aborted before this call began. The call was not run.'

describe('the checker of decisions', () => {
  it('has nothing against rounds in which all went well', () => {
    expect(judge(evidence())).toEqual([])
    expect(judge(evidence({ ...declined, effects: [] }))).toEqual([])
    expect(judge(evidence(order({ approved: undefined, data: { click: 'k1' } })))).toEqual([])
  })

  it.each<[string, string[], DecisionEvidence]>([
    ['a call that was declined and ran', ['declinedNeverRan', 'shownRan', 'settled'], evidence({ ...declined, effects: ran })],
    ['a call that was approved and never ran', ['approvedRan', 'settled'], evidence({ effects: [] })],
    ['a call that ran twice', ['approvedRan', 'noEffectTwice'], evidence({ effects: [effect('begun'), effect('begun', { by: '1.0' }), effect('done')] })],
    ['a call that ran and nobody approved', ['shownRan'], evidence({ notes: [click()], made: [], clicks: [] })],
    ['a call that ran and no request showed', ['shownRan'], evidence({ notes: [] })],
    ['a request that shows other arguments', ['shownRan'], evidence({ notes: [click({ shown: shown({ args: { prompt: 'Pay.' } }) }), decided()] })],
    ['a request that shows another path', ['shownRan'], evidence({ notes: [click({ shown: shown({ path: ['clerk', 'pay'] }) }), decided()] })],
    ['a request with another digest', ['shownRan'], evidence({ notes: [click({ shown: shown({ digest: 'd' }) }), decided()] })],
    ['a tool that got the data of a decision that was not accepted', ['shownRan'], evidence(order({ approved: undefined, data: { click: 'k1' } }, [effect('begun', { tool: 'order', data: { click: 'k2' } }), effect('done', { tool: 'order' })]))],
    ['a decision about another request than the one that was shown', ['trueAnswers'], evidence({ notes: [click({ form: 'call' }), decided({ approvalId: 'r2' })], made: [{ ...told(), thread, approvalId: 'r1' }, { ...told({ approvalId: 'r2' }), thread, approvalId: 'r2' }] })],
    ['a decision with a wrong digest that was accepted', ['trueAnswers'], evidence({ notes: [click({ form: 'digest' }), decided()] })],
    ['a decider that was told `accepted` and another decided', ['trueAnswers', 'oneDecision'], evidence({ notes: [click(), decided(), click({ click: 'k2', decider: 'bob@0.0', approved: false }), decided({ approved: false, by: 'bob@0.0', reason: 'k2' }, 'k2')] })],
    ['a decider that was told `accepted` and nothing is stored', ['shownRan', 'trueAnswers'], evidence({ made: [], clicks: [] })],
    ['a repeated decision that was told another time', ['trueAnswers'], evidence({ notes: [click(), decided({ at: 8 })] })],
    ['a request that is decided differently on two threads', ['oneDecision'], evidence({ made: [{ ...told({ by: 'bob@0.0' }), thread: 'child:t0/x', approvalId: 'r1' }, { ...told(), thread, approvalId: 'r1' }] })],
    ['a refusal that does not tell what was decided', ['refusedTruly'], evidence({ notes: [click(), decided(), click({ click: 'k2' }), refused('run_not_suspended', {}, 'k2')] })],
    ['a refusal by an aborted run that does not tell what was decided before', ['refusedTruly'], evidence({ notes: [click(), decided(), click({ click: 'k2' }), refused('run_not_suspended', {}, 'k2')], runs: [abortedRun] })],
    ['a refusal that tells something else', ['refusedTruly'], evidence({ notes: [click(), decided(), click({ click: 'k2' }), refused('run_not_suspended', { told: told({ approved: false }) }, 'k2')] })],
    ['a refusal of what nobody decided', ['refusedTruly'], evidence({ notes: [click({ shown: shown({ approvalId: 'r2' }) }), refused('run_not_suspended'), click({ click: 'k2' }), decided({}, 'k2')], clicks: [{ thread, click: 'k2', made: told() }] })],
    ['a refusal of a decision that names its request', ['refusedTruly'], evidence({ notes: [click(), decided(), click({ click: 'k2' }), refused('invalid_argument', { field: 'approvalId' }, 'k2')] })],
    ['a refusal by a process that was not closed', ['refusedTruly'], evidence({ notes: [click(), decided(), click({ click: 'k2' }), refused('closed', {}, 'k2')] })],
    ['a refusal with an abort of a run that was not aborted', ['refusedTruly'], evidence({ notes: [click(), decided(), click({ click: 'k2', form: 'http generate' }), refused('aborted', {}, 'k2')] })],
    ['a refusal with an abort by a method that does not wait for the run', ['refusedTruly'], evidence({ notes: [click(), decided(), click({ click: 'k2' }), refused('aborted', {}, 'k2')], runs: [abortedRun] })],
    ['a run that a process left that closed, although the store had answered', ['settled', 'noTrouble'], evidence({ ...leftRun, notes: [...begins, written(100), left] })],
    ['a tool that ran before that was stored', ['begunFirst'], evidence({ effects: [effect('begun', { record: { ...record, started: false } }), effect('done')] })],
    ['two calls under one id', ['settled'], evidence({ calls: [stored({ asked: 2 })] })],
    ['a call with two results', ['settled'], evidence({ calls: [stored({ outcomes: [...stored().outcomes, ...stored().outcomes] })] })],
    ['a call with the result of another', ['settled'], evidence({ calls: [stored({ outcomes: [{ state: 'result', result: { done: 'c', n: 'n2' } }] })] })],
    ['a call that was denied by nobody', ['settled'], evidence({ ...declined, calls: [denied('k9')], effects: [] })],
    ['a call that was denied by an abort that did not happen', ['settled'], evidence({ ...declined, calls: [denied(notRun)], effects: [] })],
    ['a call that was interrupted and never began', ['settled'], evidence({ calls: [failed(interrupted)], effects: [], killed: true })],
    ['a call that was interrupted and that nobody approved', ['settled'], evidence({ notes: [click(), { note: 'begins', thread, calls: ['c'] }], made: [], clicks: [], calls: [failed(interrupted)], effects: [], killed: true })],
    ['a call that was interrupted before it began by a process that closed', ['settled'], evidence({ notes: [click(), decided(), { note: 'begins', thread, calls: ['c'] }], calls: [failed(interrupted)], effects: [] })],
    ['a call that waited, was aborted and is said to have been stopped', ['settled'], evidence({ calls: [failed(stopped, { status: 'aborted' })], effects: [] })],
    ['an agent below that failed', ['settled'], evidence({ calls: [stored(), failed('Thread t0/d belongs to another resource.', { call: 'd', tool: 'agent-clerk', args: { prompt: 'Work.' } })] })],
    ['a prompt without a result', ['wholePrompts'], evidence({ notes: [click(), decided(), { note: 'flaw', key: thread, what: 'the call c has no result' }] })],
    ['an id of a child thread that another resource took', ['ownThreads'], evidence({ notes: [click(), decided(), { note: 'squats', thread: 'child:t0/c' }] })],
    ['an agent that answered on the thread of another resource', ['ownThreads'], evidence({ foreign: [{ thread: 't0/c', roles: ['signal', 'assistant'] }] })],
  ])('finds %s', (_, found, changed) => {
    expect(objections(changed)).toEqual(found)
  })

  it.each<[string, DecisionEvidence]>([
    ['a refusal that tells what was decided', evidence({ notes: [click(), decided(), click({ click: 'k2' }), refused('run_not_suspended', { told: told() }, 'k2')] })],
    ['a refusal of an ambiguous name', evidence({ notes: [click(), decided(), click({ click: 'k2', form: 'call' }), refused('invalid_argument', { field: 'approvalId' }, 'k2')] })],
    ['a refusal of a wrong digest', evidence({ notes: [click(), decided(), click({ click: 'k2', form: 'digest' }), refused('invalid_argument', { field: 'digest' }, 'k2')] })],
    ['a refusal of a request whose run was aborted', evidence({ notes: [click(), refused('run_not_suspended')], made: [], clicks: [], calls: [stored({ ...denied(notRun), status: 'aborted' })], effects: [] })],
    ['a refusal by an aborted run of what is decided later below', evidence({ notes: [click({ click: 'k2' }), refused('run_not_suspended', {}, 'k2'), click(), decided()], runs: [abortedRun] })],
    ['a refusal by a process that ends', evidence({ notes: [click(), decided(), { note: 'stopping' }, click({ click: 'k2' }), refused('closed', {}, 'k2')] })],
    ['a refusal with an abort at the end of a run that was aborted', evidence({ notes: [click(), decided(), click({ click: 'k2', form: 'http generate' }), refused('aborted', {}, 'k2')], runs: [abortedRun] })],
    ['a run that a process left that closed before the store answered', evidence({ ...leftRun, notes: [...begins, left, written(100)] })],
    ['a repeated decision', evidence({ notes: [click(), decided(), click(), decided()] })],
    ['a call that was interrupted and approved by a decision that named no request and that nobody was shown', evidence({
      notes: [click({ shown: shown({ approvalId: 'r0', args: { n: 'n0' }, digest: digestOf('pay', { n: 'n0' }) }), form: 'nothing' }), { note: 'decided', click: 'k1', told: told(), call: 'c' }],
      calls: [failed(interrupted)], effects: [effect('begun')], killed: true,
    })],
    ['a call that had begun and was interrupted', evidence({ calls: [failed(interrupted)], effects: [effect('begun')], killed: true })],
    ['a call that was to begin when its process was killed', evidence({ notes: [click(), decided(), { note: 'begins', thread, calls: ['c'] }], calls: [failed(interrupted)], effects: [], killed: true })],
    ['a call that was approved and whose run was aborted', evidence({ calls: [stored({ ...denied(notRun), status: 'aborted' })], effects: [] })],
    ['a call that ran when its run was aborted', evidence({ calls: [failed(stopped, { status: 'aborted' })], effects: [effect('begun')] })],
    ['a tool that asks again', evidence({ ...order({ approved: undefined, data: { click: 'k1', again: true } }, [effect('asked', { tool: 'order' })]), calls: [stored({ ...denied('k1'), tool: 'order' })], made: [{ ...told({ approved: undefined as never }), thread, approvalId: 'r1' }, { ...told(no), thread, approvalId: 'r2' }] })],
  ])('allows %s', (_, changed) => {
    expect(objections(changed)).toEqual([])
  })

  it('finds what is wrong with the calls of a prompt', () => {
    const call = (toolCallId: string, n: string) => ({ type: 'tool-call', toolCallId, toolName: 'pay', input: { n } }) as const
    const result = (toolCallId: string, n: string) => ({ type: 'tool-result', toolCallId, toolName: 'pay', output: { type: 'json', value: { n } } }) as const
    const prompt = (calls: Array<ReturnType<typeof call>>, results: Array<ReturnType<typeof result>>) => flawsOf([{ role: 'assistant', content: calls }, { role: 'tool', content: results }])
    expect(prompt([call('x', '1'), call('x', '2')], [result('x', '1'), result('x', '2')])).toEqual([])
    expect(prompt([call('x', '1'), call('x', '2')], [result('x', '2')])).toEqual(['the call x (1) has the result of 2', 'the call x has no result'])
    expect(prompt([call('x~2', '1')], [result('x~2', '1')])).toEqual(['the call x~2 has not the id that the provider gave it'])
    expect(prompt([call('x', '1')], [result('x', '1'), result('x', '1')])).toEqual(['the result of x is of no call'])
  })
})
