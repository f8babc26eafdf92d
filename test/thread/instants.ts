import { Chance } from '../../src/store/conformance/fixture.ts'

/** A moment some way from now: at once, some microtasks, some turns of the event loop, or up to so many milliseconds later. */
export function instant(chance: Chance, { milliseconds = 0 }: { milliseconds?: number } = {}): Promise<void> {
  switch (chance.below(milliseconds > 0 ? 4 : 3)) {
    case 0:
      return Promise.resolve()
    case 1:
      return microtasks(chance.below(40))
    case 2:
      return turns(1 + chance.below(4))
    default:
      return new Promise((resolve) => setTimeout(resolve, chance.below(milliseconds + 1)))
  }
}

async function microtasks(count: number): Promise<void> {
  for (let index = 0; index < count; index++) await Promise.resolve()
}

async function turns(count: number): Promise<void> {
  for (let index = 0; index < count; index++) await new Promise((resolve) => setImmediate(resolve))
}

/** Runs a random test; a failure says with which seed. `HEED_SEED` repeats one. */
export async function seeded(seed: number, run: (chance: Chance) => Promise<void>): Promise<void> {
  const chosen = Number(process.env.HEED_SEED ?? seed)
  try {
    await run(new Chance(chosen))
  } catch (error) {
    throw new Error(`failed with HEED_SEED=${chosen}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
}
