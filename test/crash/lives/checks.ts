import { groupBy, notes, type Check, type Evidence, type Violation } from '../checks/evidence.ts'
import { checks as all } from '../checks/index.ts'
import { entered } from '../checks/outcomes.ts'
import type { LedgerThread } from '../ledger.ts'
import { slack, type Lived, type LivesCheck, type LivesEvidence } from './evidence.ts'
import { copySeparator, livesIn } from './lives.ts'
import { clonesWhole, effectsKnown, epochsGrow, nothingAfterTheEnd, onceEach, oneActiveRun, ownRuns } from './store-checks.ts'
import { lifeBegins, noFormerWords, snapshotsOfLife } from './watching-checks.ts'

/** The answer of an abort is what the store has, at the time of the answer. */
const trueAborts: LivesCheck = (evidence) => notes(evidence, 'abort-answered').flatMap(({ thread, by, at, aborted, runId }): Violation[] => {
  const say = (what: string): Violation[] => [{ promise: 'R8.7', what: `${by} was answered aborted: ${aborted} for the run ${runId} of ${thread}, and ${what}` }]
  const lives = evidence.lives.filter((life) => life.thread === thread && runId !== undefined && life.runs.has(runId))
  const ends = lives.flatMap((life) => life.runs.get(runId ?? '') ?? []).filter(({ status }) => status === 'aborted')
  if (aborted) {
    if (lives.length === 0) return say('there is no such run')
    return ends.some((end) => end.at <= at + slack) ? [] : say(ends.length === 0 ? 'it did not end as aborted' : `it ended ${(ends[0]?.at ?? 0) - at} µs later`)
  }
  const alive = lives.find((life) => life.died > at)
  const ended = alive?.runs.get(runId ?? '')?.find(({ status }) => status === 'aborted')
  return ended && alive && ended.at > alive.born && ended.at < at - slack ? say('it had ended as aborted') : []
})

/** Every abort is answered, unless its process closes. */
const abortsAnswered: LivesCheck = (evidence) => {
  const answers = new Set(notes(evidence, 'abort-answered', 'abort-failed').map(({ by, call }) => `${by} ${call}`))
  const ended = new Set(notes(evidence, 'closed').map(({ by }) => by))
  return [
    ...notes(evidence, 'abort-failed').flatMap(({ by, thread, code }): Violation[] => (code === 'closed' ? [] : [{ promise: 'R8.3', what: `an abort of ${thread} in ${by} failed: ${code}` }])),
    ...notes(evidence, 'abort').flatMap(({ by, call, thread }): Violation[] => (!ended.has(by) || answers.has(`${by} ${call}`) ? [] : [{ promise: 'R8.3', what: `an abort of ${thread} in ${by} was never answered` }])),
  ]
}

/** What was pending when an abort with `clearPendingSignals` was called is taken by no run after its answer. */
const clearedTruly: LivesCheck = (evidence) => {
  const calls = new Map(notes(evidence, 'abort').map((call) => [`${call.by} ${call.call}`, call]))
  return notes(evidence, 'abort-answered').flatMap((answer) => {
    const call = calls.get(`${answer.by} ${answer.call}`)
    if (!call?.clear) return []
    return evidence.lives.filter(({ thread, born }) => thread === answer.thread && born < call.at).flatMap((life) => [...life.mail].flatMap(([id, { states }]): Violation[] => {
      const pending = states[0]?.state === 'pending' && states[0].at < call.at - slack
      const taken = states.find(({ state }) => state === 'taken')
      if (!pending || !taken || taken.at < answer.at + slack) return []
      return [{ promise: 'R8.7', what: `${life.thread}|${id} was pending when ${answer.by} aborted and cleared (aborted: ${answer.aborted}), and was taken ${taken.at - answer.at} µs after the answer` }]
    }))
  })
}

/** Nothing is cancelled that no caller asked to be cancelled. An abort of a run of one life asks for nothing in another. */
const cancelledOnWish: LivesCheck = (evidence) => {
  const answers = new Map(notes(evidence, 'abort-answered').map((answer) => [`${answer.by} ${answer.call}`, answer]))
  const wishes = notes(evidence, 'abort').filter(({ clear }) => clear).map(({ by, call, at, thread }) => {
    const { at: to = Infinity, runId } = answers.get(`${by} ${call}`) ?? {}
    const meant = evidence.lives.filter((life) => life.thread === thread && runId !== undefined && life.runs.has(runId))
    return { thread, from: at - slack, to: to + slack, meant }
  })
  const sent = new Set(notes(evidence, 'send').map(({ thread, id }) => `${thread}|${id}`))
  return evidence.lives.flatMap((life) => [...life.mail].flatMap(([id, { states }]): Violation[] => {
    const cancelled = states.find(({ state }) => state === 'cancelled')
    if (!cancelled || life.restored || !sent.has(`${life.thread}|${id}`)) return []
    if (wishes.some(({ thread, from, to, meant }) => thread === life.thread && cancelled.at > from && cancelled.at < to && (meant.length === 0 || meant.includes(life)))) return []
    return [{ promise: 'R8.1', what: `${life.thread}|${id} was cancelled, and nobody asked for that then` }]
  }))
}

/** Each outcome that a sender received is what the store has of one life of the thread. */
const trueOutcomes: LivesCheck = (evidence) => {
  const byThread = groupBy(evidence.lives, ({ thread }) => thread)
  return notes(evidence, 'outcome').flatMap(({ thread, id, by, at, action, runId, step, reason }): Violation[] => {
    const found = (byThread.get(thread) ?? []).flatMap((life) => {
      const mail = life.mail.get(id)
      return mail ? [{ life, mail }] : []
    })
    const isTrue = found.some(({ life, mail: { route, states } }) => {
      if (action === 'woke' || action === 'delivered') return states.some((state) => state.runId === runId && state.step === step && action === entered(route, step))
      if (action === 'persisted') return route === 'persist'
      if (action === 'queued') return true
      if (action !== 'discarded') return false
      return reason === 'deleted' ? life.died < at + slack : states.some(({ state, at: when }) => state === 'cancelled' && when < at + slack)
    })
    if (isTrue || (action === 'rejected' && reason !== undefined)) return []
    // Accepted and deleted in one transaction: its row was never inserted.
    if (found.length === 0 && byThread.get(thread)?.some(({ died }) => died < at + slack)) return []
    const where = found.map(({ life, mail: { route, states } }) => `${life.first}: ${route} ${states.map(({ state, runId: run, step: place }) => `${state} ${run} ${place}`).join(', ')}`)
    return [{ promise: 'A4.1', what: `${by} was told that ${thread}|${id} is ${action} (${runId} ${step} ${reason}), and its lives say ${where.join('; ') || 'nothing'}` }]
  })
}

/** When all is at rest, each send has an outcome and each call its answer. */
const outcomesKnown: LivesCheck = (evidence) => notes(evidence, 'open').flatMap(({ by, ids }): Violation[] => {
  return ids.length === 0 ? [] : [{ promise: 'R11.3', what: `${by} still waits for the outcomes of ${ids.join(', ')} when all is at rest` }]
})

const answers: ReadonlySet<string> = new Set(['ok', 'aborted', 'closed', 'thread_suspended', 'run_abandoned'])

/** What a caller of `generate()` may get: the answer, or an error that says why there is none. */
const callsAnswered: LivesCheck = (evidence) => notes(evidence, 'answered').flatMap(({ thread, id, by, how }): Violation[] => {
  return answers.has(how) ? [] : [{ promise: 'R11.3', what: `the call ${id} on ${thread} in ${by} got ${how}` }]
})

/** A tool that is not idempotent begins once for each call, unless a restore undid what was stored of it. */
const noEffectTwice: LivesCheck = ({ effects, lives }) => {
  const restores = lives.filter(({ restored }) => restored).map(({ born }) => born)
  const begun = effects.filter(({ idempotent, phase }) => !idempotent && phase === 'begun')
  return [...groupBy(begun, ({ thread, run, call }) => `${thread} ${run} ${call}`)].flatMap(([key, [first, second]]): Violation[] => {
    if (!first || !second || restores.some((at) => at > first.at - slack && at < second.at + slack)) return []
    return [{ promise: 'R5.5', what: `${first.tool} began for the call ${key} in ${first.by} and in ${second.by}` }]
  })
}

/** No word that was made after another process had the thread, within a life: who does not know of its end yet may go on. */
const noLateWords: LivesCheck = (evidence) => evidence.lives.flatMap(({ thread, first, floor }) => {
  const within = (epoch: number) => epoch >= first && epoch < floor
  return (all.noLateWords as Check)(withNotes(evidence, (note) => {
    if (note.note === 'written') return note.thread === thread && within(note.epoch)
    return note.note === 'seen' && note.thread === thread && within(Number(note.cursor.split('.')[0]))
  }))
})

/** Complaints of processes to which these rounds do more than others. */
const expected: readonly RegExp[] = [
  /^runs or titles did not end when they were aborted; the process closes without them/,
]

/** The checks of other rounds, on what they can judge here. */
const shared: Readonly<Record<string, LivesCheck>> = Object.fromEntries(Object.entries({
  soundFile: (evidence) => evidence,
  oneWriter: (evidence) => evidence,
  oneHolder: (evidence) => evidence,
  sameForAll: (evidence) => evidence,
  noGap: (evidence) => evidence,
  allAnswered: (evidence) => evidence,
  trueRefusals: (evidence) => evidence,
  shownOnce: (evidence) => evidence,
  nothingStuck: (evidence) => evidence,
  inOrder: (evidence) => evidence,
  nothingTwice: withoutCopies,
  answered: (evidence) => withoutAborted(withoutCopies(evidence)),
  nobodyDeaf: (evidence) => withNotes(evidence, (note) => !('watcher' in note) || !note.watcher.includes('#')),
  trueSnapshots: quietSnapshots,
  noTrouble: (evidence) => withNotes(evidence, (note) => note.note !== 'trouble' || !expected.some((one) => one.test(note.what))),
} satisfies Record<string, (evidence: Lived) => Evidence>).map(([name, select]) => [name, (evidence: Lived) => (all[name] as Check)(select(evidence))]))

export const checks: Readonly<Record<string, LivesCheck>> = {
  ...shared, epochsGrow, nothingAfterTheEnd, oneActiveRun, ownRuns, onceEach, clonesWhole, effectsKnown, noEffectTwice, noLateWords,
  trueOutcomes, outcomesKnown, callsAnswered, trueAborts, abortsAnswered, clearedTruly, cancelledOnWish, lifeBegins, noFormerWords, snapshotsOfLife,
}

export function judge(evidence: LivesEvidence): Violation[] {
  const lived: Lived = { ...evidence, lives: livesIn(evidence.log) }
  return Object.entries(checks).flatMap(([name, check]) => check(lived).map(({ promise, what }) => ({ promise, what: `${name}: ${what}` })))
}

type Note = Evidence['journals'][number]['notes'][number]

function withNotes<Given extends Evidence>(evidence: Given, keep: (note: Note, by: string) => boolean): Given {
  return { ...evidence, journals: evidence.journals.map((journal) => ({ ...journal, notes: journal.notes.filter((note) => keep(note, `${journal.slot}.${journal.life}`)) })) }
}

function withThreads<Given extends Evidence>(evidence: Given, change: (thread: LedgerThread) => LedgerThread[]): Given {
  return { ...evidence, ledger: { ...evidence.ledger, threads: evidence.ledger.threads.flatMap(change) } }
}

/** Signals were not sent to a copy of a thread, and are in it. */
function withoutCopies(evidence: Lived): Lived {
  return withThreads(evidence, (thread) => (thread.id.includes(copySeparator) ? [] : [thread]))
}

/** What was cancelled, or entered a run that was aborted, need not have been answered. Inputs of calls have rows under other ids. */
function withoutAborted(evidence: Lived): Lived {
  const sent = new Set(notes(evidence, 'send').map(({ id }) => id))
  const aborted = (thread: LedgerThread, runId: string | null) => thread.runs.some((run) => run.runId === runId && run.status === 'aborted')
  return withThreads(evidence, (thread) => [{ ...thread, mail: thread.mail.filter(({ id, state, runId }) => sent.has(id) && state !== 'cancelled' && !aborted(thread, runId)) }])
}

/** The snapshots that processes got after the last end of their thread: history still has what they had to show. */
function quietSnapshots(evidence: Lived): Lived {
  const last = new Map(evidence.lives.map((life) => [life.thread, life]))
  return withNotes(evidence, (note) => {
    if (note.note !== 'seen' && note.note !== 'watching' && note.note !== 'said') return true
    const life = last.get(note.thread)
    if (!life || life.died !== Infinity || note.at < life.born + slack) return false
    return note.note === 'watching' || Number(note.cursor.split('.')[0]) >= life.first
  })
}
