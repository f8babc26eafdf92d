import type { LiveEvent } from '../../bus/message.ts'

/** Sends the events of a thread to the processes that watch it. */
export interface LiveRelay {
  entered(epoch: number): void
  happened(event: LiveEvent): void
}
