import type { Kind } from '../kind.ts'
import { mutants } from './mutants.ts'
import { DecisionRound, wholeRound } from './round.ts'

/** Approvals, declines and resumes of calls at every depth, by two deciders who differ, each followed by a close, a kill or nothing. */
export const decisions: Kind = {
  name: 'decisions',
  entry: 'decisions/child.ts',
  run: (plan) => new DecisionRound(plan, wholeRound).run(),
  mutants,
}
