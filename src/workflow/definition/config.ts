import { checkNames, checkObject, checkText, checkWhole, refused } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import { isName } from '../../base/json.ts'
import { compileSchema } from '../../schema/compile.ts'
import type { InferInput, InferOutput, Schema } from '../../schema/schema.ts'
import { hookNames, type WorkflowEnded, type WorkflowFailed, type WorkflowStarting } from './hooks.ts'
import type { WorkflowSchedule } from './scheduled.ts'

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
  options?: WorkflowOptions<InputSchema, OutputSchema, StateSchema>
  /**
   * Starts runs at given times, by the schedules of the storage of the Heed that the workflow belongs to: each occurrence starts one run,
   * in whichever process.
   */
  schedule?:
    | WorkflowSchedule<InferInput<InputSchema>, InferOutput<StateSchema>>
    | ReadonlyArray<WorkflowSchedule<InferInput<InputSchema>, InferOutput<StateSchema>>>
}

/**
 * What is called when a run of a workflow starts and ends. A workflow within another has no run of its own: none of its hooks is called.
 */
export interface WorkflowOptions<InputSchema extends Schema, OutputSchema extends Schema, StateSchema extends Schema> {
  /** Whether steps check their inputs by their schemas. Defaults to true. */
  validateInputs?: boolean
  /**
   * Called before the first step, and awaited. An error refuses the run: it fails with that error, and no step begins. Called again where
   * its process ends before its answer is stored.
   */
  onStart?(starting: WorkflowStarting<InferOutput<InputSchema>, InferOutput<StateSchema>>): void | Promise<void>
  /**
   * Called when the end of a run is stored, of whichever status, at least once: where the process ends before it has returned, the next one
   * calls it again. An error of it is logged, and changes nothing.
   */
  onFinish?(ended: WorkflowEnded<InferOutput<OutputSchema>, InferOutput<StateSchema>>): void | Promise<void>
  /** The same, behind `onFinish`, of runs that failed or that a processor refused. */
  onError?(failed: WorkflowFailed<InferOutput<OutputSchema>, InferOutput<StateSchema>>): void | Promise<void>
}

const configNames = [
  'id', 'description', 'inputSchema', 'outputSchema', 'stateSchema', 'requestContextSchema', 'metadata', 'retryConfig', 'options',
  'schedule',
]

/** Options of other engines, with what takes their place here. */
const elsewhere: Readonly<Record<string, string>> = {
  type: 'a workflow of processor steps is recognized by its steps: leave it out',
  steps: 'the steps are those of the builder: leave it out',
}
const optionsElsewhere: Readonly<Record<string, string>> = {
  shouldPersistSnapshot: 'a run is stored step by step where the workflow belongs to a Heed, and in memory where it does not',
  pruneSnapshot: 'a run is rows, which deleteWorkflowRunById() deletes',
  autoRestartActiveRuns: 'another process always continues the runs of one that is gone',
  tracingPolicy: 'set tracing of the Heed',
}

/** Rejects an option that another engine has, with what to do instead. */
export function checkElsewhere(of: string, given: object, known: Readonly<Record<string, string>>): void {
  for (const [name, instead] of Object.entries(known)) {
    if ((given as Record<string, unknown>)[name] === undefined) continue
    throw new HeedError('unsupported_option', `${of} has no '${name}': ${instead}.`, { details: { option: name } })
  }
}

export function checkConfig(config: WorkflowConfig<string, Schema, Schema, Schema>): void {
  if (!isName((config as Partial<typeof config> | undefined)?.id))
    throw new HeedError('invalid_workflow', "A workflow needs an id: createWorkflow({ id: 'order', … }).")
  const who = `workflow '${config.id}'`
  if (/[./[\]#?:]/.test(config.id))
    throw new HeedError('invalid_workflow', `The id of ${who} has one of . / [ ] # ? :, which paths and ids are made of. Choose another.`)
  checkElsewhere(who, config, elsewhere)
  checkNames(who, config, configNames)
  if (config.description !== undefined) checkText(`description of ${who}`, config.description)
  if (config.metadata !== undefined) checkObject(`metadata of ${who}`, config.metadata)
  for (const name of ['inputSchema', 'outputSchema', 'stateSchema', 'requestContextSchema'] as const)
    if (config[name] !== undefined) compileSchema(config[name], `${name} of ${who}`)
  if (config.retryConfig !== undefined) {
    checkNames(`retryConfig of ${who}`, config.retryConfig, ['attempts', 'delay'])
    for (const name of ['attempts', 'delay'] as const)
      if (config.retryConfig[name] !== undefined) checkWhole(`retryConfig.${name} of ${who}`, config.retryConfig[name])
  }
  if (config.options !== undefined) checkOptions(`options of ${who}`, config.options)
}

function checkOptions(who: string, options: WorkflowOptions<Schema, Schema, Schema>): void {
  checkObject(who, options)
  checkElsewhere(who, options, optionsElsewhere)
  checkNames(who, options, ['validateInputs', ...hookNames])
  if (options.validateInputs !== undefined && typeof options.validateInputs !== 'boolean')
    throw refused('options.validateInputs', 'true or false')
  for (const name of hookNames)
    if (options[name] !== undefined && typeof options[name] !== 'function') throw refused(`options.${name}`, 'a function')
}
