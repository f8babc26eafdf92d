import type { Tripwire } from '../../processors/processor.ts'
import type { Signal } from '../../signals/signal.ts'
import type { OverWire } from '../wire.ts'

/**
 * The `data-*` parts of a thread, for `useChat<UIMessage<unknown, HeedDataTypes>>()`. A signal's `type` says what it is: `state` is a lane,
 * `notification` what happened elsewhere, `reactive` anything else.
 */
export type HeedDataTypes = {
  signal: OverWire<Omit<Signal, 'guarded'>>
  tripwire: OverWire<Tripwire>
  error: { message: string; name?: string; code?: string }
}
