import type { HookCall } from './hook-call.ts'
import type { Processor } from './processor.ts'

/** A processor in one run. */
export class Seat {
  declare readonly processor: Processor
  declare readonly state: Record<string, unknown>
  /** A call that has ended and can be used again. */
  declare idle: HookCall | undefined

  constructor(processor: Processor) {
    this.processor = processor
    this.state = {}
    this.idle = undefined
  }
}

export interface Seats {
  input: readonly Seat[]
  output: readonly Seat[]
  /** Each once. */
  all: readonly Seat[]
}

const none: readonly Seat[] = []
const nobody: Seats = { input: none, output: none, all: none }

/** A processor that is in both lists, or twice in one, has one seat. */
export function seatsOf(input: readonly Processor[], output: readonly Processor[]): Seats {
  if (input.length + output.length === 0) return nobody
  const all: Seat[] = []
  const seated = (processor: Processor, at: number) => seatOf(processor, all, at)
  return { input: input.map(seated), output: output.map(seated), all }
}

/** A run has a handful of them: looking through those costs less than keeping a map. `at`: where it is in most cases, if it has one. */
function seatOf(processor: Processor, all: Seat[], at: number): Seat {
  const count = all.length
  for (let index = at < count ? at : 0; index < count; index++) if (all[index]?.processor === processor) return all[index] as Seat
  for (let index = 0; index < at && index < count; index++) if (all[index]?.processor === processor) return all[index] as Seat
  const seat = new Seat(processor)
  all.push(seat)
  return seat
}
