import { openTelemetry, root, type Attributes, type Context, type Counter, type Histogram, type Meter, type OpenTelemetry, type Tracer } from './open-telemetry.ts'

const scope = 'heed'
const seconds = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
const tokens = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864]

/** The tracer and the instruments of the SDK that is registered. */
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
    this.tokenUsage = meter?.createHistogram('gen_ai.client.token.usage', { description: 'Number of input and output tokens used.', unit: '{token}', advice: { explicitBucketBoundaries: tokens } })
    this.operationDuration = duration(meter, 'gen_ai.client.operation.duration', 'GenAI operation duration.')
    this.agentDuration = duration(meter, 'gen_ai.invoke_agent.duration', 'Duration of a run of an agent.')
    this.toolDuration = duration(meter, 'gen_ai.execute_tool.duration', 'Duration of a call of a tool.')
    this.signalsAccepted = meter?.createCounter('heed.signals.accepted', { description: 'Signals that threads accepted.', unit: '{signal}' })
    this.mailboxDepth = meter?.createHistogram('heed.mailbox.depth', { description: 'Signals that entered a run at once: as it began, or at a step boundary.', unit: '{signal}', advice: { explicitBucketBoundaries: [0, 1, 2, 4, 8, 16, 32, 64, 128] } })
  }

  isOf(api: OpenTelemetry): boolean {
    return this.#api === api && this.#registered.trace === api.trace && this.#registered.metrics === api.metrics
  }

  /** What is open where this is asked. */
  active(): Context {
    return this.#api.context?.active() ?? root
  }

  within<T>(context: Context, work: () => T): T {
    return this.#api.context ? this.#api.context.with(context, work) : work()
  }
}

function duration(meter: Meter | undefined, name: string, description: string): Histogram | undefined {
  return meter?.createHistogram(name, { description, unit: 's', advice: { explicitBucketBoundaries: seconds } })
}

let current: Telemetry | undefined

/** What is traced and measured with; nothing unless an SDK is registered now. */
export function telemetry(): Telemetry | undefined {
  const api = openTelemetry()
  if (!api) return undefined
  if (!current?.isOf(api)) current = new Telemetry(api)
  return current
}

/** What is open here, for a run that begins elsewhere. Nothing unless an SDK is registered. */
export function activeContext(): Context | undefined {
  return telemetry()?.active()
}

/** Attributes that are there. */
export function present(attributes: Attributes): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined))
}
