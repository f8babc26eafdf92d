import type { Command } from '../shell/command.ts'
import { dev } from './dev.ts'
import { doctor } from './doctor.ts'
import { evaluate } from './eval.ts'
import { inbox } from './inbox.ts'
import { init } from './init.ts'
import { policyCheck } from './policy-check.ts'
import { send } from './send.ts'
import { start } from './start.ts'
import { tail } from './tail.ts'

/** All commands, in the order of the help. */
export const commands: readonly Command[] = [init, dev, start, send, tail, inbox, evaluate, doctor, policyCheck]
