import type { MessageRow } from '../message/row.ts'
import type { Signal } from '../signals/signal.ts'
import type { Accepted, LaneWrite } from '../store/contract/threads.ts'
import { Operation } from './operation.ts'
import type { TracingOptions } from './options.ts'
import { telemetry, type Telemetry } from './telemetry.ts'
import { sentBy } from './traceparent.ts'

/** A signal on its way into the mailbox of a thread. */
export interface Accepting {
  agentId: string
  signal: Pick<Signal, 'id' | 'type' | 'tagName'>
  mode: string
  lane: LaneWrite | undefined
}

/** From the send to its acceptance. The run that takes it links back to here. */
export class AcceptTrace {
  readonly #operation: Operation
  readonly #type: string

  constructor(found: Telemetry, options: TracingOptions, { agentId, signal, mode, lane }: Accepting) {
    this.#type = signal.type
    this.#operation = new Operation(found, {
      name: `accept_signal ${signal.type}`,
      kind: 3,
      parent: found.active(),
      options,
      attributes: {
        'gen_ai.agent.id': agentId,
        'heed.signal.id': signal.id,
        'heed.signal.type': signal.type,
        'heed.signal.tag': signal.tagName,
        'heed.signal.mode': mode,
        'heed.lane.id': lane?.id,
        'heed.lane.mode': lane?.mode,
      },
    })
  }

  /** The row with the address of this span. */
  mark(row: MessageRow): MessageRow {
    const { spanContext } = this.#operation
    return spanContext ? sentBy(row, spanContext) : row
  }

  end(threadId: string, { route, duplicate, runId, lane }: Accepted): void {
    this.#operation.set({ 'gen_ai.conversation.id': threadId, 'heed.signal.route': route, 'heed.signal.duplicate': duplicate, 'heed.run.id': runId, 'heed.lane.version': lane?.version })
    if (!duplicate) this.#operation.telemetry.signalsAccepted?.add(1, { 'heed.signal.type': this.#type, 'heed.signal.route': route })
    this.#operation.end()
  }

  fail(error: unknown): void {
    this.#operation.fail(error)
    this.#operation.end()
  }
}

/** The trace of a send; nothing unless an SDK is registered. */
export function traceAccept(options: TracingOptions | false | undefined, accepting: Accepting): AcceptTrace | undefined {
  const found = options === false ? undefined : telemetry()
  return found && new AcceptTrace(found, options || {}, accepting)
}
