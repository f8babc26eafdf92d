import type { Usage } from '../message/chunk.ts'
import type { Message } from '../message/message.ts'

/** What a scorer of type `agent` gets as its input. */
export interface AgentScorerInput {
  /** The messages that the run was given. */
  inputMessages: Message[]
  /** The messages of history that the prompt had before them. */
  rememberedMessages: Message[]
  /** The instructions of the agent, as texts. */
  systemMessages: string[]
}

/** A tool call of an agent, or a step of a workflow, for scorers of type `trajectory`. */
export interface TrajectoryStep {
  stepType: 'tool_call' | 'workflow_step'
  /** The name of the tool, or the id of the step. */
  name: string
  /** The arguments of the tool, or the input of the step. */
  toolArgs: unknown
  /** What the tool or the step gave. */
  toolResult?: unknown
  success: boolean
  /** Of steps of workflows. */
  durationMs?: number
}

/** A step that a run should make. */
export interface ExpectedStep {
  name: string
  /** Values that the arguments must have. */
  toolArgs?: unknown
}

/** What a run took. */
export interface RunMetrics {
  /** From the begin of the run to its end. */
  durationMs: number
  usage: Usage
  /** How many model calls the run made, where it is known. */
  steps?: number
}

/** A run, or any pair of input and output, that is to be scored. */
export interface ScorerRun<Input = unknown, Output = unknown> {
  input: Input
  output: Output
  /** The answer that was expected, for scorers that compare. */
  groundTruth?: unknown
  /** The steps that were expected. */
  expectedTrajectory?: readonly ExpectedStep[]
  /** Values of the request, as plain JSON. */
  requestContext?: Readonly<Record<string, unknown>>
  /** Defaults to a new id. */
  runId?: string
  /** What the run took, where it is known. */
  metrics?: RunMetrics
  /** Aborts the judge. */
  abortSignal?: AbortSignal
}

export const stageNames = ['preprocess', 'analyze', 'generateScore', 'generateReason'] as const
/** The name of a stage of a scorer. */
export type StageName = (typeof stageNames)[number]

/** What the stages before returned. */
export interface StageResults {
  preprocessStepResult?: unknown
  analyzeStepResult?: unknown
}

/** The result of a scorer: a score, or the reason why this run has none. */
export type ScorerResult = ScoredResult | UnscoredResult

/** A score, with what the stages returned. */
export interface ScoredResult extends StageResults {
  runId: string
  score: number
  reason?: string
  /** The prompts that the judge received, by stage. */
  prompts: Partial<Record<StageName, string>>
  /** What the calls of the judge took together; undefined without a judge. */
  usage?: Usage
  notScorable?: undefined
}

/** The stage that declared the run not scorable, and why. */
export interface UnscoredResult {
  runId: string
  notScorable: { step: StageName; reason?: string }
  score?: undefined
  reason?: undefined
}

/** What Heed needs of a scorer. `createScorer` makes one. */
export interface ScorerLike {
  readonly id: string
  readonly name: string
  readonly description: string
  /** Which input and output it expects: those of an agent, its tool calls, values of its own schemas, or any. */
  readonly type: 'agent' | 'trajectory' | 'values' | 'any'
  /** Distinguishes scores that were made by different code or prompts. */
  readonly version: string
  /** Whether a higher or a lower score is the better one. */
  readonly better: 'higher' | 'lower'
  run(run: ScorerRun<never, never>): Promise<ScorerResult>
}

/** Which runs are scored. `ratio`: this share of all runs, the same runs for every scorer with this rate. `none`: no sampling, all runs. */
export type ScorerSampling = { type: 'ratio'; rate: number } | { type: 'none' }

/** How a run ended that a scorer may score. */
export type ScoredEnd = 'finished' | 'failed' | 'aborted'

/** What a field of a run is compared with. */
export type ScorerFilterValue = string | number | boolean | null

/** Tests of one field. All of them must hold. */
export interface ScorerFilterTests {
  eq?: ScorerFilterValue
  ne?: ScorerFilterValue
  lt?: number | string
  lte?: number | string
  gt?: number | string
  gte?: number | string
  in?: readonly ScorerFilterValue[]
  notIn?: readonly ScorerFilterValue[]
  /** Whether there is such a field. */
  exists?: boolean
  notExists?: boolean
  truthy?: boolean
  falsy?: boolean
}

/** A field of a run that filters name. */
export type ScorerFilterField = `requestContext.${string}` | `entity.${string}` | 'entityType' | 'source' | 'threadId' | 'resourceId'

/**
 * Which runs are scored, as JSON: `{ 'requestContext.plan': { in: ['team', 'pro'] } }`. Of several fields and tests, all must hold. A
 * field that the run does not have meets `ne`, `notIn`, `notExists` and `falsy` alone.
 */
export type ScorerFilter =
  | { readonly and: readonly ScorerFilter[] }
  | { readonly or: readonly ScorerFilter[] }
  | { readonly not: ScorerFilter }
  | { readonly [Field in ScorerFilterField]?: ScorerFilterTests }

/** Which runs a scorer scores. */
export interface ScorerSelection {
  /** Asked before the sample is taken. Defaults to all runs. */
  filter?: ScorerFilter
  /** Defaults to all runs. */
  sampling?: ScorerSampling
}

/** A scorer of an agent. Its runs on threads are scored after they ended, by any process of the agent. */
export interface AgentScorerEntry extends ScorerSelection {
  scorer: ScorerLike
  /** The ends that are scored. Defaults to `['finished']`. */
  on?: readonly ScoredEnd[]
}

/** The scorers of an agent, by names of your choice. Undefined entries are left out. */
export type AgentScorers = Record<string, AgentScorerEntry | undefined>

/** The scorers of a step of a workflow, by names of your choice. Each gets the input and the output of the step. */
export type StepScorers = Readonly<Record<string, (ScorerSelection & { scorer: ScorerLike }) | undefined>>

/** A scorer of one call: a scorer that the agent or the Heed has, or the id of one. */
export interface CallScorerEntry extends Omit<AgentScorerEntry, 'scorer'> {
  scorer: ScorerLike | string
}

/** The scorers of one call, in place of those of the agent. */
export type CallScorers = Record<string, CallScorerEntry | undefined>
