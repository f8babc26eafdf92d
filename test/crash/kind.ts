import type { Violation } from './checks/evidence.ts'
import type { Fault } from './program.ts'

/** A kind of round: what its processes do, which faults they meet, and what has to hold afterwards. */
export interface Kind {
  name: string
  /** The program of its processes, relative to this folder. */
  entry: string
  /** One database with its processes and faults, drawn from the seed, then a time without faults, then the checks. */
  run(plan: KindPlan): Promise<KindResult>
  /** Builds that are broken on purpose, each with the checks of which at least one has to find it. */
  mutants: Readonly<Record<string, Mutant>>
}

export interface KindPlan {
  /** The bundled program of `entry`. */
  program: string
  /** For the databases and journals of this round. */
  folder: string
  seed: number
}

export interface KindResult {
  /** How many faults of each name took place. */
  faults: Record<string, number>
  /** `what` begins with the name of the check and a colon. */
  violations: Violation[]
  /** What the round did, in numbers, for the page. */
  facts: Record<string, number>
}

export interface Mutant {
  fault: Fault
  finds: readonly string[]
  /** The part of a round that shows it, where a whole round rarely does. */
  run?(plan: KindPlan): Promise<KindResult>
  /** Its processes hang until a limit ends them: `npm run test:mutants` includes it, the short campaigns do not. */
  slow?: true
  /** Its harm needs an order of events that a round has by chance: eight rounds missed it once. `npm run test:mutants` has it. */
  rare?: true
}
