import { checkNames, checkText, checkWhole } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { isName, type JSONValue } from '../base/json.ts'
import type { ChildCall, Usage } from '../message/chunk.ts'
import { compileSchema } from '../schema/compile.ts'
import type { InferInput, InferOutput, Schema } from '../schema/schema.ts'
import type { RequestContext } from '../run/request-context.ts'
import type { StepScorers } from '../scorers/contract.ts'
import { checkStepScorers } from '../scorers/sampling.ts'

const marker = Symbol.for('heed.step')

/**
 * One step of a workflow: from an input to an output. Create one with `createStep`; a committed workflow is a step too.
 * `In` is what the step before it has to give, `State` what the workflow's state has to have.
 */
export interface Step<Id extends string = string, In = never, Out = unknown, State = never> {
  readonly id: Id
  readonly description?: string | undefined
  readonly inputSchema?: Schema | undefined
  readonly outputSchema?: Schema | undefined
  readonly resumeSchema?: Schema | undefined
  readonly suspendSchema?: Schema | undefined
  readonly stateSchema?: Schema | undefined
  readonly requestContextSchema?: Schema | undefined
  readonly retries?: number | undefined
  readonly idempotent?: boolean | undefined
  readonly timeoutMs?: number | undefined
  readonly metadata?: Readonly<Record<string, unknown>> | undefined
  readonly scorers?: StepScorers | undefined
  /** Types only. */
  readonly '~types'?: { readonly input: (input: In) => void; readonly output: Out; readonly state: (state: State) => void }
}

/** A step of any types. */
export type AnyStep = Step<string, never, unknown, never>

/** The type of what a step gives. */
export type StepOutput<S> = S extends { readonly '~types'?: { readonly output: infer Out } } ? Out : unknown

/** A step with its code. */
export interface CodeStep extends AnyStep {
  execute(context: StepContext): unknown
  readonly [stepHooks]?: StepHooks
}

/** What steps from agents and tools have besides their code. */
export const stepHooks: unique symbol = Symbol('heed.stepHooks')

export interface StepHooks {
  /** The schema of the answer to what the step suspended with, in place of `resumeSchema`. */
  resumeSchema?(suspended: JSONValue | undefined): Schema | undefined
  /** This process may run the steps of a workflow in this storage: it may continue the agents of steps there too. */
  register?(site: object): void
  /** Ends the run of the agent that the step waits for. */
  endChild?(child: ChildCall, seat: StepSeat, requestContext: RequestContext): Promise<void>
}

/** The thread that a run of a workflow is, and the storage that it is in. */
export interface StepSeat {
  threadId: string
  resourceId: string
  /** The run of the thread. */
  runId: string
  site: object
}

/** What a step that asks an agent needs besides its context. */
export interface StepNesting {
  path: string
  /** How often the step has failed: the next attempt asks again. */
  failures: number
  /** Absent for a run in memory. */
  seat: StepSeat | undefined
  /** The call of the agent that the step was suspended for. */
  child: ChildCall | undefined
  /** True when another process continues the run: what the step has asked must go on. */
  isHandedOver(): boolean
  /** Suspends the step until the call of the agent is decided, here or on the thread of the agent. */
  suspend(payload: JSONValue, child: ChildCall): never
  addUsage(usage: Usage): void
}

const nestings = new WeakMap<StepContext, StepNesting>()

export function setStepNesting(context: StepContext, nesting: StepNesting): void {
  nestings.set(context, nesting)
}

export function stepNestingOf(context: StepContext): StepNesting | undefined {
  return nestings.get(context)
}

/** What a step is called with. */
export interface StepContext<In = unknown, State = unknown, Suspend = unknown, Resume = unknown> {
  inputData: In
  /** The state of the run when the step began: change it with `setState`. */
  state: State
  /** Changes keys of the state. Steps that begin after this one has ended read them. */
  setState(change: Partial<State>): void
  /** What the step was resumed with; absent when it begins. */
  resumeData?: Resume
  /** What the step suspended with, when it is resumed. */
  suspendData?: Suspend
  /** The input of the workflow that the step is in. */
  getInitData<T = unknown>(): T
  /** The output of a step of the same workflow that has succeeded, else null. Of a step that ran several times, the last output. */
  getStepResult<S extends AnyStep>(step: S): StepOutput<S> | null
  getStepResult(stepId: string): unknown
  /**
   * Suspends the step until it is resumed, minutes or weeks later: it is then called again, with `resumeData`. Throws, so that no code
   * behind it runs. `resumeLabel` is another name for the step in `run.resume()`.
   */
  suspend(payload?: Suspend, options?: { resumeLabel?: string }): never
  /** Ends the run as a success with this result. Throws. */
  bail(result?: unknown): never
  /** Cancels the run. Throws. */
  abort(): never
  /** Aborts when the run is cancelled, when its process closes, and after `timeoutMs`. */
  abortSignal: AbortSignal
  runId: string
  workflowId: string
  resourceId?: string | undefined
  requestContext: RequestContext
  /** How often the step has failed or was interrupted before. */
  retryCount: number
  /** Names this step of this run, equal in all attempts: a key for effects that must happen once. */
  stepKey: string
  /** Publishes progress as a `workflow-step-output` chunk. It is not stored. */
  writer: { write(output: unknown): void }
}

/** The options of `createStep`, for a step from a function. */
export interface StepConfig<
  Id extends string, InputSchema extends Schema, OutputSchema extends Schema, StateSchema extends Schema, SuspendSchema extends Schema,
  ResumeSchema extends Schema,
> {
  id: Id
  description?: string
  inputSchema?: InputSchema
  outputSchema?: OutputSchema
  /** The part of the workflow's state that the step reads and changes. */
  stateSchema?: StateSchema
  suspendSchema?: SuspendSchema
  resumeSchema?: ResumeSchema
  requestContextSchema?: Schema
  /** How often the step is tried again after an error. Defaults to `retryConfig.attempts` of the workflow, else to 0. */
  retries?: number
  /**
   * True when it may run twice with the same input: after a crash it is then run again. Otherwise a step that a crash interrupted fails,
   * since it is not known whether it took effect. Defaults to false.
   */
  idempotent?: boolean
  /** After this time the step is aborted, and the attempt has failed. No limit by default. */
  timeoutMs?: number
  metadata?: Record<string, unknown>
  /** Score what it gives, after it has ended, in runs that are stored. */
  scorers?: StepScorers
  execute(
    context: StepContext<InferOutput<InputSchema>, InferOutput<StateSchema>, InferInput<SuspendSchema>, InferOutput<ResumeSchema>>,
  ): InferInput<OutputSchema> | Promise<InferInput<OutputSchema>>
}

export const stepNames: readonly string[] = [
  'id', 'description', 'inputSchema', 'outputSchema', 'stateSchema', 'suspendSchema', 'resumeSchema', 'requestContextSchema', 'retries',
  'idempotent', 'timeoutMs', 'metadata', 'scorers', 'execute',
]

const schemaNames = ['inputSchema', 'outputSchema', 'stateSchema', 'suspendSchema', 'resumeSchema', 'requestContextSchema'] as const

/** Checks the fields of a step and marks it as one. */
export function makeStep(config: Partial<CodeStep>): CodeStep {
  if (!isName(config.id)) throw new HeedError('invalid_workflow', "A step needs an id: createStep({ id: 'charge', … }).")
  const who = `step '${config.id}'`
  if (/[./[\]#?]/.test(config.id)) {
    throw new HeedError('invalid_workflow', `The id of ${who} has one of . / [ ] # ?, which paths of steps are made of. Choose another.`)
  }
  checkNames(who, config, stepNames)
  if (typeof config.execute !== 'function') throw new HeedError('invalid_workflow', `${who} has no execute function.`)
  for (const name of schemaNames) if (config[name] !== undefined) compileSchema(config[name], `${name} of ${who}`)
  if (config.description !== undefined) checkText(`description of ${who}`, config.description)
  if (config.retries !== undefined) checkWhole(`retries of ${who}`, config.retries)
  if (config.timeoutMs !== undefined) checkWhole(`timeoutMs of ${who}`, config.timeoutMs, 1)
  if (config.idempotent !== undefined && typeof config.idempotent !== 'boolean')
    throw new HeedError('invalid_workflow', `idempotent of ${who} must be true or false.`)
  if (config.scorers !== undefined) checkStepScorers(config.scorers, `scorers of ${who}`)
  const step = { ...config } as CodeStep
  Object.defineProperty(step, marker, { value: true })
  return Object.freeze(step)
}

export function isStep(value: unknown): value is CodeStep {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[marker] === true
}
