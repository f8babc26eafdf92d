import { spanIn, withSpan, type Span, type SpanContext } from './open-telemetry.ts'
import type { TracingOptions } from './options.ts'
import { telemetry } from './telemetry.ts'
import { contextOf } from './traceparent.ts'

/**
 * Does what a request asks for below the span that its `traceparent` names. Where a span is open already, as with an SDK that traces the server itself,
 * that one is below it, and nothing is done here.
 */
export function belowRequest<T>(options: TracingOptions | false | undefined, traceparent: () => string | null, work: () => T): T {
  const found = options === false ? undefined : telemetry()
  const active = found?.active()
  const named = found && active && !spanIn(active) ? contextOf(traceparent()) : undefined
  return found && active && named ? found.within(withSpan(active, new RemoteSpan(named)), work) : work()
}

/** A span of another process: known by its name, and not for us to write on. */
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
