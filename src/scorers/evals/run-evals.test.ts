import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent } from '../../agent/agent.ts'
import { RequestContext } from '../../run/request-context.ts'
import { createTool } from '../../run/tools/tool.ts'
import { scriptedModel } from '../../testing/scripted-model.ts'
import { createKeywordCoverageScorer, createToolCallAccuracyScorer } from '../builtin/measured.ts'
import type { ScorerLike } from '../contract.ts'
import { createScorer, notScorable } from '../scorer.ts'
import { compareEvals, signTest } from './compare.ts'
import { runEvals } from './run-evals.ts'

const length = createScorer({ id: 'length', description: 'd' }).generateScore(({ run }) => String(run.output).length / 10)
const upper = async (text: string) => text.toUpperCase()

describe('runEvals', () => {
  it('[J3.1] runs every case and returns the mean of each scorer, in the order of the data', async () => {
    const result = await runEvals({ target: upper, data: [{ input: 'a' }, { id: 'two', input: 'bbb' }], scorers: [length], concurrency: 2 })
    expect(result.items.map(({ id, output, scores }) => [id, output, scores])).toEqual([['1', 'A', { length: 0.1 }], ['two', 'BBB', { length: 0.3 }]])
    expect(result).toMatchObject({ scores: { length: 0.2 }, summary: { totalItems: 2, failedItems: 0, notScorable: 0 }, verdict: 'scored' })
  })

  it('[J3.2] keeps a case that fails beside the others: it is no score of 0', async () => {
    const target = (text: string) => {
      if (text === 'b') throw new Error('no network')
      return text
    }
    const picky = createScorer({ id: 'picky', description: 'd' }).generateScore(({ run }) => (run.output === 'c' ? notScorable('c') : 1))
    const result = await runEvals({ target, data: ['a', 'b', 'c'].map((input) => ({ input })), scorers: [picky] })
    expect(result).toMatchObject({ scores: { picky: 1 }, summary: { totalItems: 3, failedItems: 1, notScorable: 1 }, verdict: 'failed' })
    expect(result.items[1]).toMatchObject({ errors: { target: { message: 'no network' } }, scores: {} })
    expect(result.items[2]).toMatchObject({ notScorable: { picky: 'c' }, scores: {} })
  })

  it('[J3.3] fails where a threshold or a gate is missed', async () => {
    const evaluate = (threshold: number | { min?: number; max?: number }) =>
      runEvals({ target: upper, data: [{ input: 'aaaaa' }], scorers: [{ scorer: length, threshold }] })
    expect(await evaluate(0.5)).toMatchObject({ verdict: 'passed', thresholds: [{ scorerId: 'length', mean: 0.5, passed: true }] })
    expect(await evaluate(0.6)).toMatchObject({ verdict: 'failed' })
    expect(await evaluate({ max: 0.4 })).toMatchObject({ verdict: 'failed' })
    const gated = (input: string) => runEvals({ target: upper, data: [{ input }], scorers: [], gates: [createScorer({ id: 'g', description: 'd' }).generateScore(({ run }) => (run.output === 'A' ? 1 : 0.9))] })
    expect((await gated('a')).verdict).toBe('passed')
    expect(await gated('b')).toMatchObject({ verdict: 'failed', gates: [{ scorerId: 'g', mean: 0.9, passed: false }] })
  })

  it('[J3.4] runs an agent, with turns as a conversation, and measures the run', async () => {
    const model = scriptedModel([{ text: 'Sintra.' }, { text: 'By train to Sintra.', usage: { inputTokens: 5, outputTokens: 2 } }])
    const agent = new Agent({ id: 'guide', instructions: 'You plan trips.', model })
    let input: unknown
    const seen = createScorer({ id: 'seen', description: 'd', type: 'agent' }).generateScore(({ run }) => {
      input = run.input
      return run.metrics?.usage.outputTokens ?? 0
    })
    const { items: [item] } = await runEvals({ target: agent, data: [{ turns: ['Where to go?', 'How?'] }], scorers: [seen, createKeywordCoverageScorer()] })
    expect(item).toMatchObject({ scores: { seen: 2 }, runId: expect.any(String) as string, metrics: { steps: 1 } })
    expect(input).toMatchObject({
      systemMessages: ['You plan trips.'],
      inputMessages: [{ content: { parts: [{ text: 'How?' }] } }],
      rememberedMessages: [{ role: 'user' }, { role: 'assistant', content: { parts: [{ type: 'step-start' }, { type: 'text', text: 'Sintra.' }] } }],
    })
    expect(JSON.stringify(model.calls[1]!.prompt)).toContain('Sintra.')
  })

  it('[J3.4] scores the tool calls of an agent', async () => {
    const model = scriptedModel([{ toolCalls: [{ toolName: 'weather', input: {} }] }, { text: 'Warm.' }])
    const weather = createTool({ id: 'weather', description: 'd', inputSchema: z.object({}), execute: async () => '21' })
    const agent = new Agent({ id: 'a', instructions: 'x', model, tools: { weather } })
    const path = createScorer({ id: 'path', description: 'd', type: 'trajectory' }).generateScore(({ run: { output } }) => (output[0]?.name === 'weather' ? 1 : 0))
    const result = await runEvals({ target: agent, data: [{ input: 'Warm?' }], scorers: [createToolCallAccuracyScorer({ expectedTools: ['weather'] }), path] })
    expect(result.scores).toEqual({ 'tool-call-accuracy': 1, path: 1 })
  })

  it('[J3.4] passes targetOptions and the request context to the agent, and runs each case as often as trials says', async () => {
    const model = scriptedModel(() => 'Fine.')
    const agent = new Agent({ id: 'a', instructions: ({ requestContext }) => `Tenant ${String(requestContext.get('tenant'))}.`, model })
    const [progress, seen] = [[] as unknown[], new Set<unknown>()]
    const scorer = createScorer({ id: 's', description: 'd', type: 'agent' }).generateScore(({ run }) => {
      seen.add(`${run.input.systemMessages.join(' ')} ${JSON.stringify(run.requestContext)}`)
      return 1
    })
    const data = [{ input: 'How?', requestContext: { tenant: 'acme' } }]
    const { items } = await runEvals({ target: agent, data, scorers: [scorer], trials: 2, targetOptions: { system: 'Be short.' }, onItemComplete: (_, done) => progress.push(done) })
    expect(items.map(({ trial }) => trial)).toEqual([1, 2])
    expect(progress).toEqual([{ done: 1, total: 2 }, { done: 2, total: 2 }])
    expect([...seen]).toEqual(['Tenant acme. Be short. {"tenant":"acme"}'])
    expect(JSON.stringify(model.calls[0]!.prompt)).toContain('Be short.')
  })

  it('[J3.5] takes functions of the form of autoevals', async () => {
    const Contains = ({ output, expected }: { input: string; output: string; expected?: string }) => ({
      name: 'Contains', score: expected === undefined ? null : output.includes(expected) ? 1 : 0, metadata: { rationale: 'looked' },
    })
    const result = await runEvals({ target: upper, data: [{ input: 'ab', groundTruth: 'A' }, { input: 'ab' }], scorers: [Contains] })
    expect(result.items).toMatchObject([{ scores: { Contains: 1 }, reasons: { Contains: 'looked' } }, { notScorable: { Contains: '' } }])
  })

  it('[J3.5] a function or a scorer that gives no number is an error of the case, and no score', async () => {
    const given: unknown[] = [{ name: 'x', score: Number.NaN }, { name: 'x' }, 0.5, null, undefined, { name: 'x', score: '1' }, { name: 'x', score: Infinity }]
    for (const value of given) {
      const odd = () => value as never
      const foreign: ScorerLike = { id: 'foreign', name: 'foreign', description: 'd', type: 'any', version: '1', better: 'higher', run: async () => value as never }
      const result = await runEvals({ target: upper, data: [{ input: 'ab' }], scorers: [odd, foreign] })
      expect(result).toMatchObject({ scores: {}, verdict: 'failed', items: [{ scores: {}, errors: { odd: { code: 'scorer_failed' }, foreign: { code: 'scorer_failed' } } }] })
    }
  })

  it('[J3.6] reads cases of a file, and names the line that is wrong', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'heed-evals-'))
    const [good, bad] = ['good.jsonl', 'bad.jsonl'].map((name) => join(folder, name)) as [string, string]
    writeFileSync(good, '{"input":"a"}\n\n{"input":"b"}\n')
    writeFileSync(bad, '{"input":"a"}\n{"input"\n')
    expect((await runEvals({ target: upper, data: { file: good }, scorers: [length] })).summary.totalItems).toBe(2)
    await expect(runEvals({ target: upper, data: { file: bad }, scorers: [length] })).rejects.toThrow('bad.jsonl:2')
    await expect(runEvals({ target: upper, data: { file: join(folder, 'none') }, scorers: [length] })).rejects.toThrow('There is no file')
  })

  it('[J3.7] rejects what cannot be evaluated, before any case runs', async () => {
    const target = () => {
      throw new Error('called')
    }
    const refused = async (options: object) => runEvals({ target, data: [{ input: 'a' }], scorers: [length], ...options } as never).catch((error: unknown) => error)
    expect(await refused({ data: [] })).toMatchObject({ details: { field: 'data' } })
    expect(await refused({ data: [{}] })).toMatchObject({ code: 'invalid_argument' })
    expect(await refused({ data: [{ input: 'a', expected: 'b' }] })).toMatchObject({ code: 'unsupported_option', details: { option: 'expected' } })
    expect(await refused({ data: [{ id: 'x', input: 'a' }, { id: 'x', input: 'b' }] })).toMatchObject({ code: 'invalid_argument' })
    expect(await refused({ scorers: [] })).toMatchObject({ code: 'invalid_argument' })
    expect(await refused({ scorers: [length, length] })).toMatchObject({ message: expect.stringContaining("'length'") as string })
    expect(await refused({ scorers: [7] })).toMatchObject({ code: 'invalid_argument' })
    expect(await refused({ concurrency: 0 })).toMatchObject({ details: { field: 'concurrency' } })
    expect(await refused({ targetOptions: {} })).toMatchObject({ code: 'unsupported_option' })
    expect(await refused({ parallel: 3 })).toMatchObject({ code: 'unsupported_option', details: { option: 'parallel' } })
  })

  it('[J3.10] rejects options of the target that it does not have, or that a case sets', async () => {
    const agent = new Agent({ id: 'a', model: scriptedModel([]) })
    for (const [option, value] of Object.entries({ maxStep: 1, requestContext: new RequestContext(), abortSignal: AbortSignal.abort(), runId: 'r' }))
      expect(await runEvals({ target: agent, data: [{ input: 'a' }], scorers: [length], targetOptions: { [option]: value } }).catch((error: unknown) => error)).toMatchObject({ code: 'unsupported_option', details: { option } })
  })

  it('[J3.8] ends when it is aborted, and starts no further case', async () => {
    const stop = new AbortController()
    let calls = 0
    const target = () => {
      calls++
      stop.abort(new Error('enough'))
      return 'x'
    }
    await expect(runEvals({ target, data: ['a', 'b', 'c'].map((input) => ({ input })), scorers: [length], abortSignal: stop.signal })).rejects.toThrow('enough')
    expect(calls).toBe(1)
  })

  it('[J3.9] compares two runs case by case', async () => {
    const evaluate = (scores: Record<string, number>) => ({
      items: Object.entries(scores).map(([id, score]) => ({ id, trial: 1, scores: { s: score }, reasons: {}, notScorable: {}, errors: {} })),
    })
    expect(compareEvals(evaluate({ a: 0.5, b: 0.5, c: 1, gone: 0 }), evaluate({ a: 0.6, b: 0.4, c: 1, added: 1 }))).toEqual([
      { scorerId: 's', before: expect.closeTo(2 / 3) as number, after: expect.closeTo(2 / 3) as number, higher: ['a'], lower: ['b'], same: 1, p: 1 },
    ])
    expect(signTest(10, 0)).toBeCloseTo(2 / 1024)
    expect(signTest(0, 0)).toBe(1)
    expect(signTest(3_000, 3_000)).toBeCloseTo(1)
  })
})
