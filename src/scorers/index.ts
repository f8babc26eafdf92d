export { createScorer, notScorable, Scorer, ScorerDraft } from './scorer.ts'
export type {
  JudgedReason, JudgedScore, JudgedStage, NotScorable, PreparedRun, ScorerConfig, ScorerType, StageContext, StageFunction,
} from './scorer.ts'
export type {
  AgentScorerInput, ExpectedStep, RunMetrics, ScoredResult, ScorerLike, ScorerResult, ScorerRun, StageName, StageResults,
  TrajectoryStep, UnscoredResult,
} from './contract.ts'
export type { JudgeConfig } from './judge.ts'
export { groundsOf, questionOf, textOf, trajectoryOf } from './messages.ts'
export {
  createCostScorer, createKeywordCoverageScorer, createLatencyScorer, createSchemaMatchScorer, createSimilarityScorer,
  createToolCallAccuracyScorer,
} from './builtin/measured.ts'
export type { AgentScorer, CostOptions, LatencyOptions, ToolCallAccuracyOptions } from './builtin/measured.ts'
export {
  createAnswerRelevancyScorer, createBiasScorer, createClassifierScorer, createFaithfulnessScorer, createHallucinationScorer,
  createPromptAlignmentScorer,
  createToxicityScorer,
} from './builtin/judged.ts'
export type { ClassifierOptions, GroundedScorerOptions, JudgedScorerOptions } from './builtin/judged.ts'
export { checks } from './builtin/checks.ts'
export type { TextCheckOptions } from './builtin/checks.ts'
export { filterRun } from './filter-run.ts'
export type { FilterRunOptions } from './filter-run.ts'
export { runEvals } from './evals/run-evals.ts'
export type { EvalResult, EvaluatedItem, EvaluatedTurn, RunEvalsOptions, ThresholdResult } from './evals/run-evals.ts'
export type { EvalScorer, EvalScorerGroups, EvalStepScorers, Threshold } from './evals/eval-scorers.ts'
export type { EvalData, EvalItem, EvalTurn, FunctionScore, ScorerFunction } from './evals/data.ts'
export type { EvalFunction, EvalTarget, EvalWorkflow, TargetOptions, WorkflowOutcome } from './evals/target.ts'
export { compareEvals } from './evals/compare.ts'
export type { ScoreChange } from './evals/compare.ts'
