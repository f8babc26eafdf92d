import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Agent, createTool, Heed, InMemoryStore } from 'heed'
import { HeedClient } from 'heed/client'
import {
  checks, compareEvals, createAnswerRelevancyScorer, createBiasScorer, createClassifierScorer, createCostScorer, createFaithfulnessScorer, createHallucinationScorer, createKeywordCoverageScorer,
  createLatencyScorer, createPromptAlignmentScorer, createSchemaMatchScorer, createScorer, createSimilarityScorer, createToolCallAccuracyScorer, createToxicityScorer,
  filterRun, notScorable, runEvals, textOf,
} from 'heed/scorers'
import { serve } from 'heed/server'
import { scriptedModel } from 'heed/testing'
import { createStep, createWorkflow } from 'heed/workflows'
import { z } from 'zod'

// Every call of scorers and evaluations, as a program of a user has them.

const judge = scriptedModel(() => JSON.stringify({ findings: [{ text: 'By train.', verdict: 'yes', why: 'It says so.' }] }))

test('a scorer with all its stages, in code and judged', async () => {
  const plain = createScorer({ id: 'plain', description: 'd', version: '2' })
    .preprocess(({ run }) => String(run.output).split(' '))
    .analyze(({ results }) => results.preprocessStepResult.length)
    .generateScore(({ results }) => (results.analyzeStepResult === 0 ? notScorable('Nothing is said.') : 1 / results.analyzeStepResult))
    .generateReason(({ score }) => `It is ${score}.`)
  const scored = await plain.run({ input: 'How?', output: 'By train', groundTruth: 'By train', runId: 'r1' })
  assert.deepEqual([scored.score, scored.reason, scored.runId], [0.5, 'It is 0.5.', 'r1'])
  const model = scriptedModel(['{"words":["a"]}', '{"points":3}', '{"reason":"It has three points."}'])
  const judged = createScorer({ id: 'judged', description: 'd', judge: { model, instructions: 'You judge.' } })
    .analyze({ description: 'a', outputSchema: z.object({ words: z.array(z.string()) }), createPrompt: ({ run }) => `Words of ${textOf(run.output)}` })
    .generateScore({ description: 's', outputSchema: z.object({ points: z.number() }), createPrompt: () => 'How many?', calculateScore: ({ answer }) => answer.points })
    .generateReason({ description: 'r', createPrompt: () => 'Why?' })
  const { score, reason } = await judged.run({ input: 'x', output: 'y' })
  assert.deepEqual([score, reason], [3, 'It has three points.'])
})

function Exact({ output, expected }: { output: unknown; expected?: unknown }) {
  return { name: 'Exact', score: textOf(output) === expected ? 1 : 0 }
}

test('the scorers of the package, on an agent in an evaluation', async () => {
  const look = createTool({ id: 'look', inputSchema: z.object({}), execute: async () => 'A train goes at nine.' })
  const agent = new Agent({
    id: 'guide', instructions: 'You plan trips.', tools: { look },
    model: scriptedModel([{ toolCalls: [{ toolName: 'look', input: {} }] }, 'By train.', { toolCalls: [{ toolName: 'look', input: {} }] }, 'By train.'], { loop: true }),
  })
  const evaluate = () => runEvals({
    target: agent,
    data: [{ id: 'a', input: 'How?', groundTruth: 'By train.' }, { id: 'b', input: 'How else?', groundTruth: 'By bus.' }],
    concurrency: 1,
    scorers: [
      createKeywordCoverageScorer(), { scorer: createSimilarityScorer(), threshold: { min: 0.1, max: 1 } }, createToolCallAccuracyScorer({ expectedTools: ['look'] }),
      createSchemaMatchScorer({ schema: z.string() }), createLatencyScorer({ targetMs: 60_000, limitMs: 120_000 }),
      createCostScorer({ prices: { input: 1, output: 2 }, target: 1, limit: 2 }), createAnswerRelevancyScorer({ model: judge }), createFaithfulnessScorer({ model: judge }),
      createHallucinationScorer({ model: judge }), createBiasScorer({ model: judge }), createToxicityScorer({ model: judge }), createPromptAlignmentScorer({ model: judge }),
      // In the form of autoevals.
      Exact,
    ],
  })
  const result = await evaluate()
  assert.deepEqual(result.items.flatMap(({ errors }) => Object.keys(errors ?? {})), [])
  assert.deepEqual(Object.keys(result.scores).toSorted().length, 13)
  assert.equal(result.scores.Exact, 0.5)
  assert.equal(result.verdict, 'passed')
  assert.ok(Object.keys(compareEvals(result, await evaluate())).length > 0)
})

test('scores of an agent in use, listed in the process and over HTTP', async () => {
  const agent = new Agent({
    id: 'guide', model: scriptedModel(['By train.']),
    scorers: { words: { scorer: createKeywordCoverageScorer(), sampling: { type: 'ratio', rate: 1 } }, never: { scorer: createSimilarityScorer(), sampling: { type: 'ratio', rate: 0 } } },
  })
  const heed = new Heed({ agents: { agent }, storage: new InMemoryStore() })
  const server = await serve(heed, { port: 0, handleSignals: false })
  await agent.generate('Which train?', { memory: { thread: 't', resource: 'r' } })
  await heed.tick()
  const { scores } = await heed.listScores({ threadId: 't' })
  assert.deepEqual(scores.map(({ scorerId, state }) => [scorerId, state]), [['keyword-coverage', 'scored']])
  const listed = await new HeedClient({ baseUrl: server.url }).listScores({ agentId: 'guide', scorerId: 'keyword-coverage', state: 'scored' })
  assert.deepEqual(listed.scores.map(({ runId }) => runId), scores.map(({ runId }) => runId))
  await server.close()
})

const brief = createScorer({ id: 'brief', description: 'd', type: 'agent', prepareRun: filterRun({ partTypes: ['text'], dropSystemMessages: true }) }).generateScore(({ run }) => textOf(run.output).length)
const memory = { thread: 't', resource: 'r' }

test('scorers of a Heed, of one call, by a filter, and of other ends', async () => {
  const agent = new Agent({ id: 'guide', model: scriptedModel(() => 'By train.'), scorers: { own: { scorer: createKeywordCoverageScorer(), filter: { threadId: { ne: 't' } }, on: ['finished', 'failed'] } } })
  const heed = new Heed({ agents: { agent }, scorers: { brief }, storage: new InMemoryStore() })
  assert.equal(heed.getScorer('brief'), heed.getScorerById('brief'))
  assert.deepEqual([Object.keys(heed.listScorers()), Object.keys(await agent.listScorers())], [['brief'], ['own']])
  await agent.generate('Which train?', { memory })
  const { runId } = await agent.generate('Which train?', { memory, scorers: { now: { scorer: 'brief', sampling: { type: 'none' } } } })
  await heed.tick()
  const { scores } = await heed.listScores()
  assert.deepEqual(scores.map(({ scorerId, score, runId: of }) => [scorerId, score, of]), [['brief', 9, runId]])
  await assert.rejects(agent.generate('x', { memory, scorers: { a: { scorer: 'none' } } }), { code: 'unknown_scorer' })
  // A field that is none does not compile, and is rejected.
  // @ts-expect-error no root of a filter
  assert.throws(() => new Agent({ id: 'x', model: judge, scorers: { a: { scorer: brief, filter: { 'user.plan': { eq: 1 } } } } }), { code: 'invalid_argument' })
  await heed.close()
})

test('a score of a person, a score that is made again, and scores of old runs', async () => {
  const agent = new Agent({ id: 'guide', model: scriptedModel(() => 'By train.') })
  const heed = new Heed({ agents: { agent }, scorers: { brief }, storage: new InMemoryStore() })
  const { runId } = await agent.generate('Which train?', { memory })
  const saved = await heed.saveScore({ threadId: 't', runId, scorerId: 'thumbs', score: 1, by: 'ann', reason: 'Fine.', metadata: { page: 1 }, source: 'test' })
  assert.deepEqual([saved.score, saved.by, saved.source], [1, 'ann', 'test'])
  assert.deepEqual(await heed.backfillScores({ agentId: 'guide', scorer: 'brief', from: new Date(0) }), { runs: 1, added: 1 })
  await heed.tick()
  assert.deepEqual([await heed.countScores({ runId }), await heed.countScores({ scorerId: 'brief', state: 'scored' }), await heed.retryScores()], [2, 1, 0])
  await heed.close()
})

test('steps of a workflow are scored in use and in an evaluation', async () => {
  const long = createScorer({ id: 'long', description: 'd', type: { input: z.number(), output: z.string() } }).generateScore(({ run: { output } }) => output.length)
  const say = createStep({ id: 'say', inputSchema: z.number(), outputSchema: z.string(), execute: ({ inputData }) => 'x'.repeat(inputData), scorers: { long: { scorer: long } } })
  const saying = createWorkflow({ id: 'saying', inputSchema: z.number(), outputSchema: z.string() }).then(say).commit()
  const heed = new Heed({ workflows: { saying }, storage: new InMemoryStore() })
  await heed.getWorkflow('saying').createRun({ runId: 'r1' }).start({ inputData: 3 })
  await heed.tick()
  const { scores } = await heed.listScores({ workflowId: 'saying', stepId: 'say' })
  assert.deepEqual(scores.map(({ runId, stepPath, score }) => [runId, stepPath, score]), [['r1', '0', 3]])
  const result = await runEvals({
    target: saying, data: [{ input: 2 }], gates: [checks.equals('xx')],
    scorers: { workflow: [checks.matches(/^x+$/)], steps: { say: [{ scorer: long, threshold: { min: 2 } }] }, trajectory: [checks.toolOrder(['say'])] },
  })
  assert.deepEqual([result.verdict, result.scores['say.long']], ['passed', 2])
  await heed.close()
})

test('checks, a classifier, and turns with gates', async () => {
  const look = createTool({ id: 'look', inputSchema: z.object({ city: z.string() }), execute: async () => 'A train goes at nine.' })
  const agent = new Agent({ id: 'guide', tools: { look }, model: scriptedModel([{ toolCalls: [{ toolName: 'look', input: { city: 'Sintra' } }] }, 'By train.', 'At nine.']) })
  const tone = createClassifierScorer({ id: 'tone', description: 'd', question: 'How kind is it?', choices: { good: 1, poor: 0 }, model: scriptedModel(() => '{"choice":"good","why":"It is."}') })
  const result = await runEvals({
    target: agent,
    data: [{
      turns: [
        { input: 'How?', gates: [checks.calledTool('look', { times: 1, args: { city: 'Sintra' } }), checks.noToolErrors(), checks.maxToolCalls(1), checks.toolOrder(['look']), checks.didNotCall('pay'), checks.includes('train')] },
        { input: 'When?', gates: [checks.usedNoTools(), checks.excludes('bus'), checks.matches(/nine/), checks.similarity('at nine')] },
      ],
    }],
    scorers: [tone],
  })
  assert.deepEqual([result.verdict, result.scores, result.items[0]?.turns?.map(({ missed }) => missed)], ['passed', { tone: 1 }, [[], []]])
})
