import type { JSONValue } from '../../base/json.ts'
import type { Tripwire } from '../../processors/processor.ts'
import type { Signal } from '../../signals/signal.ts'
import type { OverWire } from '../wire.ts'

/** A tool that waits for data: `addToolOutput` answers it, with the data as `output`. */
export type WaitingForData = {
  toolCallId: string
  toolName: string
  args: JSONValue
  /** What the tool said as it began to wait. */
  payload: JSONValue
  /** It waits no longer. Where the thread is followed, and after a reload, there is no part for it any more. */
  isOver?: true
}

/**
 * The `data-*` parts of a thread, for `useChat<UIMessage<unknown, HeedDataTypes>>()`. A signal's `type` says what it is: `state` is a lane,
 * `notification` what happened elsewhere, `reactive` anything else.
 */
export type HeedDataTypes = {
  signal: OverWire<Omit<Signal, 'guarded'>>
  tripwire: OverWire<Tripwire>
  suspended: WaitingForData
  error: { message: string; name?: string; code?: string }
}
