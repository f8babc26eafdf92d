import { Chance } from '../../../src/store/conformance/fixture.ts'
import type { Kind } from '../kind.ts'
import { mutants } from './mutants.ts'
import { scenes, Still, Storm } from './round.ts'

/** Threads that are deleted, made again, restored and copied during runs, and runs that are aborted, under kills, stops, closes and deploys. */
export const lives: Kind = {
  name: 'lives',
  entry: 'lives/child.ts',
  run(plan) {
    const chance = new Chance(plan.seed)
    if (plan.seed % 3 === 0) return new Still(plan).still(chance.shuffle([...scenes, ...scenes]).slice(0, 7))
    return new Storm(plan, { slots: 2 + chance.below(2), processes: 8, kills: true }).storm()
  },
  mutants,
}
