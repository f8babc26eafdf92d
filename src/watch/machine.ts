import type { JSONValue } from '../base/json.ts'

/** `once`: the first match ends the watch. `continuous`: each match is reported and the watch stays open. */
export type WatchMode = 'once' | 'continuous'

/** Whether a watch still waits. */
export type WatchState = 'open' | 'ended'

/**
 * Why a watch ended. `matched`: a `once` watch found its message. `completed`: the judge of a continuous watch ended it. `failed`: the
 * judge reported that the wait can't succeed. `expired`: its time is over. `exhausted`: its evaluations are used up. `cancelled`: by a
 * caller.
 */
export type WatchEnd = 'matched' | 'completed' | 'failed' | 'expired' | 'exhausted' | 'cancelled'

/**
 * What a judgement of a candidate says. `match` and `complete` carry a value that passed the schema of the watch. `deny`: a policy forbids
 * that the agent receives the message, which is not an evaluation.
 */
export type Verdict =
  | { action: 'match'; value: JSONValue }
  | { action: 'complete'; value: JSONValue }
  | { action: 'fail' }
  | { action: 'reject' }
  | { action: 'deny'; policies: string }

/** The part of a watch that transitions read. */
interface WatchCounts {
  mode: WatchMode
  mayEnd: boolean
  evaluations: number
  hits: number
  maxEvaluations: number
}

interface WatchTransition {
  evaluations: number
  hits: number
  /** Absent: the watch stays open. */
  end?: WatchEnd
  /** The verdict is delivered to the thread as a hit, besides an end. */
  hit: boolean
}

/**
 * The effect of a verdict on its watch. A judge that a message has taken over can reject, report or end no more than the mode allows: a
 * continuous watch is ended by its judge only where it was registered so, and by `once` watches `complete` and `match` mean the same.
 */
export function judged(watch: WatchCounts, { action }: Verdict): WatchTransition {
  if (action === 'deny') return { evaluations: watch.evaluations, hits: watch.hits, hit: false }
  const evaluations = watch.evaluations + 1
  const isMatch = action === 'match' || action === 'complete'
  const hits = watch.hits + (isMatch ? 1 : 0)
  const end = endOf({ ...watch, evaluations }, action)
  return { evaluations, hits, hit: isMatch && watch.mode === 'continuous', ...(end ? { end } : {}) }
}

function endOf({ mode, mayEnd, evaluations, maxEvaluations }: WatchCounts, action: Verdict['action']): WatchEnd | undefined {
  if (mode === 'once' && (action === 'match' || action === 'complete')) return 'matched'
  if (action === 'fail' && (mode === 'once' || mayEnd)) return 'failed'
  if (action === 'complete' && mayEnd) return 'completed'
  return evaluations >= maxEvaluations ? 'exhausted' : undefined
}

/** After so many attempts that failed, or whose process ended without a report, a candidate has failed. */
export const maxJudgeFailures = 3

/** After so many claims that ended without a report, a message is annotated by rules alone: the model may be what ends the process. */
export const maxModelLosses = 3
/** After so many, its annotation has failed. */
export const maxAnnotationLosses = 6

/** After so many calls of an annotator that failed, the labels of rules are the annotation of a message; the annotator is asked again. */
export const maxAnnotatorFailures = 3
/** After so many it is asked no more: about half an hour. */
export const lastAnnotatorFailure = 12

/** Why a claim ended that its process did not report, as it is stored with what was claimed. */
export const lostClaim = 'claim_expired'

/** How long after its expiry a watch stays open for messages that have no categories yet. */
export const annotationGraceMs = 600_000

/** Whether a message that was stored at this time is still judged: the instant of the expiry belongs to the watch. */
export function isInTime(receivedAt: number, expiresAt: number): boolean {
  return receivedAt <= expiresAt
}

/**
 * How many evaluations one sender may use of a watch that names no contacts: a quarter, and at least five. All unverified senders of a
 * channel count as one, since their addresses cost nothing.
 */
export function senderShare(maxEvaluations: number): number {
  return Math.min(maxEvaluations, Math.max(5, Math.ceil(maxEvaluations / 4)))
}
