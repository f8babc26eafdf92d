import type { LiveEvent } from '../../bus/message.ts'

/** Tells those elsewhere who watch what happens here. */
export interface LiveRelay {
  entered(epoch: number): void
  happened(event: LiveEvent): void
}
