import { forms } from '../text/form.ts'
import type { Collection } from './bm25.ts'

/** How much each passage of a collection counts for a question. */
export interface Worth {
  /** By number of the passage: 0 where it is ignored, 1 where it counts in full. */
  of: Float32Array
  sum: number
  /** The passages, and the sessions, that are not ignored; and the terms of the former, alone and each with the passage before it. */
  passages: number
  sessions: number
  terms: number
  termsOfPairs: number
  /** By number of the session: 1 where one of its passages is not ignored. */
  hasSession: Uint8Array
}

/** How much the words and the meaning of a passage count that neither states anything nor leads to a statement. */
const worthOfNothing = 0.25

/**
 * A question that a statement follows leads to it; one that no statement follows, and an answer that says that nothing is known, must not
 * make its neighbors and its session look relevant, nor the terms of its topic common. Ignored passages count as if they did not exist.
 */
export function worthOf(collection: Collection, ignored: ((at: number) => boolean) | undefined): Worth {
  const { count, length, session, previous, next } = collection
  const of = new Float32Array(count)
  const hasSession = new Uint8Array(collection.sessions)
  const worth = { of, sum: 0, passages: 0, sessions: 0, terms: 0, termsOfPairs: 0, hasSession }
  for (let at = 0; at < count; at += 1) {
    if (ignored?.(at)) continue
    const own = leadsToStatement(collection, at, next[at] ?? -1) ? 1 : worthOfNothing
    const words = length[at] as number
    const before = previous[at] ?? -1
    const place = session[at] ?? 0
    of[at] = own
    worth.sum += own
    worth.passages += 1
    worth.terms += words
    worth.termsOfPairs += words + (before >= 0 && of[before] !== 0 ? (length[before] ?? 0) : 0)
    if (hasSession[place] === 0) {
      hasSession[place] = 1
      worth.sessions += 1
    }
  }
  return worth
}

/** True for a statement, and for a question or request that a statement follows. */
function leadsToStatement({ form }: Collection, at: number, after: number): boolean {
  if (states(form[at])) return true
  return form[at] === forms.request && after >= 0 && states(form[after])
}

/** Whether a passage of this form states something. */
export function states(form: number | undefined): boolean {
  return form === forms.statement || form === forms.withQuestion
}

/** The number of these passages, each by its worth. */
export function countOf(passages: ArrayLike<number>, { of }: Worth): number {
  let sum = 0
  for (let n = 0; n < passages.length; n += 1) sum += of[passages[n] as number] as number
  return sum
}
