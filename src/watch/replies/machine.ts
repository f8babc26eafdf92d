/**
 * The states of the reply to a message of a channel in mode `message`. `received`: its thread does not have the message yet. `asked`: the
 * thread has it, and the run goes on. `pending`: the text is stored and to be sent. `sent`: the provider accepted it. `dead`: it could not
 * be sent; it can be retried by a caller. `none`: there is no reply, for the reason that is stored with it.
 */
export type ReplyState = 'received' | 'asked' | 'pending' | 'sent' | 'dead' | 'none'

export type ReplyEvent =
  /** The thread accepted the message as a signal. */
  | 'ask'
  /** The run ended with a text. */
  | 'answer'
  /** The provider accepted the reply. */
  | 'send'
  /** The provider refused it permanently, or its attempts are used up. */
  | 'give_up'
  /** No run is started, or the run ended without a text. */
  | 'end'
  /** A caller wants a dead reply to be sent again. */
  | 'retry'

/**
 * Why a message has no reply. `automatic`: a program wrote it. `denied`: a policy forbids it. `cancelled`: its signal was cancelled before
 * a run took it. `empty`: the run wrote no text. `run_lost`: the records of the run were removed. `thread_forbidden`: the thread belongs to
 * another resource. `id_taken`: the thread has something else under the id of the message.
 */
export type NoReply =
  | 'automatic' | 'denied' | 'cancelled' | 'empty' | 'run_failed' | 'run_aborted' | 'run_rejected' | 'run_lost' | 'thread_forbidden'
  | 'id_taken'

const table: Readonly<Record<ReplyState, Partial<Record<ReplyEvent, ReplyState>>>> = {
  received: { ask: 'asked', end: 'none' },
  asked: { answer: 'pending', end: 'none' },
  pending: { send: 'sent', give_up: 'dead' },
  sent: {},
  dead: { retry: 'pending' },
  none: {},
}

export const replyStates = Object.keys(table) as ReplyState[]
export const replyTransitions = table

/** The next state; undefined if the event is not possible. */
export function nextReplyState(state: ReplyState, event: ReplyEvent): ReplyState | undefined {
  return table[state][event]
}

/** Whether something is still to be done for the reply. */
export function isOpenReply(state: ReplyState): boolean {
  return state === 'received' || state === 'asked' || state === 'pending'
}

/** How often a reply is sent at most, until a caller retries it: for about an hour. */
export const maxReplyAttempts = 12

const firstWaitMs = 2_000
const longestWaitMs = 3_600_000

/** How long to wait after a failed attempt: the delay doubles, and is at least what the provider asked for. Undefined after the last. */
export function replyWait(
  attempt: number, { retryable, retryAfterMs = 0 }: { retryable: boolean; retryAfterMs?: number },
): number | undefined {
  if (!retryable || attempt >= maxReplyAttempts) return undefined
  return Math.min(longestWaitMs, Math.max(retryAfterMs, firstWaitMs * 2 ** (attempt - 1)))
}
