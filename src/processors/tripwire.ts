import type { Tripwire } from './processor.ts'

/** Thrown by `abort()`. Travels through the processor's own code to the run that asked it. */
export class TripwireAbort extends Error {
  readonly tripwire: Tripwire

  constructor(tripwire: Tripwire) {
    super(tripwire.reason)
    this.tripwire = tripwire
  }
}
