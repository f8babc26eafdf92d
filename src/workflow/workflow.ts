import { checkNames, checkObject, checkText, checkWhole, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { isName } from '../base/json.ts'
import { compileSchema } from '../schema/compile.ts'
import type { InferInput, InferOutput, Schema } from '../schema/schema.ts'
import { checkGraph, describeGraph, type Ask, type Child, type Node, type WorkflowGraph } from './plan/graph.ts'
import { mappingFunction, type MappedField, type Mapping } from './mapping.ts'
import type { Processor } from '../processors/processor.ts'
import { processorsOf } from './processor-step.ts'
import { WorkflowRuns } from './runs.ts'
import { isStep, makeStep, type AnyStep, type CodeStep, type Step } from './step.ts'

const marker = Symbol.for('heed.workflow')

/** The options of `createWorkflow`. */
export interface WorkflowConfig<
  Id extends string, InputSchema extends Schema, OutputSchema extends Schema, StateSchema extends Schema,
> {
  id: Id
  description?: string
  inputSchema?: InputSchema
  outputSchema?: OutputSchema
  /** The values that the steps of a run share. */
  stateSchema?: StateSchema
  /** Checks the request context that a run is started with. */
  requestContextSchema?: Schema
  metadata?: Record<string, unknown>
  /** For steps that have no `retries`: how often they are tried again, and how many milliseconds after an error. Defaults to 0 and 0. */
  retryConfig?: { attempts?: number; delay?: number }
  options?: {
    /** Whether steps check their inputs by their schemas. Defaults to true. */
    validateInputs?: boolean
  }
}

/** What a condition, a map or a computed time reads. */
export interface ConditionContext<In = unknown, State = unknown> {
  inputData: In
  state: State
  getInitData<T = unknown>(): T
  getStepResult(step: AnyStep | string): unknown
  requestContext: { get(key: string): unknown }
  runId: string
  workflowId: string
}

/** What the condition of a loop reads. */
export type LoopContext<In = unknown, State = unknown> = ConditionContext<In, State> & {
  /** How often the step has run. */
  iterationCount: number
}

type MaybePromise<T> = T | Promise<T>
type Id<S> = S extends { readonly id: infer I extends string } ? I : never
type Out<S> = S extends { readonly '~types'?: { readonly output: infer O } } ? O : unknown
type Item<List> = List extends ReadonlyArray<infer One> ? One : unknown extends List ? unknown : never
type Simple<T> = { [Key in keyof T]: T[Key] } & {}
type Outputs<Steps extends readonly unknown[]> = Simple<{ [S in Steps[number] as Id<S>]: Out<S> }>
/** A mapping as the object that it gives. */
type Mapped<M> = Simple<{
  [Key in keyof M]: M[Key] extends { step: infer S; path?: infer P } ? Field<Out<S>, P>
    : M[Key] extends { value: infer V } ? V
    : M[Key] extends { template: string } ? string
    : M[Key] extends { fn: (context: never) => infer R } ? Awaited<R> : unknown
}>
type Field<T, P> = P extends '.' | undefined ? T : P extends keyof T ? T[P] : unknown

const configNames = [
  'id', 'description', 'inputSchema', 'outputSchema', 'stateSchema', 'requestContextSchema', 'metadata', 'retryConfig', 'options',
]


/**
 * Steps in an order. Build it with `then`, `parallel`, `branch`, `foreach`, `dowhile`, `dountil`, `map`, `sleep`, `sleepUntil` and
 * `waitForEvent`, end it with `commit()`, and start runs of it. `Prev` is what the last step gives, and `Last` what it has to give.
 */
export class Workflow<
  WorkflowId extends string = string, Input = unknown, Output = unknown, State = unknown, Prev = unknown, Last = Output,
>
  extends WorkflowRuns<Input, Output, State> implements Step<WorkflowId, Input, Output, State> {
  readonly id: WorkflowId
  readonly description: string | undefined
  readonly inputSchema: Schema | undefined
  readonly outputSchema: Schema | undefined
  readonly stateSchema: Schema | undefined
  readonly metadata: Readonly<Record<string, unknown>> | undefined
  declare readonly '~types'?: { readonly input: (input: Input) => void; readonly output: Output; readonly state: (state: State) => void }
  readonly #config: WorkflowConfig<string, Schema, Schema, Schema>
  readonly #nodes: Node[] = []
  #graph: WorkflowGraph | undefined
  #processors: Processor[] | undefined

  constructor(config: WorkflowConfig<WorkflowId, Schema, Schema, Schema>) {
    super()
    checkConfig(config)
    this.#config = config
    this.id = config.id
    this.description = config.description
    this.inputSchema = config.inputSchema
    this.outputSchema = config.outputSchema
    this.stateSchema = config.stateSchema
    this.metadata = config.metadata
    Object.defineProperty(this, marker, { value: true })
  }

  /**
   * The step after the last one; its input is the output of that. A workflow can't be awaited: an async function that returns one would
   * call this.
   */
  // oxlint-disable-next-line unicorn/no-thenable -- the name of the specification
  then<S extends Step<string, Prev, unknown, State>>(step: S): Workflow<WorkflowId, Input, Output, State, Out<S>, Last> {
    if (typeof step === 'function') {
      const message = `Workflow '${this.id}' was awaited, or returned by an async function. Its then() adds a step.`
      throw new HeedError('invalid_workflow', message)
    }
    return this.#add(childOf(step, 'then'))
  }

  /** Steps beside each other, with the same input. Their outputs are the fields of the next input, by their ids. */
  parallel<const Steps extends ReadonlyArray<Step<string, Prev, unknown, State>>>(
    steps: Steps,
  ): Workflow<WorkflowId, Input, Output, State, Outputs<Steps>, Last> {
    if (!Array.isArray(steps)) throw refused('parallel()', 'called with a list of steps')
    return this.#add({ kind: 'parallel', children: steps.map((step: AnyStep) => childOf(step, 'parallel')) })
  }

  /**
   * The steps whose conditions are true run beside each other; with `first`, only the first of them. Their outputs are the fields of the
   * next input, by their ids. The conditions are asked once.
   */
  branch<const Branches extends ReadonlyArray<
    readonly [(context: ConditionContext<Prev, State>) => MaybePromise<boolean>, Step<string, Prev, unknown, State>]
  >>(
    branches: Branches, options: { first?: boolean } = {},
  ): Workflow<WorkflowId, Input, Output, State, Partial<Outputs<{ -readonly [Index in keyof Branches]: Branches[Index][1] }>>, Last> {
    checkNames('branch()', options, ['first'])
    if (!Array.isArray(branches)) throw refused('branch()', 'called with a list of [condition, step]')
    const pairs = branches as ReadonlyArray<readonly [Ask<boolean>, AnyStep]>
    for (const pair of pairs)
      if (!Array.isArray(pair) || typeof pair[0] !== 'function') throw refused('branch()', 'called with a list of [condition, step]')
    return this.#add({
      kind: 'branch', conditions: pairs.map(([condition]) => condition), children: pairs.map(([, step]) => childOf(step, 'branch')),
      first: options.first ?? false,
    })
  }

  /** The step for each element of the list that the last step gave; the outputs are a list in the same order. */
  foreach<S extends Step<string, Item<Prev>, unknown, State>>(
    step: S, options: { concurrency?: number } = {},
  ): Workflow<WorkflowId, Input, Output, State, Array<Out<S>>, Last> {
    checkNames('foreach()', options, ['concurrency'])
    const { concurrency = 1 } = options
    checkWhole('concurrency', concurrency, 1)
    return this.#add({ kind: 'foreach', child: childOf(step, 'foreach'), concurrency })
  }

  /** The step again and again, each time with what it gave before, while the condition is true after it. */
  dowhile<S extends Step<string, Prev, unknown, State>>(
    step: S, condition: (context: LoopContext<Out<S>, State>) => MaybePromise<boolean>,
  ): Workflow<WorkflowId, Input, Output, State, Out<S>, Last> {
    return this.#loop(step, condition as Ask<boolean>, false)
  }

  /** The step again and again, each time with what it gave before, until the condition is true after it. */
  dountil<S extends Step<string, Prev, unknown, State>>(
    step: S, condition: (context: LoopContext<Out<S>, State>) => MaybePromise<boolean>,
  ): Workflow<WorkflowId, Input, Output, State, Out<S>, Last> {
    return this.#loop(step, condition as Ask<boolean>, true)
  }

  /** What the next step gets, made by a function or field by field. Asked once; the answer is stored. */
  map<Answer>(
    map: (context: ConditionContext<Prev, State>) => MaybePromise<Answer>, options?: { id?: string },
  ): Workflow<WorkflowId, Input, Output, State, Answer, Last>
  map<const Fields extends Readonly<Record<string, MappedField>>>(
    map: Fields, options?: { id?: string },
  ): Workflow<WorkflowId, Input, Output, State, Mapped<Fields>, Last>
  map(map: unknown, options: { id?: string } = {}): never {
    checkNames('map()', options, ['id'])
    if (typeof map !== 'function') checkObject('map()', map)
    const ask = typeof map === 'function' ? (map as Ask<unknown>) : mappingFunction(map as Mapping)
    return this.#add({ kind: 'map', id: options.id ?? `map-${this.#nodes.length}`, ask })
  }

  /** Waits so many milliseconds, also across restarts of the process. */
  sleep(duration: number | ((context: ConditionContext<Prev, State>) => MaybePromise<number>), options: { id?: string } = {}): this {
    checkNames('sleep()', options, ['id'])
    if (typeof duration !== 'function' && !(Number.isFinite(duration) && duration >= 0))
      throw refused('sleep()', 'called with milliseconds, or a function that returns them')
    const ask = typeof duration === 'function' ? (duration as Ask<number>) : () => duration
    return this.#add({ kind: 'sleep', id: options.id ?? `sleep-${this.#nodes.length}`, ask })
  }

  /** Waits until a date, also across restarts of the process. */
  sleepUntil(date: Date | ((context: ConditionContext<Prev, State>) => MaybePromise<Date>), options: { id?: string } = {}): this {
    checkNames('sleepUntil()', options, ['id'])
    if (typeof date !== 'function' && !(date instanceof Date && Number.isFinite(date.getTime())))
      throw refused('sleepUntil()', 'called with a date, or a function that returns one')
    const ask = typeof date === 'function' ? (date as Ask<Date>) : () => date
    return this.#add({ kind: 'sleepUntil', id: options.id ?? `sleep-${this.#nodes.length}`, ask })
  }

  /**
   * Waits for `run.sendEvent(name, data)`. An event that came before the wait counts. After `timeoutMs` the run fails with
   * `event_timeout`. What the next step gets is the data of the event.
   */
  waitForEvent<EventSchema extends Schema = Schema>(
    name: string, options: { schema?: EventSchema; timeoutMs?: number } = {},
  ): Workflow<WorkflowId, Input, Output, State, InferOutput<EventSchema>, Last> {
    checkNames('waitForEvent()', options, ['schema', 'timeoutMs'])
    if (!isName(name)) throw refused('waitForEvent()', 'called with the name of an event')
    if (options.schema !== undefined) compileSchema(options.schema, `the schema of event '${name}'`)
    if (options.timeoutMs !== undefined) checkWhole('timeoutMs', options.timeoutMs, 1)
    return this.#add({ kind: 'event', id: name, name, schema: options.schema, timeoutMs: options.timeoutMs })
  }

  /** Ends the definition. Throws what is wrong with it. */
  commit(this: Workflow<WorkflowId, Input, Output, State, Last, Last>): Workflow<WorkflowId, Input, Output, State, Output> {
    this.#graph ??= this.#freeze()
    return this as never
  }

  /** @internal */
  get graph(): WorkflowGraph {
    if (this.#graph) return this.#graph
    throw new HeedError(
      'invalid_workflow', `Workflow '${this.id}' is not committed. Call commit() after its last step.`, {
        details: { workflowId: this.id },
      },
    )
  }

  /** @internal As JSON, for lists of workflows. */
  describe(): { id: string; description: string | undefined; metadata: unknown; steps: ReturnType<typeof describeGraph> } {
    return { id: this.id, description: this.description, metadata: this.metadata, steps: describeGraph(this.graph) }
  }

  /** @internal The processors that it stands for, in a list of processors. Throws where it has other steps. */
  asProcessors(): Processor[] {
    this.#processors ??= processorsOf(this.graph)
    return this.#processors
  }

  #freeze(): WorkflowGraph {
    const { id, inputSchema, outputSchema, stateSchema, requestContextSchema, retryConfig: { attempts = 0, delay = 0 } = {}, options } =
      this.#config
    const graph: WorkflowGraph = Object.freeze({
      id, inputSchema, outputSchema, stateSchema, requestContextSchema, nodes: Object.freeze([...this.#nodes]),
      retry: Object.freeze({ attempts, delay }),
      validateInputs: options?.validateInputs ?? true,
    })
    checkGraph(graph)
    return graph
  }

  #loop(step: AnyStep, ask: Ask<boolean>, until: boolean): never {
    if (typeof ask !== 'function') throw refused(until ? 'dountil()' : 'dowhile()', 'called with a step and a condition')
    return this.#add({ kind: 'loop', child: childOf(step, until ? 'dountil' : 'dowhile'), ask, until })
  }

  #add(node: Node): never {
    if (this.#graph) {
      throw new HeedError(
        'invalid_workflow', `Workflow '${this.id}' is committed: add steps before commit(), or clone it with cloneWorkflow().`,
        { details: { workflowId: this.id } },
      )
    }
    this.#nodes.push(Object.freeze(node))
    return this as never
  }

  /** @internal The same nodes under another id. */
  copyAs(id: string): Workflow {
    const copy = new Workflow({ ...this.#config, id })
    copy.#nodes.push(...this.#nodes)
    if (this.#graph) copy.#graph = copy.#freeze()
    return copy
  }
}

/** Begins a workflow: `createWorkflow({ id, inputSchema, outputSchema }).then(step).commit()`. */
export function createWorkflow<
  const WorkflowId extends string, InputSchema extends Schema = Schema, OutputSchema extends Schema = Schema,
  StateSchema extends Schema = Schema,
>(
  config: WorkflowConfig<WorkflowId, InputSchema, OutputSchema, StateSchema>,
): Workflow<
  WorkflowId, InferInput<InputSchema>, InferOutput<OutputSchema>, InferOutput<StateSchema>, InferOutput<InputSchema>,
  InferInput<OutputSchema>
> {
  return new Workflow(config) as never
}

/** The same step under another id, to use it twice in a workflow. */
export function cloneStep<const StepId extends string, In, Out, State>(
  step: Step<string, In, Out, State>, options: { id: StepId },
): Step<StepId, In, Out, State> {
  if (!isStep(step)) throw refused('cloneStep()', 'called with a step')
  checkNames('cloneStep()', options, ['id'])
  return makeStep({ ...(step as CodeStep), id: options.id }) as AnyStep as Step<StepId, In, Out, State>
}

/** The same workflow under another id. */
export function cloneWorkflow<const WorkflowId extends string, Input, Output, State, Prev, Last>(
  workflow: Workflow<string, Input, Output, State, Prev, Last>, options: { id: WorkflowId },
): Workflow<WorkflowId, Input, Output, State, Prev, Last> {
  if (!isWorkflow(workflow)) throw refused('cloneWorkflow()', 'called with a workflow')
  checkNames('cloneWorkflow()', options, ['id'])
  return workflow.copyAs(options.id) as never
}

export function isWorkflow(value: unknown): value is Workflow {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[marker] === true
}

function childOf(step: unknown, method: string): Child {
  if (isWorkflow(step)) return Object.freeze({ kind: 'workflow', id: step.id, graph: step.graph })
  if (isStep(step)) return Object.freeze({ kind: 'step', step })
  throw new HeedError('invalid_workflow', `${method}() needs a step: createStep({ … }), or a committed workflow.`)
}

function checkConfig(config: WorkflowConfig<string, Schema, Schema, Schema>): void {
  if (!isName((config as Partial<typeof config> | undefined)?.id))
    throw new HeedError('invalid_workflow', "A workflow needs an id: createWorkflow({ id: 'order', … }).")
  const who = `workflow '${config.id}'`
  if (/[./[\]#?:]/.test(config.id))
    throw new HeedError('invalid_workflow', `The id of ${who} has one of . / [ ] # ? :, which paths and ids are made of. Choose another.`)
  checkNames(who, config, configNames)
  if (config.description !== undefined) checkText(`description of ${who}`, config.description)
  for (const name of ['inputSchema', 'outputSchema', 'stateSchema', 'requestContextSchema'] as const)
    if (config[name] !== undefined) compileSchema(config[name], `${name} of ${who}`)
  if (config.retryConfig !== undefined) {
    checkNames(`retryConfig of ${who}`, config.retryConfig, ['attempts', 'delay'])
    for (const name of ['attempts', 'delay'] as const)
      if (config.retryConfig[name] !== undefined) checkWhole(`retryConfig.${name} of ${who}`, config.retryConfig[name])
  }
  if (config.options !== undefined) {
    checkNames(`options of ${who}`, config.options, ['validateInputs'])
    if (config.options.validateInputs !== undefined && typeof config.options.validateInputs !== 'boolean')
      throw refused('options.validateInputs', 'true or false')
  }
}
