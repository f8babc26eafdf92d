import type { Command } from '../shell/command.ts'
import { policyCheck } from './policy-check.ts'

/** All commands, in the order of the help. */
export const commands: readonly Command[] = [policyCheck]
