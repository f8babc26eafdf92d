import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Agent } from 'heed'
import { createFaithfulnessScorer, createScorer, createSimilarityScorer, runEvals } from 'heed/scorers'
import { scriptedModel } from 'heed/testing'
import { newFolder } from './parts/folder.ts'

test('an agent is evaluated, in code and by a judge', async () => {
  const agent = new Agent({ id: 'guide', instructions: 'You answer.', model: scriptedModel(['By train.', 'On foot.']) })
  const judge = scriptedModel(() => JSON.stringify({ findings: [{ text: 'By train.', verdict: 'yes', why: 'It says so.' }] }))
  const words = createScorer({ id: 'words', description: 'Counts words.', type: 'agent' }).generateScore(({ run }) => run.output.length)
  const result = await runEvals({
    target: agent,
    data: [{ input: 'How?', groundTruth: 'By train.' }, { input: 'How else?', groundTruth: 'On foot.' }],
    scorers: [words, { scorer: createSimilarityScorer(), threshold: 1 }, createFaithfulnessScorer({ model: judge, context: ['Trains go there.'] })],
  })
  assert.deepEqual(result.scores, { words: 1, similarity: 1, faithfulness: 1 })
  assert.equal(result.verdict, 'passed')
})

test('heed eval runs a file', () => {
  const modules = join(import.meta.dirname, '..', 'node_modules')
  const file = join(import.meta.dirname, 'evals-of-a-user.mjs')
  writeFileSync(file, `
    import { createScorer } from 'heed/scorers'
    const one = createScorer({ id: 'one', description: 'd' }).generateScore(() => 1)
    export const evals = { all: { target: (text) => text, data: [{ input: 'a' }], scorers: [{ scorer: one, threshold: 1 }] } }
  `)
  const { status, stdout, stderr } = spawnSync(join(modules, '.bin', 'heed'), ['eval', file, '--results', newFolder()], { encoding: 'utf8' })
  assert.equal(stderr, '')
  assert.equal(stdout, 'all: passed (1 case)\n  one  1.000  wanted at least 1: ok\n')
  assert.equal(status, 0)
})
