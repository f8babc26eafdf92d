import type { Chunk } from '../../run/chunk.ts'

/** What a snapshot has to know of a thread at one moment. */
export interface LiveMark {
  position: number
  /** Whoever returns with it gets the present step and what follows. */
  cursor: string
  runId: string | undefined
  /** While a run is at work: the last row that the chunks before the present step stand for. */
  seq: number | undefined
  step: Chunk[]
  /** Grows with every run that starts here. */
  runs: number
}
