import type { MessageRow } from '../../message/row.ts'
import { escapeText } from '../../signals/xml.ts'
import { needsGuard, RESERVED_TAGS } from '../../signals/forgery.ts'
import type { Run } from './run.ts'

/** Why the model is asked again. The answer that a processor refused is not in its prompt; each further one is told as such. */
export function notAccepted(run: Run, reason: string): MessageRow {
  const last = run.rows.findLast(({ role }) => role !== 'signal')
  const isFurther = last?.runId === run.id && last.content.metadata?.askedAgain === true
  const what = isFurther ? 'Another answer was not accepted either' : 'An answer was not accepted, and is left out here'
  return run.contextRow(guarded(run, `${what}: ${reason}. Answer again.`), { askedAgain: true })
}

/** Words that may quote somebody, between our own: they can't pass for one of our tags. */
export function guarded({ reservedTags }: Pick<Run, 'reservedTags'>, text: string): string {
  return needsGuard(text, [...RESERVED_TAGS, ...reservedTags]) ? escapeText(text) : text
}
