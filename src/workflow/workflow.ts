import { checkNames, checkObject, checkText, checkWhole, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { isName } from '../base/json.ts'
import { compileSchema } from '../schema/compile.ts'
import type { InferInput, InferOutput, Schema } from '../schema/schema.ts'
import type { ScorerLike } from '../scorers/contract.ts'
import {
  checkGraph, describeGraph, stepsOf, type Ask, type Child, type DescribedNode, type Node, type WorkflowGraph,
} from './plan/graph.ts'
import { mappingFunction, type MappedField, type Mapping } from './mapping.ts'
import type { Processor } from '../processors/processor.ts'
import type { RequestContext } from '../run/request-context.ts'
import type { AgentLike } from './agent-step.ts'
import { checkConfig, type WorkflowConfig } from './definition/config.ts'
import { createStep, type ToolLike } from './create-step.ts'
import { processorsOf } from './processor-step.ts'
import { WorkflowRuns } from './runs.ts'
import { readySchedules, type DescribedSchedule, type ReadySchedule } from './definition/scheduled.ts'
import { isStep, makeStep, type AnyStep, type CodeStep, type Step } from './step.ts'

const marker = Symbol.for('heed.workflow')

/** What a condition, a map or a computed time reads. */
export interface ConditionContext<In = unknown, State = unknown> {
  inputData: In
  state: State
  getInitData<T = unknown>(): T
  getStepResult(step: AnyStep | string): unknown
  requestContext: RequestContext
  runId: string
  workflowId: string
  resourceId?: string
}

/** What says more about a place of a workflow, for lists and pages. */
export interface NodeOptions {
  /** Names the place in records, chunks and lists. By default it is named by its kind and number, or by its steps. */
  id?: string
  description?: string
  metadata?: Record<string, unknown>
}

/** What the condition of a loop reads. */
export type LoopContext<In = unknown, State = unknown> = ConditionContext<In, State> & {
  /** How often the step has run. */
  iterationCount: number
}

/** What a step made of an agent or a tool may be called. */
export interface StepAbout<StepId extends string = string> {
  id?: StepId
  description?: string
  metadata?: Record<string, unknown>
}

type MaybePromise<T> = T | Promise<T>
/** What fits behind a step that gives this; where it doesn't, a type that no value has. */
type Fitting<Prev, Wanted, Value> = [Prev] extends [Wanted] ? Value : never
type Id<S> = S extends { readonly id: infer I extends string } ? I : never
type Out<S> = S extends { readonly '~types'?: { readonly output: infer O } } ? O : unknown
type Item<List> = List extends ReadonlyArray<infer One> ? One : unknown extends List ? unknown : never
type Simple<T> = { [Key in keyof T]: T[Key] } & {}
type Outputs<Steps extends readonly unknown[]> = Simple<{ [S in Steps[number] as Id<S>]: Out<S> }>
/** A mapping as the object that it gives. */
type Mapped<M> = Simple<{
  -readonly [Key in keyof M]: M[Key] extends { schema: infer S extends Schema } ? InferOutput<S>
    : M[Key] extends { step: infer S; path?: infer P } ? Field<Out<S extends readonly unknown[] ? S[number] : S>, P>
    : M[Key] extends { value: infer V } ? V
    : M[Key] extends { template: string } ? string
    : M[Key] extends { fn: (context: never) => infer R } ? Awaited<R> : unknown
}>
/** A field of a value by its path: `a`, or `a.b`. */
type Field<T, P> = unknown extends P ? T
  : P extends '.' | '' | undefined ? T
  : P extends keyof T ? T[P]
  : P extends `${infer Key}.${infer Rest}` ? (Key extends keyof T ? Field<T[Key], Rest> : unknown)
  : unknown

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
  /** @internal */
  readonly schedules: readonly ReadySchedule[]
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
    this.schedules = readySchedules(config.id, config.schedule)
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

  /** The same as `then(createStep(agent, { structuredOutput }))`; with `id`, under this name. */
  agent<const AgentId extends string, OutputSchema extends Schema, const As extends string = AgentId>(
    agent: Fitting<Prev, { prompt: string }, AgentLike<AgentId>>,
    options: StepAbout<As> & { structuredOutput: { schema: OutputSchema } },
  ): Workflow<WorkflowId, Input, Output, State, InferOutput<OutputSchema>, Last>
  agent<const AgentId extends string, const As extends string = AgentId>(
    agent: Fitting<Prev, { prompt: string }, AgentLike<AgentId>>, options?: StepAbout<As>,
  ): Workflow<WorkflowId, Input, Output, State, { text: string }, Last>
  agent(agent: unknown, options: StepAbout<string> & { structuredOutput?: { schema: Schema } } = {}): never {
    checkObject('agent()', options)
    const { structuredOutput, ...about } = options
    const step = createStep(agent as AgentLike, ...(structuredOutput === undefined ? [] : [{ structuredOutput }]) as [])
    return this.#add({ kind: 'step', step: copiedStep('agent()', step, about) })
  }

  /** The same as `then(createStep(tool))`; with `id`, under this name. */
  tool<const ToolId extends string, ToolInput, ToolOutput, const As extends string = ToolId>(
    tool: Fitting<Prev, ToolInput, ToolLike<ToolId, ToolInput, ToolOutput>>, options: StepAbout<As> = {},
  ): Workflow<WorkflowId, Input, Output, State, Awaited<ToolOutput>, Last> {
    return this.#add({ kind: 'step', step: copiedStep('tool()', createStep(tool as ToolLike), options) })
  }

  /** Steps beside each other, with the same input. Their outputs are the fields of the next input, by their ids. */
  parallel<const Steps extends ReadonlyArray<Step<string, Prev, unknown, State>>>(
    steps: Steps, options: NodeOptions = {},
  ): Workflow<WorkflowId, Input, Output, State, Outputs<Steps>, Last> {
    if (!Array.isArray(steps)) throw refused('parallel()', 'called with a list of steps')
    const about = nodeOptions('parallel()', options)
    return this.#add({ kind: 'parallel', children: steps.map((step: AnyStep) => childOf(step, 'parallel')), ...about })
  }

  /**
   * The steps whose conditions are true run beside each other; with `first`, only the first of them. Their outputs are the fields of the
   * next input, by their ids. The conditions are asked once.
   */
  branch<const Branches extends ReadonlyArray<
    readonly [(context: ConditionContext<Prev, State>) => MaybePromise<boolean>, Step<string, Prev, unknown, State>]
  >>(
    branches: Branches, options: NodeOptions & { first?: boolean } = {},
  ): Workflow<WorkflowId, Input, Output, State, Partial<Outputs<{ -readonly [Index in keyof Branches]: Branches[Index][1] }>>, Last> {
    const about = nodeOptions('branch()', options, ['first'])
    if (!Array.isArray(branches)) throw refused('branch()', 'called with a list of [condition, step]')
    const pairs = branches as ReadonlyArray<readonly [Ask<boolean>, AnyStep]>
    for (const pair of pairs)
      if (!Array.isArray(pair) || typeof pair[0] !== 'function') throw refused('branch()', 'called with a list of [condition, step]')
    return this.#add({
      kind: 'branch', conditions: pairs.map(([condition]) => condition), children: pairs.map(([, step]) => childOf(step, 'branch')),
      first: options.first ?? false, ...about,
    })
  }

  /**
   * The step for each element of the list that the last step gave, one at a time unless `concurrency` says more; the outputs are a list in
   * the same order. A `concurrency` that is a function is asked once; its answer is stored.
   */
  foreach<S extends Step<string, Item<Prev>, unknown, State>>(
    step: S, options: NodeOptions & { concurrency?: number | ((context: ConditionContext<Prev, State>) => MaybePromise<number>) } = {},
  ): Workflow<WorkflowId, Input, Output, State, Array<Out<S>>, Last> {
    const about = nodeOptions('foreach()', options, ['concurrency'])
    const { concurrency = 1 } = options
    if (typeof concurrency !== 'function') checkWhole('concurrency', concurrency, 1)
    return this.#add({ kind: 'foreach', child: childOf(step, 'foreach'), concurrency: concurrency as number | Ask<number>, ...about })
  }

  /** The step again and again, each time with what it gave before, while the condition is true after it. */
  dowhile<S extends Step<string, Prev, unknown, State>>(
    step: S, condition: (context: LoopContext<Out<S>, State>) => MaybePromise<boolean>, options: NodeOptions = {},
  ): Workflow<WorkflowId, Input, Output, State, Out<S>, Last> {
    return this.#loop(step, condition as Ask<boolean>, false, options)
  }

  /** The step again and again, each time with what it gave before, until the condition is true after it. */
  dountil<S extends Step<string, Prev, unknown, State>>(
    step: S, condition: (context: LoopContext<Out<S>, State>) => MaybePromise<boolean>, options: NodeOptions = {},
  ): Workflow<WorkflowId, Input, Output, State, Out<S>, Last> {
    return this.#loop(step, condition as Ask<boolean>, true, options)
  }

  /** What the next step gets, made by a function or field by field. Asked once; the answer is stored. */
  map<Answer>(
    map: (context: ConditionContext<Prev, State>) => MaybePromise<Answer>, options?: NodeOptions,
  ): Workflow<WorkflowId, Input, Output, State, Answer, Last>
  map<const Fields extends Readonly<Record<string, MappedField>>>(
    map: Fields, options?: NodeOptions,
  ): Workflow<WorkflowId, Input, Output, State, Mapped<Fields>, Last>
  map(map: unknown, options: NodeOptions = {}): never {
    const about = nodeOptions('map()', options)
    if (typeof map !== 'function') checkObject('map()', map)
    const ask = typeof map === 'function' ? (map as Ask<unknown>) : mappingFunction(map as Mapping)
    return this.#add({ kind: 'map', ask, ...about, id: options.id ?? `map-${this.#nodes.length}` })
  }

  /** Waits so many milliseconds, also across restarts of the process. */
  sleep(duration: number | ((context: ConditionContext<Prev, State>) => MaybePromise<number>), options: NodeOptions = {}): this {
    const about = nodeOptions('sleep()', options)
    if (typeof duration !== 'function' && !(Number.isFinite(duration) && duration >= 0))
      throw refused('sleep()', 'called with milliseconds, or a function that returns them')
    const ask = typeof duration === 'function' ? (duration as Ask<number>) : () => duration
    return this.#add({ kind: 'sleep', ask, ...about, id: options.id ?? `sleep-${this.#nodes.length}` })
  }

  /** Waits until a date, also across restarts of the process. */
  sleepUntil(date: Date | ((context: ConditionContext<Prev, State>) => MaybePromise<Date>), options: NodeOptions = {}): this {
    const about = nodeOptions('sleepUntil()', options)
    if (typeof date !== 'function' && !(date instanceof Date && Number.isFinite(date.getTime())))
      throw refused('sleepUntil()', 'called with a date, or a function that returns one')
    const ask = typeof date === 'function' ? (date as Ask<Date>) : () => date
    return this.#add({ kind: 'sleepUntil', ask, ...about, id: options.id ?? `sleep-${this.#nodes.length}` })
  }

  /**
   * Waits for `run.sendEvent(name, data)`. An event that came before the wait counts. After `timeoutMs` the run fails with
   * `event_timeout`. What the next step gets is the data of the event.
   */
  waitForEvent<EventSchema extends Schema = Schema>(
    name: string, options: Omit<NodeOptions, 'id'> & { schema?: EventSchema; timeoutMs?: number } = {},
  ): Workflow<WorkflowId, Input, Output, State, InferOutput<EventSchema>, Last> {
    if ((options as NodeOptions).id !== undefined) throw refused('waitForEvent()', 'called without an id: the name of the event is its id')
    const { id: _, ...about } = nodeOptions('waitForEvent()', options, ['schema', 'timeoutMs'])
    if (!isName(name)) throw refused('waitForEvent()', 'called with the name of an event')
    if (options.schema !== undefined) compileSchema(options.schema, `the schema of event '${name}'`)
    if (options.timeoutMs !== undefined) checkWhole('timeoutMs', options.timeoutMs, 1)
    return this.#add({ kind: 'event', id: name, name, schema: options.schema, timeoutMs: options.timeoutMs, ...about })
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

  /** @internal The scorers of its steps. */
  stepScorers(): ScorerLike[] {
    return stepsOf(this.graph).flatMap(({ scorers = {} }) => Object.values(scorers).flatMap((entry) => entry?.scorer ?? []))
  }

  /** @internal As JSON, for lists of workflows. */
  describe(): { id: string; description: string | undefined; metadata: unknown; steps: DescribedNode[]; schedules: DescribedSchedule[] } {
    const schedules = this.schedules.map(({ id, cron, timezone }) => ({ id, cron, ...(timezone === undefined ? {} : { timezone }) }))
    return { id: this.id, description: this.description, metadata: this.metadata, steps: describeGraph(this.graph), schedules }
  }

  /** @internal The processors that it stands for, in a list of processors. Throws where it has other steps. */
  asProcessors(): Processor[] {
    if (this.schedules.length > 0) {
      const message = `Workflow '${this.id}' is in a list of processors, which makes no run of it: remove schedule.`
      throw new HeedError('invalid_workflow', message)
    }
    this.#processors ??= processorsOf(this.graph)
    return this.#processors
  }

  #freeze(): WorkflowGraph {
    const { retryConfig: { attempts = 0, delay = 0 } = {}, options: { validateInputs = true, ...hooks } = {} } = this.#config
    const { id, description, metadata, inputSchema, outputSchema, stateSchema, requestContextSchema } = this.#config
    const graph: WorkflowGraph = Object.freeze({
      id, description, metadata, inputSchema, outputSchema, stateSchema, requestContextSchema, nodes: Object.freeze([...this.#nodes]),
      retry: Object.freeze({ attempts, delay }), validateInputs, hooks: Object.freeze(hooks),
    })
    checkGraph(graph)
    return graph
  }

  #loop(step: AnyStep, ask: Ask<boolean>, until: boolean, options: NodeOptions): never {
    const name = until ? 'dountil' : 'dowhile'
    if (typeof ask !== 'function') throw refused(`${name}()`, 'called with a step and a condition')
    return this.#add({ kind: 'loop', child: childOf(step, name), ask, until, ...nodeOptions(`${name}()`, options) })
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

function nodeOptions(of: string, options: NodeOptions, more: readonly string[] = []): NodeOptions {
  checkNames(of, options, ['id', 'description', 'metadata', ...more])
  const { id, description, metadata } = options
  if (id !== undefined && (!isName(id) || /[./[\]#?]/.test(id)))
    throw refused(`id of ${of}`, 'a text without . / [ ] # ?, which paths of steps are made of')
  if (description !== undefined) checkText(`description of ${of}`, description)
  if (metadata !== undefined) checkObject(`metadata of ${of}`, metadata)
  return { ...(id === undefined ? {} : { id }), ...(description === undefined ? {} : { description }), ...(metadata ? { metadata } : {}) }
}

function copiedStep(of: string, step: AnyStep, options: StepAbout): CodeStep {
  return makeStep({ ...(step as CodeStep), ...nodeOptions(of, options) })
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
