import type { Processor } from './processor.ts'

/** A processor in one run. */
export class Seat {
  declare readonly processor: Processor
  declare readonly state: Record<string, unknown>

  constructor(processor: Processor) {
    this.processor = processor
    this.state = {}
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
  const seats = { input: seated(input, all), output: seated(output, all), all }
  return seats
}

function seated(list: readonly Processor[], all: Seat[]): Seat[] {
  const seats: Seat[] = []
  for (const processor of list) seats.push(seatOf(processor, all, seats.length))
  return seats
}

/** A run has a handful of them: looking through those costs less than keeping a map. `at`: where it is in most cases, if it has one. */
function seatOf(processor: Processor, all: Seat[], at: number): Seat {
  const likely = all[at]
  if (likely?.processor === processor) return likely
  for (const seat of all) if (seat.processor === processor) return seat
  const seat = new Seat(processor)
  all.push(seat)
  return seat
}
