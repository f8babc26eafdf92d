import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Agent, createTool, Heed, InMemoryStore } from 'heed'
import { HeedClient } from 'heed/client'
import {
  compareEvals, createAnswerRelevancyScorer, createBiasScorer, createCostScorer, createFaithfulnessScorer, createHallucinationScorer, createKeywordCoverageScorer,
  createLatencyScorer, createPromptAlignmentScorer, createSchemaMatchScorer, createScorer, createSimilarityScorer, createToolCallAccuracyScorer, createToxicityScorer,
  notScorable, runEvals, textOf,
} from 'heed/scorers'
import { serve } from 'heed/server'
import { scriptedModel } from 'heed/testing'
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
