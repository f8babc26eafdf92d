import { createHash } from 'node:crypto'
import { orderedJSON } from '../../../src/base/json.ts'
import { checks as general } from '../checks/index.ts'
import { groupBy, notes, type Violation } from '../checks/evidence.ts'
import { leftByClose } from '../checks/outcomes.ts'
import type { Effect } from '../effects.ts'
import type { Click, Shown, Told } from './notes.ts'
import type { DecisionEvidence, StoredCall, StoredOutcome } from './truth.ts'

type DecisionCheck = (evidence: DecisionEvidence) => Violation[]

/** What was declined did not run. */
const declinedNeverRan: DecisionCheck = (evidence) => {
  const shown = requestsIn(evidence)
  return distinctRequests(evidence).filter(({ approved }) => approved === false).flatMap(({ approvalId, by }): Violation[] => {
    const n = nOf(shown.get(approvalId)?.args)
    const ran = evidence.effects.find(({ phase, args }) => phase === 'begun' && n !== undefined && nOf(args) === n)
    return ran ? [{ promise: 'R6.3', what: `${by} declined the request ${approvalId}, and ${describe(ran)} ran in ${ran.by}` }] : []
  })
}

/** What was approved, or resumed with data, ran: in one process, or was interrupted there, or its run was aborted. */
const approvedRan: DecisionCheck = (evidence) => {
  const shown = requestsIn(evidence)
  const calls = callsByNumber(evidence)
  // A tool that suspends itself again makes another request.
  const asksAgain = new Set(notes(evidence, 'decides').filter(({ data }) => data?.again).map(({ shown: { approvalId }, decider }) => `${approvalId} ${decider}`))
  return distinctRequests(evidence).filter(({ approved, approvalId, by }) => approved !== false && !asksAgain.has(`${approvalId} ${by}`)).flatMap(({ approvalId, by }): Violation[] => {
    const n = nOf(shown.get(approvalId)?.args)
    const call = n === undefined ? undefined : calls.get(n)
    if (!call || call.status !== 'finished' || isInterrupted(call.outcomes[0])) return []
    const ran = evidence.effects.filter(({ phase, args }) => phase === 'begun' && nOf(args) === n).length
    return ran === 1 ? [] : [{ promise: 'R6.8', what: `${by} decided that ${call.tool} (${n}) of ${call.thread} runs, and it ran ${ran} times: ${JSON.stringify(call.outcomes)}` }]
  })
}

/** What ran was shown, with its tool, arguments, path and digest, and the request was approved, or resumed with the data that the tool got. */
const shownRan: DecisionCheck = (evidence) => {
  const decisions = new Map(distinctRequests(evidence).map((made) => [made.approvalId, made]))
  const clicks = notes(evidence, 'decides')
  const flaws = clicks.flatMap(({ shown, agent, thread }): Violation[] => {
    const flaw = flawOf(shown, agent)
    return flaw === undefined ? [] : [{ promise: 'R6.9', what: `${thread} shows the request ${shown.approvalId} ${flaw}: ${JSON.stringify(shown)}` }]
  })
  const byNumber = groupBy(clicks, ({ shown }) => String(nOf(shown.args)))
  // A decision that names nothing may be about a request that no decider has seen.
  const unseen = notes(evidence, 'decided').some(({ told }) => told?.approvalId !== undefined && !clicks.some(({ shown }) => shown.approvalId === told.approvalId))
  const ran = evidence.effects.filter(({ phase, tool }) => phase === 'begun' && tool !== 'write').flatMap((effect): Violation[] => {
    const say = (what: string): Violation[] => [{ promise: 'R6.9', what: `${describe(effect)} ran in ${effect.by} ${what}` }]
    const seen = byNumber.get(String(nOf(effect.args))) ?? []
    if (seen.length === 0) return unseen ? [] : say('and no request showed it')
    if (effect.data !== undefined) {
      const { click } = effect.data as { click: string }
      const given = clicks.find((other) => other.click === click)
      const made = given && decisions.get(given.form === 'nothing' ? toldOf(evidence, click)?.approvalId ?? '' : given.shown.approvalId)
      return made && made.approved === undefined && made.by === given.decider ? [] : say(`with the data of ${click}, which was not accepted`)
    }
    return seen.some(({ shown }) => decisions.get(shown.approvalId)?.approved === true) ? [] : say('and nobody approved it')
  })
  return [...flaws, ...ran]
}

function flawOf({ tool, args, path, digest }: Shown, agent: string): string | undefined {
  if (nOf(args) === undefined) return 'without the arguments of what will run'
  if (path[0] !== agent || path.at(-1) !== tool) return `with another path than from ${agent} to ${tool}`
  return digest === createHash('sha256').update(orderedJSON([tool, args])).digest('base64url') ? undefined : 'with another digest'
}

/** An accepted decision is about the request that its decider saw, and the answer is what the store has. */
const trueAnswers: DecisionCheck = (evidence) => {
  const clicks = new Map(notes(evidence, 'decides').map((click) => [click.click, click]))
  const made = new Map(evidence.truth.made.map((one) => [`${one.thread} ${one.approvalId}`, one]))
  const stored = new Map(evidence.truth.clicks.map((one) => [`${one.thread} ${one.click}`, one.made]))
  return notes(evidence, 'decided').flatMap(({ click: id, told, by: process }): Violation[] => {
    const click = clicks.get(id)
    if (!click) return []
    const say = (promise: string, what: string): Violation[] => [{ promise, what: `${click.decider} in ${process} was told that ${id} (${click.form}) is decided on ${click.thread}, ${what}` }]
    if (click.form === 'digest') return say('R6.9', 'with a digest that is not the request\'s')
    const request = told?.approvalId ?? click.shown.approvalId
    if (click.form !== 'nothing' && request !== click.shown.approvalId) return say('R6.9', `about ${request}, and it saw ${click.shown.approvalId}`)
    const truth = made.get(`${click.thread} ${request}`)
    if (!truth) return say('R6.10', `and the store has no decision about ${request}`)
    if (truth.by !== click.decider || truth.approved !== click.approved) return say('R6.10', `and the store has ${JSON.stringify(truth)}`)
    if (!told) return []
    if (!same(told, truth)) return say('R6.10', `as ${JSON.stringify(told)}, and the store has ${JSON.stringify(truth)}`)
    const own = stored.get(`${click.thread} ${id}`)
    return own && same(told, own) ? [] : say('R6.6', `as ${JSON.stringify(told)}, and under its id the store has ${JSON.stringify(own)}`)
  })
}

/** A request is decided once, whichever thread shows it. */
const oneDecision: DecisionCheck = (evidence) => {
  const stored = [...groupBy(evidence.truth.made, ({ approvalId }) => approvalId)].flatMap(([approvalId, all]): Violation[] => {
    const versions = new Set(all.map(({ approved, by, at, reason }) => JSON.stringify([approved, by, at, reason])))
    return versions.size === 1 ? [] : [{ promise: 'R6.10', what: `the request ${approvalId} is decided as ${all.map((one) => JSON.stringify(one)).join(' and ')}` }]
  })
  const told = [...groupBy(accepted(evidence), ({ request }) => request)].flatMap(([approvalId, all]): Violation[] => {
    const clicks = new Set(all.map(({ click }) => click))
    return clicks.size <= 1 ? [] : [{ promise: 'R6.10', what: `the deciders of ${[...clicks].join(' and ')} were all told that they decided the request ${approvalId}` }]
  })
  return [...stored, ...told]
}

/** Each decider that was refused was refused for a reason that is true, and told what was decided instead. */
const refusedTruly: DecisionCheck = (evidence) => {
  const clicks = new Map(notes(evidence, 'decides').map((click) => [click.click, click]))
  const made = new Map(evidence.truth.made.map((one) => [one.approvalId, one]))
  const calls = callsByNumber(evidence)
  const stopping = new Map(notes(evidence, 'stopping').map(({ by, at }) => [by, at]))
  return notes(evidence, 'undecided').flatMap(({ click: id, code, field, told, by: process, at }): Violation[] => {
    const click = clicks.get(id)
    if (!click) return []
    const say = (promise: string, what: string): Violation[] => [{ promise, what: `${click.decider} in ${process} was refused ${id} (${click.form}) on ${click.thread} with ${code}, ${what}` }]
    if (code === 'closed') return at >= (stopping.get(process) ?? Infinity) ? [] : say('harness', 'and its process was not asked to end')
    if (code === 'invalid_argument') {
      if (click.form === 'digest') return field === 'digest' ? [] : say('R6.9', `for its ${field}`)
      return click.form === 'call' || click.form === 'nothing' ? [] : say('R6.9', `for its ${field}`)
    }
    // A method that answers at the end of the run rejects where that run is aborted, also if it made the decision.
    if (code === 'aborted' && (click.form === 'stream' || click.form === 'http generate')) {
      const status = statusOf(evidence, click)
      return status === 'aborted' ? [] : say('R6.10', `and its run is ${status}`)
    }
    if (code !== 'run_not_suspended') return say('R6.10', 'which is no reason')
    if (click.form === 'call' || click.form === 'nothing') return []
    const truth = made.get(click.shown.approvalId)
    // Where the run that showed it was aborted, the agent below may be decided after this refusal.
    if (truth && !told && statusOf(evidence, click) === 'aborted' && !wasKnown(evidence, click.shown.approvalId, at)) return []
    if (truth) return told && same(told, truth) ? [] : say('R6.10', `and was told ${JSON.stringify(told)}: the store has ${JSON.stringify(truth)}`)
    const n = nOf(click.shown.args)
    const status = n === undefined ? undefined : calls.get(n)?.status
    return status === 'aborted' ? [] : say('R6.10', `and nobody decided it: its run is ${status}`)
  })
}

/** What became of the run that showed the request. */
function statusOf({ ledger }: DecisionEvidence, { thread, run }: Click): string | undefined {
  return ledger.threads.find(({ id }) => id === thread)?.runs.find(({ runId }) => runId === run)?.status
}

/** Whether a decider had an answer before this time that shows that the request was decided. */
function wasKnown(evidence: DecisionEvidence, approvalId: string, time: number): boolean {
  const clicks = new Map(notes(evidence, 'decides').map((click) => [click.click, click]))
  return notes(evidence, 'decided', 'undecided').some(({ note, click, told, at }) => {
    return at < time && (told?.approvalId ?? (note === 'decided' ? clicks.get(click)?.shown.approvalId : undefined)) === approvalId
  })
}

/** When a tool began, the store had that it begins: without it another process would run it again. */
const begunFirst: DecisionCheck = ({ effects, truth }) => {
  const unknown = new Set(truth.calls.filter(({ outcomes }) => isInterrupted(outcomes[0])).map(({ thread, call }) => `${thread} ${call}`))
  return effects.flatMap((effect): Violation[] => {
    if (effect.phase === 'done' || effect.record?.started || unknown.has(`${effect.thread} ${effect.call}`)) return []
    return [{ promise: 'R6.8', what: `${describe(effect)} ran in ${effect.by} before it was stored that it had begun` }]
  })
}

/** Every call of history has one outcome, and the one that is true. */
const settled: DecisionCheck = (evidence) => {
  const state = stateOf(evidence)
  return evidence.truth.calls.flatMap((call): Violation[] => {
    const flaw = flawOfCall(call, state)
    return flaw === undefined ? [] : [{ promise: flaw.promise, what: `${call.thread}: the call ${call.call} of ${call.tool} (${nOf(call.args)}, its run is ${call.status}) ${flaw.what}` }]
  })
}

interface CallState {
  begun: ReadonlySet<string>
  executed: ReadonlySet<string>
  done: ReadonlySet<string>
  /** Calls of which a process stored that they begin that was killed, or closed before the store had answered. */
  cutOff: ReadonlySet<string>
  reasons: ReadonlySet<string>
  /** The numbers of the calls that were approved, and their ids where the answer of a decision named them. */
  approved: ReadonlySet<string | undefined>
}

function stateOf(evidence: DecisionEvidence): CallState {
  const shown = requestsIn(evidence)
  const keys = (wanted: (effect: Effect) => boolean) => new Set(evidence.effects.filter(wanted).map(({ thread, call }) => `${thread} ${call}`))
  const closed = new Set(notes(evidence, 'closed').map(({ by }) => by))
  const left = leftByClose(evidence)
  // A decision that names no request may be about one that its decider was not shown: its answer names the call.
  const decided = new Map(notes(evidence, 'decided').map(({ told, call }) => [told?.approvalId, call]))
  return {
    begun: keys(({ phase }) => phase === 'begun'),
    executed: keys(() => true),
    done: keys(({ phase }) => phase === 'done'),
    cutOff: new Set(notes(evidence, 'begins').filter(({ by, thread }) => !closed.has(by) || left.has(`${by} ${thread}`)).flatMap(({ thread, calls }) => calls.map((call) => `${thread} ${call}`))),
    reasons: new Set(evidence.truth.made.flatMap(({ approved, reason }) => (approved === false && reason !== undefined ? [reason] : []))),
    approved: new Set(evidence.truth.made.flatMap(({ approved, approvalId }) => (approved === true ? [nOf(shown.get(approvalId)?.args), decided.get(approvalId)] : []))),
  }
}

function flawOfCall(call: StoredCall, { begun, executed, done, cutOff, reasons, approved }: CallState): { promise: string; what: string } | undefined {
  const { outcomes: [outcome, ...more], status } = call
  const key = `${call.thread} ${call.call}`
  if (call.asked !== 1) return { promise: 'G1.16', what: `is in history ${call.asked} times` }
  // A call that had suspended itself when its run was aborted has none: what it did is not known.
  if (!outcome) return status === 'parked' || (status === 'aborted' && call.tool !== 'pay') ? undefined : { promise: 'R5.2', what: 'has no result' }
  if (more.length > 0) return { promise: 'G1.16', what: `has ${more.length + 1} results` }
  const below = call.tool.startsWith('agent-')
  const text = JSON.stringify(outcome)
  switch (outcome.state) {
    case 'result': {
      const { done: of, n } = outcome.result as { done?: string; n?: string }
      return below || (done.has(key) && of === call.call && n === nOf(call.args)) ? undefined : { promise: 'G1.16', what: `has a result that no tool came to: ${text}` }
    }
    case 'output-denied':
      if (begun.has(key)) return { promise: 'R6.3', what: 'was denied, and ran' }
      if (outcome.reason?.includes('aborted')) return status === 'aborted' ? undefined : { promise: 'R8.6', what: `was denied by an abort: ${text}` }
      return outcome.reason !== undefined && reasons.has(outcome.reason) ? undefined : { promise: 'R6.3', what: `was denied, and nobody declined it: ${text}` }
    default:
      if (isInterrupted(outcome) && call.tool === 'pay' && !approved.has(nOf(call.args)) && !approved.has(call.call)) return { promise: 'R6.8', what: `was interrupted, and nobody had approved it: ${text}` }
      if (isInterrupted(outcome)) return !below && (executed.has(key) || cutOff.has(key)) ? undefined : { promise: 'R6.8', what: `was interrupted, and had not begun: ${text}` }
      if (status === 'aborted' && (below || executed.has(key))) return undefined
      return { promise: 'R8.6', what: `failed${executed.has(key) ? '' : ', and never ran'}: ${text}` }
  }
}

/** Each prompt has one result for each call, under the id that the provider gave it. */
const wholePrompts: DecisionCheck = (evidence) => notes(evidence, 'flaw').map(({ key, what, by }) => ({ promise: 'G1.16', what: `a prompt of ${key} in ${by}: ${what}` }))

/** No other resource gets the thread of an agent below, and none of them finds a thread of others there. */
const ownThreads: DecisionCheck = (evidence) => {
  const taken = notes(evidence, 'squats').flatMap(({ thread, refused, by }): Violation[] => {
    const wanted = thread.startsWith('child:') ? 'invalid_argument' : undefined
    return refused === wanted || refused === 'closed' ? [] : [{ promise: 'R9.5', what: `another resource created ${thread} in ${by}: ${refused ?? 'accepted'}` }]
  })
  const used = evidence.truth.foreign.filter(({ roles }) => roles.some((role) => role !== 'signal' && role !== 'user'))
  return [...taken, ...used.map(({ thread, roles }) => ({ promise: 'R9.5', what: `an agent answered on the thread ${thread} of another resource: ${roles.join(', ')}` }))]
}

/** What a process may complain about: decisions that wait for the end of their run when it is closed, and answers that were lost. */
const expected = /a request failed .*"code":"closed"|a thread is run whose lease was granted while the answer of the store was lost/

const noTrouble: DecisionCheck = (evidence) => general.noTrouble?.(evidence).filter(({ what }) => !expected.test(what)) ?? []

const { soundFile, nothingLost, nothingStuck, shownOnce, noEffectTwice, effectsKnown, oneWriter, oneHolder, samePrompts } = general

/** Everything that has to hold after a round, each as a function of the evidence alone. */
export const checks: Readonly<Record<string, DecisionCheck | undefined>> = {
  declinedNeverRan, approvedRan, shownRan, trueAnswers, oneDecision, refusedTruly, begunFirst, settled, wholePrompts, ownThreads,
  soundFile, nothingLost, nothingStuck, shownOnce, noEffectTwice, effectsKnown, oneWriter, oneHolder, samePrompts, noTrouble,
}

export function judge(evidence: DecisionEvidence): Violation[] {
  return Object.entries(checks).flatMap(([name, check]) => (check?.(evidence) ?? []).map(({ promise, what }) => ({ promise, what: `${name}: ${what}` })))
}

function requestsIn(evidence: DecisionEvidence): Map<string, Shown> {
  return new Map(notes(evidence, 'decides').map(({ shown }) => [shown.approvalId, shown]))
}

/** One stored decision for each request: `oneDecision` compares those of its threads. */
function distinctRequests({ truth }: DecisionEvidence): Array<Told & { approvalId: string }> {
  return [...new Map(truth.made.map((made) => [made.approvalId, made])).values()]
}

/** The decisions that were accepted, by the answers to their deciders, with the request that they were about. */
function accepted(evidence: DecisionEvidence): Array<Click & { request: string }> {
  const clicks = new Map<string, Click>(notes(evidence, 'decides').map((click) => [click.click, click]))
  return notes(evidence, 'decided').flatMap(({ click: id, told }) => {
    const click = clicks.get(id)
    return click ? [{ ...click, request: told?.approvalId ?? click.shown.approvalId }] : []
  })
}

function toldOf(evidence: DecisionEvidence, id: string): Told | undefined {
  return evidence.truth.clicks.find(({ click }) => click === id)?.made
}

function callsByNumber({ truth }: DecisionEvidence): Map<string, StoredCall> {
  return new Map(truth.calls.flatMap((call) => {
    const n = nOf(call.args)
    return n === undefined ? [] : [[n, call] as const]
  }))
}

function same(one: Told, other: Told): boolean {
  return one.approvalId === other.approvalId && one.approved === other.approved && one.by === other.by && one.reason === other.reason && one.at === other.at
}

function isInterrupted(outcome: StoredOutcome | undefined): boolean {
  return outcome?.error?.includes('was interrupted') === true
}

function nOf(args: unknown): string | undefined {
  return (args as { n?: string } | undefined)?.n
}

function describe({ tool, args, thread, call }: Effect): string {
  return `${tool} (${nOf(args)}) for the call ${call} of ${thread}`
}
