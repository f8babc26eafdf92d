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
export function worthOf(collection: Collection, ignored: ReadonlySet<number> | undefined): Worth {
  const all = collection.worth ?? worthOfAll(collection)
  return ignored === undefined || ignored.size === 0 ? all : without(collection, all, ignored)
}

/** The same where no passage is ignored. */
export function worthOfAll(collection: Omit<Collection, 'worth'>): Worth {
  const { count, length, session, previous, next } = collection
  const of = new Float32Array(count)
  const hasSession = new Uint8Array(collection.sessions)
  let [sum, terms, termsOfPairs] = [0, 0, 0]
  for (let at = 0; at < count; at += 1) {
    const own = leadsToStatement(collection, at, next[at] as number) ? 1 : worthOfNothing
    const before = previous[at] as number
    of[at] = own
    sum += own
    terms += length[at] as number
    termsOfPairs += (length[at] as number) + (before >= 0 ? (length[before] as number) : 0)
    hasSession[session[at] as number] = 1
  }
  return { of, sum, passages: count, sessions: collection.sessions, terms, termsOfPairs, hasSession }
}

/** The worth of a collection without some passages: they are few, so that the others are not counted again. */
function without(collection: Collection, all: Worth, ignored: ReadonlySet<number>): Worth {
  const { length, session, previous, next } = collection
  const worth = { ...all, of: all.of.slice(), hasSession: all.hasSession.slice() }
  const words = (at: number) => (at >= 0 ? (length[at] ?? 0) : 0)
  for (const at of ignored) {
    const [before, after] = [previous[at] ?? -1, next[at] ?? -1]
    worth.sum -= all.of[at] ?? 0
    worth.of[at] = 0
    worth.passages -= 1
    worth.terms -= words(at)
    worth.termsOfPairs -= words(at) + words(before) + (after >= 0 && !ignored.has(after) ? words(at) : 0)
    const place = session[at] ?? 0
    if (worth.hasSession[place] === 0 || hasOthers(collection, at, ignored)) continue
    worth.hasSession[place] = 0
    worth.sessions -= 1
  }
  return worth
}

/** Whether the session of a passage has one that is not ignored. */
function hasOthers({ session, previous, next }: Collection, at: number, ignored: ReadonlySet<number>): boolean {
  for (const links of [previous, next]) {
    for (let other = links[at] ?? -1; other >= 0 && session[other] === session[at]; other = links[other] ?? -1) {
      if (!ignored.has(other)) return true
    }
  }
  return false
}

/** True for a statement, and for a question or request that a statement follows. */
function leadsToStatement({ form }: Pick<Collection, 'form'>, at: number, after: number): boolean {
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
