import type { Evidence, Violation } from '../checks/evidence.ts'
import type { Life } from './lives.ts'
import type { LogEvent } from './store-log.ts'

/** All that is known of a round with threads that end: also what the store held when. */
export interface LivesEvidence extends Evidence {
  log: LogEvent[]
}

/** The evidence, with the lives that follow from its log. */
export interface Lived extends LivesEvidence {
  lives: Life[]
}

export type LivesCheck = (evidence: Lived) => Violation[]

/** Microseconds by which the times of the store and of a journal may differ. */
export const slack = 3_000
