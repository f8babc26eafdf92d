import { checkName, checkNames, checkText, refused } from '../base/arguments.ts'
import { describe, HeedError, isHeedError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { isObject } from '../base/json.ts'
import type { Usage } from '../message/chunk.ts'
import type { Message } from '../message/message.ts'
import { compileSchema, describeIssues, type CompiledSchema } from '../schema/compile.ts'
import type { InferOutput, PlainJSONSchema, Schema } from '../schema/schema.ts'
import type { AgentScorerInput, ScorerLike, ScorerResult, ScorerRun, StageName, StageResults, TrajectoryStep } from './contract.ts'
import { askJudge, checkJudge, type JudgeConfig } from './judge.ts'

/** The shape of the runs that a scorer scores: those of an agent, its tool calls, or pairs of input and output that match schemas. */
export type ScorerType = 'agent' | 'trajectory' | { input: Schema; output: Schema }

type InputOf<Type> = Type extends 'agent' ? AgentScorerInput
  : Type extends 'trajectory' ? unknown
  : Type extends { input: infer S } ? InferOutput<S> : unknown
type OutputOf<Type> = Type extends 'agent' ? Message[]
  : Type extends 'trajectory' ? TrajectoryStep[]
  : Type extends { output: infer S } ? InferOutput<S>
  : unknown

/** What `createScorer` takes. */
export interface ScorerConfig<Type extends ScorerType | undefined = undefined> {
  id: string
  /** Defaults to the id. */
  name?: string
  description: string
  /** Without a type, the input and the output are any values. */
  type?: Type
  /** Distinguishes scores that were made by different code or prompts. Defaults to `1`. */
  version?: string
  /** Whether a higher or a lower score is the better one. Defaults to `higher`. */
  better?: 'higher' | 'lower'
  /** The model of the stages that have a prompt. */
  judge?: JudgeConfig
  /** Called with the run before its first stage, and returns what the stages get: see `filterRun()`. */
  prepareRun?: (run: PreparedRun<Type>) => PreparedRun<Type> | Promise<PreparedRun<Type>>
}

/** A run as the stages of a scorer of this type get it. */
export type PreparedRun<Type extends ScorerType | undefined> = ScorerRun<InputOf<Type>, OutputOf<Type>> & { runId: string }

/** What a stage receives: the run, and what the stages before returned. */
export interface StageContext<Input, Output, Results> {
  run: ScorerRun<Input, Output> & { runId: string }
  results: Results
}

/** A stage in code. It may return `notScorable()`. */
export type StageFunction<Context, Value> = (context: Context) => Value | NotScorable | Promise<Value | NotScorable>

/** A stage that a judge answers. */
export interface JudgedStage<Context, S extends Schema> {
  /** What the stage does, for people. */
  description: string
  /** The answer of the judge is validated by it. */
  outputSchema: S
  createPrompt: (context: Context) => string | Promise<string>
  /** In place of the judge of the scorer. */
  judge?: JudgeConfig
}

/** The stage of the score, as a question to a judge. Without `outputSchema` the judge answers `{ score }`, from 0 to 1. */
export type JudgedScore<Context, S extends Schema> =
  | (JudgedStage<Context, S> & { calculateScore: (context: Context & { answer: InferOutput<S> }) => number | NotScorable })
  | (Omit<JudgedStage<Context, S>, 'outputSchema'> & { outputSchema?: undefined; calculateScore?: undefined })

/** The stage of the reason, as a question to a judge, which answers `{ reason }`. */
export type JudgedReason<Context> = Omit<JudgedStage<Context, Schema>, 'outputSchema'>

const unscorable = Symbol('not scorable')

/** What `notScorable()` returns. */
export interface NotScorable {
  readonly [unscorable]: true
  readonly reason?: string
}

/** Returned by a stage for a run that has no score, such as one without an answer. A missing score is no zero. */
export function notScorable(reason?: string): NotScorable {
  return { [unscorable]: true, ...(reason === undefined ? {} : { reason }) }
}

function isNotScorable(value: unknown): value is NotScorable {
  return typeof value === 'object' && value !== null && unscorable in value
}

interface Stages {
  preprocess?: AnyStage
  analyze?: AnyStage
  generateScore?: AnyStage
  generateReason?: AnyStage
}

type AnyContext = StageContext<never, never, never>
type AnyStage = StageFunction<AnyContext, unknown> | AnyJudged

interface AnyJudged {
  description: string
  outputSchema?: Schema | undefined
  createPrompt: (context: AnyContext) => string | Promise<string>
  judge?: JudgeConfig
  calculateScore?: ((context: AnyContext & { answer: never }) => number | NotScorable) | undefined
}

/**
 * Begins a scorer. Its stages are called in this order; `generateScore` is the only one that is required:
 *
 * @example
 * const polite = createScorer({ id: 'polite', description: 'The answer says please.', type: 'agent' })
 *   .generateScore(({ run }) => (textOf(run.output).includes('please') ? 1 : 0))
 */
export function createScorer<const Type extends ScorerType | undefined = undefined>(
  config: ScorerConfig<Type>,
): ScorerDraft<InputOf<Type>, OutputOf<Type>> {
  const own = config as object as ScorerConfig<ScorerType | undefined>
  checkScorer(own)
  return new ScorerDraft(own, {})
}

/** A scorer before its score. Each call returns a new one. */
export class ScorerDraft<Input, Output, Results extends StageResults = object> {
  readonly #config: ScorerConfig<ScorerType | undefined>
  readonly #stages: Stages

  /** @internal */
  constructor(config: ScorerConfig<ScorerType | undefined>, stages: Stages) {
    this.#config = config
    this.#stages = stages
  }

  /** Prepares the material: extracts what the later stages need. */
  preprocess<S extends Schema>(
    stage: JudgedStage<StageContext<Input, Output, Results>, S>,
  ): ScorerDraft<Input, Output, Results & { preprocessStepResult: InferOutput<S> }>
  preprocess<Value>(
    stage: StageFunction<StageContext<Input, Output, Results>, Value>,
  ): ScorerDraft<Input, Output, Results & { preprocessStepResult: Exclude<Value, NotScorable> }>
  preprocess(stage: unknown): unknown {
    return new ScorerDraft(this.#config, { ...this.#stages, preprocess: this.#check('preprocess', stage) })
  }

  /** Examines the material. */
  analyze<S extends Schema>(
    stage: JudgedStage<StageContext<Input, Output, Results>, S>,
  ): ScorerDraft<Input, Output, Results & { analyzeStepResult: InferOutput<S> }>
  analyze<Value>(
    stage: StageFunction<StageContext<Input, Output, Results>, Value>,
  ): ScorerDraft<Input, Output, Results & { analyzeStepResult: Exclude<Value, NotScorable> }>
  analyze(stage: unknown): unknown {
    return new ScorerDraft(this.#config, { ...this.#stages, analyze: this.#check('analyze', stage) })
  }

  /** Turns the results into a number. */
  generateScore<S extends Schema>(
    stage: StageFunction<StageContext<Input, Output, Results>, number> | JudgedScore<StageContext<Input, Output, Results>, S>,
  ): Scorer<Input, Output, Results> {
    return new Scorer(this.#config, { ...this.#stages, generateScore: this.#check('generateScore', stage) })
  }

  #check(name: StageName, stage: unknown): AnyStage {
    return checkStage(this.#config, name, stage)
  }
}

/** A finished scorer. */
export class Scorer<Input = unknown, Output = unknown, Results extends StageResults = object> implements ScorerLike {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly type: ScorerLike['type']
  readonly version: string
  readonly better: 'higher' | 'lower'
  readonly #config: ScorerConfig<ScorerType | undefined>
  readonly #stages: Stages
  readonly #schemas: Partial<Record<'input' | 'output', CompiledSchema>>

  /** @internal */
  constructor(config: ScorerConfig<ScorerType | undefined>, stages: Stages) {
    const { id, name = id, description, type, version = '1', better = 'higher' } = config
    this.id = id
    this.name = name
    this.description = description
    this.type = typeof type === 'object' ? 'values' : (type ?? 'any')
    this.version = version
    this.better = better
    this.#config = config
    this.#stages = stages
    const compiled = (side: 'input' | 'output', schema: Schema) => compileSchema(schema, `type.${side} of scorer '${id}'`)
    this.#schemas = typeof type === 'object' ? { input: compiled('input', type.input), output: compiled('output', type.output) } : {}
  }

  /** Explains the score, for people. */
  generateReason(
    stage:
      | StageFunction<StageContext<Input, Output, Results> & { score: number }, string>
      | JudgedReason<StageContext<Input, Output, Results> & { score: number }>,
  ): Scorer<Input, Output, Results> {
    return new Scorer(this.#config, { ...this.#stages, generateReason: checkStage(this.#config, 'generateReason', stage) })
  }

  /** Scores a run. Rejects with `scorer_failed`, which names the stage, where a stage throws or a judge gives no valid answer. */
  async run(run: ScorerRun<Input, Output>): Promise<ScorerResult> {
    checkNames('scorer.run()', run, runNames)
    const { runId = newId() } = run
    const context = { run: { ...run, runId }, results: {} as StageResults }
    await this.#validate(context.run)
    const scoring = new Scoring(this.id, context, this.#config.judge)
    const { prepareRun } = this.#config
    if (prepareRun) context.run = (await scoring.prepare(() => prepareRun(context.run))) as typeof context.run
    for (const name of ['preprocess', 'analyze'] as const) {
      const stage = this.#stages[name]
      if (!stage) continue
      const value = await scoring.call(name, stage)
      if (isNotScorable(value)) return unscored(runId, name, value)
      context.results[`${name}StepResult`] = value
    }
    const score = await scoring.score(this.#stages.generateScore!)
    if (isNotScorable(score)) return unscored(runId, 'generateScore', score)
    const { generateReason } = this.#stages
    const reason = generateReason && (await scoring.reason(generateReason, score))
    if (isNotScorable(reason)) return unscored(runId, 'generateReason', reason)
    const { prompts, usage } = scoring
    return { runId, score, ...(reason === undefined ? {} : { reason }), ...context.results, prompts, ...(usage ? { usage } : {}) }
  }

  async #validate(run: { input: unknown; output: unknown }): Promise<void> {
    for (const side of ['input', 'output'] as const) {
      const checked = await this.#schemas[side]?.validate(run[side])
      if (!checked) continue
      if (!checked.ok) throw refused(`${side} of scorer '${this.id}'`, `a value of its schema: ${describeIssues(checked.issues)}`)
      run[side] = checked.value
    }
  }
}

function unscored(runId: string, step: StageName, { reason }: NotScorable): ScorerResult {
  return { runId, notScorable: { step, ...(reason === undefined ? {} : { reason }) } }
}

const scoreAnswer: PlainJSONSchema = {
  type: 'object', properties: { score: { type: 'number', minimum: 0, maximum: 1 } }, required: ['score'], additionalProperties: false,
}
const reasonAnswer: PlainJSONSchema = {
  type: 'object', properties: { reason: { type: 'string' } }, required: ['reason'], additionalProperties: false,
}

/** One run of a scorer: its stages, with what the judge was asked and what that took. */
class Scoring {
  readonly prompts: Partial<Record<StageName, string>> = {}
  usage: Usage | undefined
  readonly #scorer: string
  readonly #context: { run: ScorerRun & { runId: string }; results: StageResults }
  readonly #judge: JudgeConfig | undefined

  constructor(scorer: string, context: { run: ScorerRun & { runId: string }; results: StageResults }, judge: JudgeConfig | undefined) {
    this.#scorer = scorer
    this.#context = context
    this.#judge = judge
  }

  /** The value of a stage. For a judged one: the validated answer. */
  async call(name: StageName, stage: AnyStage, more: object = {}, schema?: Schema): Promise<unknown> {
    const context = { ...this.#context, ...more } as AnyContext
    try {
      if (typeof stage === 'function') return await stage(context)
      const prompt = await stage.createPrompt(context)
      this.prompts[name] = prompt
      const { value, usage } = await askJudge((stage.judge ?? this.#judge)!, {
        scorer: this.#scorer, prompt, schema: schema ?? stage.outputSchema ?? scoreAnswer, abortSignal: this.#context.run.abortSignal,
      })
      this.usage = addUsage(this.usage, usage)
      return value
    } catch (error) {
      if (this.#context.run.abortSignal?.aborted) throw error
      throw this.#failed(name, whyOf(error), error)
    }
  }

  /** What the stages get, in place of the run. */
  async prepare(prepare: () => unknown): Promise<unknown> {
    const prepared = await Promise.resolve().then(prepare).catch((error: unknown) => {
      throw this.#failed('preprocess', `prepareRun: ${describe(error)}`, error)
    })
    if (!isObject(prepared)) throw this.#failed('preprocess', 'prepareRun returned no run')
    const { run } = this.#context
    Object.assign(this.#context, { run: { ...prepared, runId: run.runId, ...(run.abortSignal ? { abortSignal: run.abortSignal } : {}) } })
    return this.#context.run
  }

  async score(stage: AnyStage): Promise<number | NotScorable> {
    const value = await this.call('generateScore', stage)
    const score = isNotScorable(value) ? value : this.#numberOf(stage, value)
    if (isNotScorable(score)) return score
    if (typeof score === 'number' && Number.isFinite(score)) return score
    throw this.#failed('generateScore', 'it returned no number; return notScorable() for a run without a score')
  }

  async reason(stage: AnyStage, score: number): Promise<string | NotScorable> {
    const value = await this.call('generateReason', stage, { score }, reasonAnswer)
    if (isNotScorable(value)) return value
    const reason = typeof stage === 'function' ? value : (value as { reason: unknown }).reason
    if (typeof reason === 'string') return reason
    throw this.#failed('generateReason', 'it returned no text')
  }

  #numberOf(stage: AnyStage, value: unknown): unknown {
    if (typeof stage === 'function') return value
    if (!stage.calculateScore) return (value as { score: unknown }).score
    try {
      return stage.calculateScore({ ...this.#context, answer: value } as AnyContext & { answer: never })
    } catch (error) {
      throw this.#failed('generateScore', describe(error), error)
    }
  }

  #failed(step: StageName, why: string, cause?: unknown): HeedError {
    const { runId } = this.#context.run
    const message = `The stage ${step} of scorer '${this.#scorer}' failed: ${why}`
    return new HeedError('scorer_failed', message, { cause, details: { scorerId: this.#scorer, step, runId } })
  }
}

/** With what a judge answered, where that is not valid. */
function whyOf(error: unknown): string {
  const text = isHeedError(error) && error.code === 'structured_output_invalid' ? error.details?.text : undefined
  return typeof text === 'string' ? `${describe(error)} It answered: ${text.slice(0, 500)}` : describe(error)
}

function addUsage(sum: Usage | undefined, more: Usage): Usage {
  if (!sum) return { ...more }
  const added = { ...sum }
  for (const key of Object.keys(added) as Array<keyof Usage>) added[key] += more[key]
  return added
}

const runNames = ['input', 'output', 'groundTruth', 'expectedTrajectory', 'requestContext', 'runId', 'metrics', 'abortSignal']
const configNames = ['id', 'name', 'description', 'type', 'version', 'better', 'judge', 'prepareRun']

function checkScorer(config: ScorerConfig<ScorerType | undefined>): void {
  checkNames('createScorer()', config, configNames)
  checkName('id of a scorer', config.id)
  const of = `of scorer '${config.id}'`
  checkText(`description ${of}`, config.description)
  const { name, version, better, type, judge, prepareRun } = config
  if (prepareRun !== undefined && typeof prepareRun !== 'function')
    throw refused(`prepareRun ${of}`, 'a function, such as filterRun({ … })')
  if (name !== undefined) checkText(`name ${of}`, name)
  if (version !== undefined) checkName(`version ${of}`, version)
  if (better !== undefined && better !== 'higher' && better !== 'lower') throw refused(`better ${of}`, "'higher' or 'lower'")
  if (type !== undefined && type !== 'agent' && type !== 'trajectory' && !isObject(type)) {
    throw refused(`type ${of}`, "'agent', 'trajectory', or { input, output } with schemas")
  }
  if (isObject(type)) checkNames(`type ${of}`, type, ['input', 'output'])
  if (judge !== undefined) checkJudge(`judge ${of}`, judge)
}

const judgedNames = ['description', 'outputSchema', 'createPrompt', 'judge', 'calculateScore']

function checkStage(config: ScorerConfig<ScorerType | undefined>, name: StageName, stage: unknown): AnyStage {
  const of = `${name} of scorer '${config.id}'`
  if (typeof stage === 'function') return stage as AnyStage
  if (!isObject(stage)) throw refused(of, 'a function, or { description, outputSchema, createPrompt }')
  const others = { calculateScore: name === 'generateScore', outputSchema: name !== 'generateReason' }
  checkNames(of, stage, judgedNames.filter((one) => others[one as keyof typeof others] ?? true))
  const { createPrompt, outputSchema, judge, calculateScore } = stage as object as AnyJudged
  if (typeof createPrompt !== 'function') throw refused(`createPrompt of ${of}`, 'a function that returns the prompt')
  checkText(`description of ${of}`, stage.description)
  if (outputSchema !== undefined) compileSchema(outputSchema, `outputSchema of ${of}`)
  else if (name === 'preprocess' || name === 'analyze') throw refused(`outputSchema of ${of}`, 'the schema of its answer')
  if ((calculateScore === undefined) !== (outputSchema === undefined) && name === 'generateScore') {
    throw refused(of, 'outputSchema and calculateScore together, or neither')
  }
  if (judge !== undefined) checkJudge(`judge of ${of}`, judge)
  else if (config.judge === undefined) throw refused(`judge of scorer '${config.id}'`, `the model that answers ${name}: { model }`)
  return stage as object as AnyJudged
}
