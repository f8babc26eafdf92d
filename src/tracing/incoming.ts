import { spanOf, withSpan, type Span, type SpanContext } from './open-telemetry.ts'
import type { TracingOptions } from './options.ts'
import { telemetryFor } from './telemetry.ts'
import { parseTraceparent } from './traceparent.ts'

/**
 * Handles a request below the span of its `traceparent` header. A span that is already active, as with an SDK that instruments the
 * server, stays the parent.
 */
export function withRequestSpan<T>(options: TracingOptions | false | undefined, traceparent: () => string | null, work: () => T): T {
  const telemetry = telemetryFor(options)
  const active = telemetry?.active()
  const remote = telemetry && active && !spanOf(active) ? parseTraceparent(traceparent()) : undefined
  return telemetry && active && remote ? telemetry.within(withSpan(active, new RemoteSpan(remote)), work) : work()
}

/** A span of another process: a parent that records nothing. */
class RemoteSpan implements Span {
  readonly #context: SpanContext

  constructor(context: SpanContext) {
    this.#context = context
  }

  spanContext(): SpanContext {
    return this.#context
  }

  isRecording(): boolean {
    return false
  }

  setAttribute(): this {
    return this
  }

  setAttributes(): this {
    return this
  }

  addEvent(): this {
    return this
  }

  addLink(): this {
    return this
  }

  addLinks(): this {
    return this
  }

  setStatus(): this {
    return this
  }

  updateName(): this {
    return this
  }

  recordException(): void {}

  end(): void {}
}
