import {
  openTelemetry, rootContext, type Attributes, type Context, type Counter, type Histogram, type Meter, type OpenTelemetry, type Tracer,
} from './open-telemetry.ts'
import type { TracingOptions } from './options.ts'

const scope = 'heed'
const secondBuckets = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
const tokenBuckets = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864]

/** The tracer and the instruments of the registered SDK. */
export class Telemetry {
  readonly #api: OpenTelemetry
  readonly #registered: Pick<OpenTelemetry, 'trace' | 'metrics'>
  readonly tracer: Tracer | undefined
  readonly tokenUsage: Histogram | undefined
  readonly operationDuration: Histogram | undefined
  readonly agentDuration: Histogram | undefined
  readonly toolDuration: Histogram | undefined
  readonly signalsAccepted: Counter | undefined
  readonly mailboxDepth: Histogram | undefined

  constructor(api: OpenTelemetry) {
    this.#api = api
    this.#registered = { ...api }
    this.tracer = api.trace?.getTracer(scope)
    const meter = api.metrics?.getMeter(scope)
    this.tokenUsage = meter?.createHistogram('gen_ai.client.token.usage', {
      description: 'Number of input and output tokens used.', unit: '{token}', advice: { explicitBucketBoundaries: tokenBuckets },
    })
    this.operationDuration = duration(meter, 'gen_ai.client.operation.duration', 'GenAI operation duration.')
    this.agentDuration = duration(meter, 'gen_ai.invoke_agent.duration', 'Duration of a run of an agent.')
    this.toolDuration = duration(meter, 'gen_ai.execute_tool.duration', 'Duration of a call of a tool.')
    this.signalsAccepted = meter?.createCounter('heed.signals.accepted', {
      description: 'Signals that threads accepted.', unit: '{signal}',
    })
    this.mailboxDepth = meter?.createHistogram('heed.mailbox.depth', {
      description: 'Signals that a run drained at once: at its start, or at a step boundary.',
      unit: '{signal}',
      advice: { explicitBucketBoundaries: [0, 1, 2, 4, 8, 16, 32, 64, 128] },
    })
  }

  isOf(api: OpenTelemetry): boolean {
    return this.#api === api && this.#registered.trace === api.trace && this.#registered.metrics === api.metrics
  }

  /** The context of the caller. */
  active(): Context {
    return this.#api.context?.active() ?? rootContext
  }

  within<T>(context: Context, work: () => T): T {
    return this.#api.context ? this.#api.context.with(context, work) : work()
  }
}

function duration(meter: Meter | undefined, name: string, description: string): Histogram | undefined {
  return meter?.createHistogram(name, { description, unit: 's', advice: { explicitBucketBoundaries: secondBuckets } })
}

let current: Telemetry | undefined

/** The telemetry of the registered SDK; undefined without one, and where the options turn tracing off. */
export function telemetryFor(options: TracingOptions | false | undefined): Telemetry | undefined {
  return options === false ? undefined : currentTelemetry()
}

function currentTelemetry(): Telemetry | undefined {
  const api = openTelemetry()
  if (!api) return undefined
  if (!current?.isOf(api)) current = new Telemetry(api)
  return current
}

/** The context of the caller, for a run that starts later. Undefined unless an SDK is registered. */
export function activeContext(): Context | undefined {
  return currentTelemetry()?.active()
}

/** The attributes without undefined values. */
export function definedAttributes(attributes: Attributes): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined))
}
