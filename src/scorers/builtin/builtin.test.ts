import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Message, MessagePart } from '../../message/message.ts'
import { scriptedModel } from '../../testing/scripted-model.ts'
import type { AgentScorerInput } from '../contract.ts'
import {
  createAnswerRelevancyScorer, createBiasScorer, createFaithfulnessScorer, createHallucinationScorer, createPromptAlignmentScorer, createToxicityScorer,
} from './judged.ts'
import {
  createCostScorer, createKeywordCoverageScorer, createLatencyScorer, createSchemaMatchScorer, createSimilarityScorer, createToolCallAccuracyScorer,
  similarity,
} from './measured.ts'

function answer(...parts: MessagePart[]): Message[] {
  return [{ id: 'a', role: 'assistant', createdAt: new Date(0), content: { format: 2, parts } }]
}

function called(toolName: string, result = 'ok'): MessagePart {
  return { type: 'tool-invocation', toolInvocation: { toolCallId: toolName, toolName, args: {}, state: 'result', result } }
}

const noUsage = { inputTokens: 0, outputTokens: 0, totalTokens: 0, reasoningTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0 }
const asked: AgentScorerInput = {
  inputMessages: [{ id: 'q', role: 'user', createdAt: new Date(0), content: { format: 2, parts: [{ type: 'text', text: 'Is it <b>warm</b> in Sintra?' }] } }],
  rememberedMessages: [], systemMessages: ['Answer in one sentence.'],
}

describe('scorers in code', () => {
  it('[J2.1] measure the words of the question that the answer has', async () => {
    const scorer = createKeywordCoverageScorer()
    expect(await scorer.run({ input: 'Which trains go to Sintra?', output: 'Trains to Sintra go daily.' })).toMatchObject({ score: 1 })
    expect(await scorer.run({ input: 'Which trains go to Sintra?', output: 'Sintra is nice.' })).toMatchObject({ reason: expect.stringMatching(/^Missing: /) as string })
    expect(await scorer.run({ input: '?', output: 'x' })).toMatchObject({ notScorable: {} })
  })

  it('[J2.1] measure how similar two texts are', async () => {
    expect(similarity('Take the train.', 'take the TRAIN')).toBe(1)
    expect(similarity('Take the train.', 'Take a train.')).toBeGreaterThan(similarity('Take the train.', 'Walk to the castle.'))
    expect(similarity('', 'x')).toBe(0)
    expect(await createSimilarityScorer().run({ input: '', output: 'a b', groundTruth: 'a b' })).toMatchObject({ score: 1 })
    expect(await createSimilarityScorer().run({ input: '', output: 'a b' })).toMatchObject({ notScorable: { reason: 'The run has no groundTruth.' } })
  })

  it('[J2.1] measure which tools were called', async () => {
    const output = answer(called('search'), called('weather'))
    const score = async (options: Parameters<typeof createToolCallAccuracyScorer>[0]) => (await createToolCallAccuracyScorer(options).run({ input: asked, output })).score
    expect(await score({ expectedTools: ['weather', 'search'] })).toBe(1)
    expect(await score({ expectedTools: ['weather', 'mail'] })).toBe(0.5)
    expect(await score({ expectedTools: ['search', 'weather'], order: 'exact' })).toBe(1)
    expect(await score({ expectedTools: ['weather', 'search'], order: 'exact' })).toBe(0)
    expect(() => createToolCallAccuracyScorer({ expectedTools: [] })).toThrow('expectedTools')
  })

  it('[J2.1] measure whether an answer matches a schema', async () => {
    const scorer = createSchemaMatchScorer({ schema: z.object({ city: z.string() }) })
    expect(await scorer.run({ input: '', output: '{"city":"Sintra"}' })).toMatchObject({ score: 1 })
    expect(await scorer.run({ input: '', output: { city: 'Sintra' } })).toMatchObject({ score: 1 })
    expect(await scorer.run({ input: '', output: '{"city":7}' })).toMatchObject({ score: 0, reason: expect.stringContaining('city') as string })
    expect(await scorer.run({ input: '', output: 'Sintra' })).toMatchObject({ score: 0, reason: 'The answer is not JSON.' })
  })

  it('[J2.1] measure time and money, evenly between the target and the limit', async () => {
    const latency = createLatencyScorer({ targetMs: 1_000, limitMs: 3_000 })
    const took = (durationMs: number) => latency.run({ input: '', output: '', metrics: { durationMs, usage: noUsage } })
    expect([await took(500), await took(2_000), await took(9_000)].map(({ score }) => score)).toEqual([1, 0.5, 0])
    expect(await latency.run({ input: '', output: '' })).toMatchObject({ notScorable: {} })
    const cost = createCostScorer({ prices: { input: 10, output: 20, cachedInput: 1 }, target: 0.01, limit: 0.03 })
    const usage = { ...noUsage, inputTokens: 1_000, cachedInputTokens: 0, outputTokens: 500 }
    expect(await cost.run({ input: '', output: '', metrics: { durationMs: 1, usage } })).toMatchObject({ score: 0.5, reason: 'The tokens cost 0.0200.' })
    expect(await cost.run({ input: '', output: '', metrics: { durationMs: 1, usage: { ...usage, cachedInputTokens: 1_000 } } })).toMatchObject({ score: expect.closeTo(0.95) as number })
    expect(() => createLatencyScorer({ targetMs: 2, limitMs: 1 })).toThrow('limitMs')
  })
})

describe('scorers with a judge', () => {
  const findings = (...verdicts: string[]) => ({ text: JSON.stringify({ findings: verdicts.map((verdict) => ({ text: `t-${verdict}`, verdict, why: 'w' })) }) })
  const output = answer(called('weather', '21 degrees'), { type: 'text', text: 'It is warm.' })

  it('[J2.2] have the share of the findings of the judge as their score', async () => {
    for (const [create, verdicts, score] of [
      [createAnswerRelevancyScorer, ['yes', 'unsure'], 0.75], [createFaithfulnessScorer, ['yes', 'no'], 0.5], [createHallucinationScorer, ['no', 'no'], 0],
      [createBiasScorer, ['yes'], 1], [createToxicityScorer, ['no', 'yes', 'no', 'no'], 0.25], [createPromptAlignmentScorer, ['yes'], 1],
    ] as const) {
      const model = scriptedModel([findings(...verdicts)])
      expect(await create({ model }).run({ input: asked, output }), create.name).toMatchObject({ score })
      expect(model.callCount).toBe(1)
    }
  })

  it('[J2.2] show the judge the material escaped, with what the answer may rest on', async () => {
    const model = scriptedModel([findings('yes')])
    await createFaithfulnessScorer({ model, context: ['Sintra is in Portugal.'] }).run({ input: asked, output })
    const prompt = JSON.stringify(model.calls[0]!.prompt.at(-1))
    expect(prompt).toContain('&lt;b&gt;warm&lt;/b&gt;')
    expect(prompt).toContain('weather: 21 degrees')
    expect(prompt).toContain('Sintra is in Portugal.')
  })

  it('[J2.3] have no score where there is nothing to judge', async () => {
    const model = scriptedModel([])
    expect(await createAnswerRelevancyScorer({ model }).run({ input: asked, output: answer(called('weather')) })).toMatchObject({ notScorable: { reason: 'The run has no answer.' } })
    expect(await createFaithfulnessScorer({ model }).run({ input: asked, output: answer({ type: 'text', text: 'Warm.' }) })).toMatchObject({ notScorable: { step: 'preprocess' } })
    expect(await createFaithfulnessScorer({ model: scriptedModel([findings()]) }).run({ input: asked, output })).toMatchObject({ notScorable: { step: 'generateScore' } })
    expect(model.callCount).toBe(0)
  })

  it('[J2.3] reject options that they do not have', () => {
    expect(() => createBiasScorer({ model: scriptedModel([]), context: [] } as never)).toThrow('context')
    expect(() => createFaithfulnessScorer({ model: scriptedModel([]), context: 'x' as never })).toThrow('context')
  })
})
