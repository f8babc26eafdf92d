import { decisions } from './decisions/kind.ts'
import { faults } from './faults/kind.ts'
import type { Kind } from './kind.ts'
import { lives } from './lives/kind.ts'
import { load } from './load-kind.ts'

/** All kinds of rounds, in the order in which a campaign runs them. */
export const kinds: readonly Kind[] = [load, decisions, faults, lives]
