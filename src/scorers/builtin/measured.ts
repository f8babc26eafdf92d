import { checkNames, checkObject, refused } from '../../base/arguments.ts'
import { compileSchema, describeIssues } from '../../schema/compile.ts'
import type { Schema } from '../../schema/schema.ts'
import { extractTerms } from '../../recall/text/terms.ts'
import { hasPart, questionOf, textOf, trajectoryOf } from '../messages.ts'
import { createScorer, notScorable, type Scorer } from '../scorer.ts'
import type { AgentScorerInput, ExpectedStep, TrajectoryStep } from '../contract.ts'
import type { Message } from '../../message/message.ts'

/** A scorer of the answers of agents. */
export type AgentScorer = Scorer<AgentScorerInput, Message[]>

/**
 * The share of the words of the question, in their base form and without common words, that the answer has. Cheap and blind to meaning: an
 * answer in other words scores low, and one that repeats the question scores high.
 */
export function createKeywordCoverageScorer(): Scorer {
  return createScorer({ id: 'keyword-coverage', description: 'The share of the words of the question that the answer has.' })
    .analyze(({ run }) => {
      const wanted = [...new Set(extractTerms(questionOf(run.input)))]
      const had = new Set(extractTerms(textOf(run.output)))
      return { wanted, missing: wanted.filter((term) => !had.has(term)) }
    })
    .generateScore(({ results: { analyzeStepResult: { wanted, missing } } }) =>
      wanted.length === 0 ? notScorable('The question has no words that count.') : 1 - missing.length / wanted.length)
    .generateReason(({ results: { analyzeStepResult: { missing } } }) =>
      missing.length === 0 ? 'The answer has every word of the question.' : `Missing: ${missing.join(', ')}.`)
}

/**
 * How similar the answer is to `groundTruth`, by the groups of three characters that they share (Dice's coefficient), ignoring case,
 * punctuation and spaces. It compares wording and not meaning: a negation changes it little.
 */
export function createSimilarityScorer(): Scorer {
  return createScorer({ id: 'similarity', description: 'How similar the wording of the answer is to the expected one.' })
    .generateScore(({ run }) => {
      if (run.groundTruth === undefined) return notScorable('The run has no groundTruth.')
      return similarity(textOf(run.output), textOf(run.groundTruth))
    })
}

/** From 0, nothing in common, to 1, the same text. */
export function similarity(one: string, other: string): number {
  const [first, second] = [plain(one), plain(other)]
  if (first === second) return 1
  const counts = trigrams(first)
  let [shared, total] = [0, 0]
  for (const count of counts.values()) total += count
  for (const [gram, count] of trigrams(second)) {
    shared += Math.min(count, counts.get(gram) ?? 0)
    total += count
  }
  return total === 0 ? 0 : (2 * shared) / total
}

function plain(text: string): string {
  return text.normalize('NFKC').toLowerCase().replace(/[^\p{L}\p{N}]+/gu, ' ').trim()
}

function trigrams(text: string): Map<string, number> {
  const counts = new Map<string, number>()
  const padded = ` ${text} `
  for (let start = 0; start + 3 <= padded.length; start++) {
    const gram = padded.slice(start, start + 3)
    counts.set(gram, (counts.get(gram) ?? 0) + 1)
  }
  return counts
}

/** The tool calls that a run should make. */
export interface ToolCallAccuracyOptions {
  /** The names of the tools that the run should call. Defaults to the `expectedTrajectory` of the run. */
  expectedTools?: readonly string[]
  /** `any` (default): in any order. `exact`: in this order, with no other call. */
  order?: 'any' | 'exact'
}

/** Whether the run called the expected tools, with arguments that the expected trajectory names. It does not look at results. */
export function createToolCallAccuracyScorer(options: ToolCallAccuracyOptions = {}): AgentScorer {
  checkNames('createToolCallAccuracyScorer()', options, ['expectedTools', 'order'])
  const { expectedTools, order = 'any' } = options
  const isList = Array.isArray(expectedTools) && expectedTools.length > 0 && expectedTools.every((name) => typeof name === 'string')
  if (expectedTools !== undefined && !isList) {
    throw refused('expectedTools', 'a list with the name of at least one tool')
  }
  if (order !== 'any' && order !== 'exact') throw refused('order', "'any' or 'exact'")
  return createScorer({ id: 'tool-call-accuracy', description: 'Whether the run called the expected tools.', type: 'agent' })
    .analyze(({ run }) => {
      const expected = expectedTools?.map((name): ExpectedStep => ({ name })) ?? run.expectedTrajectory ?? []
      if (expected.length === 0) return notScorable('The run has no expectedTrajectory.')
      const called = trajectoryOf(run.output)
      const isMade = (step: ExpectedStep, { name, toolArgs }: TrajectoryStep) =>
        name === step.name && (step.toolArgs === undefined || hasPart(toolArgs, step.toolArgs))
      return {
        expected: expected.map(({ name }) => name), called: called.map(({ name }) => name),
        missing: expected.filter((step) => !called.some((call) => isMade(step, call))).length,
        isExact: called.length === expected.length && called.every((call, index) => isMade(expected[index] as ExpectedStep, call)),
      }
    })
    .generateScore(({ results: { analyzeStepResult: { expected, missing, isExact } } }) => {
      if (order === 'any') return 1 - missing / expected.length
      return isExact ? 1 : 0
    })
    .generateReason(({ results: { analyzeStepResult: { expected, called } } }) =>
      `Expected ${expected.join(', ')}; called ${called.length === 0 ? 'none' : called.join(', ')}.`)
}

/** Whether the answer, an object or a text that is JSON, is a value of a schema: 1 or 0. It says nothing about the truth of the value. */
export function createSchemaMatchScorer(options: { schema: Schema }): Scorer {
  checkNames('createSchemaMatchScorer()', options, ['schema'])
  const compiled = compileSchema(options.schema, 'schema of createSchemaMatchScorer()')
  return createScorer({ id: 'schema-match', description: 'Whether the answer is a value of the schema.' })
    .analyze(async ({ run }) => {
      const parsed = parse(textOf(run.output))
      if (!parsed.ok) return 'The answer is not JSON.'
      const checked = await compiled.validate(parsed.value)
      return checked.ok ? '' : describeIssues(checked.issues)
    })
    .generateScore(({ results }) => (results.analyzeStepResult === '' ? 1 : 0))
    .generateReason(({ results }) => (results.analyzeStepResult === '' ? 'The answer matches the schema.' : results.analyzeStepResult))
}

function parse(text: string): { ok: true; value: unknown } | { ok: false } {
  try {
    return { ok: true, value: JSON.parse(text) as unknown }
  } catch {
    // Text that is not JSON is the finding of this scorer.
    return { ok: false }
  }
}

/** The duration of a run from which its score falls, and at which it is 0. */
export interface LatencyOptions {
  /** Up to this time a run has the score 1. */
  targetMs: number
  /** From this time on a run has the score 0; between the two it falls evenly. */
  limitMs: number
}

/** How fast the run was, by its whole duration. Tools and queues of the provider count too. */
export function createLatencyScorer(options: LatencyOptions): Scorer {
  checkNames('createLatencyScorer()', options, ['targetMs', 'limitMs'])
  const { targetMs, limitMs } = options
  checkRange({ targetMs, limitMs })
  return createScorer({ id: 'latency', description: 'How fast the run was.' })
    .generateScore(({ run: { metrics } }) =>
      metrics ? between(metrics.durationMs, targetMs, limitMs) : notScorable('The duration of the run is not known.'))
    .generateReason(({ run: { metrics } }) => `${Math.round(metrics?.durationMs ?? 0)} ms.`)
}

/** Prices, and the price of a run from which its score falls and at which it is 0. */
export interface CostOptions {
  /** Prices for a million tokens. `cachedInput` defaults to `input`. */
  prices: { input: number; output: number; cachedInput?: number }
  /** Up to this price a run has the score 1. */
  target: number
  /** From this price on a run has the score 0; between the two it falls evenly. */
  limit: number
}

/** What the tokens of the run cost, by prices that you pass. Tools and cache writes with a price of their own are not counted. */
export function createCostScorer(options: CostOptions): Scorer {
  checkNames('createCostScorer()', options, ['prices', 'target', 'limit'])
  const { prices, target, limit } = options
  checkObject('prices', prices)
  checkNames('prices', prices, ['input', 'output', 'cachedInput'])
  const { input, output, cachedInput = input } = prices
  for (const [name, price] of Object.entries({ input, output, cachedInput })) {
    if (!(typeof price === 'number' && price >= 0)) throw refused(`prices.${name}`, 'a number of at least 0')
  }
  checkRange({ target, limit })
  return createScorer({ id: 'cost', description: 'What the tokens of the run cost.' })
    .analyze(({ run: { metrics } }) => {
      if (!metrics) return notScorable('The usage of the run is not known.')
      const { inputTokens, outputTokens, cachedInputTokens } = metrics.usage
      return ((inputTokens - cachedInputTokens) * input + cachedInputTokens * cachedInput + outputTokens * output) / 1_000_000
    })
    .generateScore(({ results: { analyzeStepResult: price } }) => between(price, target, limit))
    .generateReason(({ results: { analyzeStepResult: price } }) => `The tokens cost ${price.toPrecision(3)}.`)
}

function checkRange(range: Record<string, number>): void {
  const [[low, least], [high, most]] = Object.entries(range) as [[string, number], [string, number]]
  if (!(typeof least === 'number' && least >= 0)) throw refused(low, 'a number of at least 0')
  if (!(typeof most === 'number' && most > least)) throw refused(high, `a number above ${low}`)
}

function between(value: number, full: number, none: number): number {
  return Math.min(1, Math.max(0, (none - value) / (none - full)))
}
