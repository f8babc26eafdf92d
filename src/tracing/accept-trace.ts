import type { MessageRow } from '../message/row.ts'
import type { Signal } from '../signals/signal.ts'
import type { Accepted, LaneWrite } from '../store/contract/threads.ts'
import { Operation } from './operation.ts'
import type { TracingOptions } from './options.ts'
import type { Telemetry } from './telemetry.ts'
import { withTraceparent } from './traceparent.ts'

/** The attributes of an accept span. */
interface AcceptStart {
  agentId: string
  signal: Pick<Signal, 'id' | 'type' | 'tagName'>
  mode: string
  lane: LaneWrite | undefined
}

/** The span of a send, from its call to its acceptance. The run that drains the signal links to this span. */
export class AcceptTrace {
  readonly #operation: Operation
  readonly #type: string

  constructor(telemetry: Telemetry, options: TracingOptions, { agentId, signal, mode, lane }: AcceptStart) {
    this.#type = signal.type
    this.#operation = new Operation(telemetry, {
      name: `accept_signal ${signal.type}`,
      kind: 3,
      parent: telemetry.active(),
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

  /** The row with a reference to this span. */
  mark(row: MessageRow): MessageRow {
    const { spanContext } = this.#operation
    return spanContext ? withTraceparent(row, spanContext) : row
  }

  end(threadId: string, { route, duplicate, runId, lane }: Accepted): void {
    const { telemetry } = this.#operation
    this.#operation.set({
      'gen_ai.conversation.id': threadId,
      'heed.signal.route': route,
      'heed.signal.duplicate': duplicate,
      'heed.run.id': runId,
      'heed.lane.version': lane?.version,
    })
    if (!duplicate) telemetry.signalsAccepted?.add(1, { 'heed.signal.type': this.#type, 'heed.signal.route': route })
    this.#operation.end()
  }

  fail(error: unknown): void {
    this.#operation.fail(error)
    this.#operation.end()
  }
}
