import type { Run } from '../run/loop/run.ts'
import { HookCall } from './hook-call.ts'
import type { Processor } from './processor.ts'

/** The processors of one run, each with the call that its hooks are asked with. */
export interface Seats {
  input: readonly HookCall[]
  output: readonly HookCall[]
}

/** A processor that is in both lists, or twice in one, has one seat. */
export function seatsOf(run: Run, input: readonly Processor[], output: readonly Processor[]): Seats {
  const first = seated(run, input, [])
  return { input: first, output: seated(run, output, first) }
}

function seated(run: Run, processors: readonly Processor[], before: readonly HookCall[]): HookCall[] {
  const seats = before.length === processors.length ? before.slice() : []
  for (let index = 0; index < processors.length; index++) {
    const processor = processors[index] as Processor
    // Most are in both lists, in the same place.
    if (seats[index]?.processor === processor) continue
    seats[index] = seatOf(processor, before) ?? seatOf(processor, seats) ?? new HookCall(run, processor, {})
  }
  return seats
}

/** A run has a handful of them: looking through those costs less than keeping a map. */
function seatOf(processor: Processor, seats: readonly HookCall[]): HookCall | undefined {
  for (let index = 0; index < seats.length; index++) if (seats[index]?.processor === processor) return seats[index]
  return undefined
}

/** Each once. */
export function allSeats({ input, output }: Seats): readonly HookCall[] {
  return [...new Set([...input, ...output])]
}
