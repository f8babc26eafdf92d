import { Chance } from '../../../src/store/conformance/fixture.ts'
import type { Kind } from '../kind.ts'
import { mutants } from './mutants.ts'
import { FaultRound, processFaults, storeFaults } from './round.ts'

/** What a process believes about itself and its store: a blocked event loop, a store that fails and heals, and clocks that are set. */
export const faults: Kind = {
  name: 'faults',
  entry: 'faults/child.ts',
  run(plan) {
    const chance = new Chance(plan.seed)
    const slots = 1 + chance.below(3)
    return new FaultRound({
      ...plan,
      slots,
      store: chance.shuffle(storeFaults).slice(0, 6),
      process: chance.shuffle([...processFaults, 'block', 'block'] as const).slice(0, 9),
      sweep: chance.below(3) === 0,
    }).run()
  },
  mutants,
}
