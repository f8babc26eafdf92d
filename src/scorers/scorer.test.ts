import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Message } from '../message/message.ts'
import { scriptedModel } from '../testing/scripted-model.ts'
import { virtualClock } from '../testing/virtual-clock.ts'
import type { AgentScorerInput } from './contract.ts'
import { createScorer, notScorable } from './scorer.ts'
import { textOf } from './messages.ts'

const run = { input: 'Where is Sintra?', output: 'In Portugal.' }

function message(role: 'user' | 'assistant', text: string): Message {
  return { id: text, role, createdAt: new Date(0), content: { format: 2, parts: [{ type: 'text', text }] } }
}

const input: AgentScorerInput = { inputMessages: [message('user', 'Where?')], rememberedMessages: [], systemMessages: ['You help.'] }

describe('a scorer', () => {
  it('[J1.1] calls its stages in order, each with the results of those before it', async () => {
    const order: string[] = []
    const scorer = createScorer({ id: 'words', description: 'Counts words.' })
      .preprocess(({ run: { output } }) => {
        order.push('preprocess')
        return textOf(output).split(' ')
      })
      .analyze(({ results }) => {
        order.push('analyze')
        return { count: results.preprocessStepResult.length }
      })
      .generateScore(({ results }) => {
        order.push('generateScore')
        return results.analyzeStepResult.count / 10
      })
      .generateReason(({ score, results }) => {
        order.push('generateReason')
        return `${results.analyzeStepResult.count} words: ${score}`
      })
    expect(await scorer.run({ ...run, runId: 'r1' })).toEqual({
      runId: 'r1', score: 0.2, reason: '2 words: 0.2', preprocessStepResult: ['In', 'Portugal.'], analyzeStepResult: { count: 2 }, prompts: {},
    })
    expect(order).toEqual(['preprocess', 'analyze', 'generateScore', 'generateReason'])
  })

  it('[J1.1] infers the input and the output of its type', async () => {
    const agents = createScorer({ id: 'a', description: 'd', type: 'agent' }).generateScore(({ run: { output, input: given } }) =>
      output.length + given.systemMessages.length)
    expect(await agents.run({ input, output: [message('assistant', 'There.')] })).toMatchObject({ score: 2 })
    const typed = createScorer({ id: 't', description: 'd', type: { input: z.object({ a: z.number() }), output: z.object({ b: z.coerce.number() }) } })
      .generateScore(({ run: { input: { a }, output: { b } } }) => a + b)
    expect(await typed.run({ input: { a: 1 }, output: { b: '2' } as never })).toMatchObject({ score: 3 })
    await expect(typed.run({ input: { a: 'x' } as never, output: { b: 1 } })).rejects.toMatchObject({ code: 'invalid_argument' })
  })

  it('[J1.2] returns no score for a run that a stage declares not scorable, and calls no later stage', async () => {
    const later = () => {
      throw new Error('called')
    }
    const scorer = createScorer({ id: 's', description: 'd' }).analyze(() => notScorable('no answer')).generateScore(later)
    expect(await scorer.run({ ...run, runId: 'r' })).toEqual({ runId: 'r', notScorable: { step: 'analyze', reason: 'no answer' } })
    expect(await createScorer({ id: 's', description: 'd' }).generateScore(() => notScorable()).generateReason(later).run({ ...run, runId: 'r' }))
      .toEqual({ runId: 'r', notScorable: { step: 'generateScore' } })
  })

  it('[J1.3] rejects with the stage that failed, also where the score is no number', async () => {
    const broken = createScorer({ id: 's', description: 'd' }).analyze(() => {
      throw new Error('no network')
    }).generateScore(() => 1)
    await expect(broken.run(run)).rejects.toMatchObject({ code: 'scorer_failed', details: { step: 'analyze', scorerId: 's' } })
    for (const score of [Number.NaN, Infinity, '1', undefined]) {
      await expect(createScorer({ id: 's', description: 'd' }).generateScore(() => score as number).run(run))
        .rejects.toMatchObject({ code: 'scorer_failed', details: { step: 'generateScore' } })
    }
  })

  it('[J1.4] asks its judge with the prompt of a stage, and validates the answer', async () => {
    const model = scriptedModel([{ text: '{"places":["Sintra"]}' }, { text: '{"score":0.75}' }, { text: '{"reason":"It names it."}' }])
    const scorer = createScorer({ id: 's', description: 'd', judge: { model, instructions: 'Be strict.' } })
      .analyze({ description: 'Lists places.', outputSchema: z.object({ places: z.array(z.string()) }), createPrompt: ({ run: { input: asked } }) => `Places of: ${textOf(asked)}` })
      .generateScore({ description: 'Scores.', createPrompt: ({ results }) => `Places: ${results.analyzeStepResult.places.join()}` })
      .generateReason({ description: 'Explains.', createPrompt: ({ score }) => `Why ${score}?` })
    const result = await scorer.run(run)
    expect(result).toMatchObject({
      score: 0.75, reason: 'It names it.', analyzeStepResult: { places: ['Sintra'] },
      prompts: { analyze: 'Places of: Where is Sintra?', generateScore: 'Places: Sintra', generateReason: 'Why 0.75?' },
    })
    expect(JSON.stringify(model.calls[0]!.prompt)).toContain('Be strict.')
    expect(model.calls).toHaveLength(3)
  })

  it('[J1.4] asks once more after an invalid answer, and then fails', async () => {
    const stage = { description: 'Scores.', createPrompt: () => 'Score it.' }
    const repaired = scriptedModel([{ text: 'I would say 0.5' }, { text: '{"score":0.5}' }])
    expect(await createScorer({ id: 's', description: 'd', judge: { model: repaired } }).generateScore(stage).run(run)).toMatchObject({ score: 0.5 })
    expect(JSON.stringify(repaired.calls[1]!.prompt)).toContain('I would say 0.5')
    const stubborn = scriptedModel([{ text: '{"score":7}' }, { text: '{"score":"high"}' }, { text: '{"score":0.5}' }])
    await expect(createScorer({ id: 's', description: 'd', judge: { model: stubborn } }).generateScore(stage).run(run))
      .rejects.toMatchObject({ code: 'scorer_failed', details: { step: 'generateScore' } })
    expect(stubborn.callCount).toBe(2)
  })

  it('[J1.4] computes the score of an answer with a schema', async () => {
    const model = scriptedModel([{ text: '{"stars":4}' }])
    const scorer = createScorer({ id: 's', description: 'd' }).generateScore({
      description: 'Stars.', outputSchema: z.object({ stars: z.number() }), createPrompt: () => 'Stars?', judge: { model },
      calculateScore: ({ answer }) => answer.stars / 5,
    })
    expect(await scorer.run(run)).toMatchObject({ score: 0.8 })
  })

  it('[J1.5] fails where the judge does not answer in time', async () => {
    const clock = virtualClock()
    const model = scriptedModel([{ text: '{"score":1}', delayMs: 600_000 }], { clock })
    const scorer = createScorer({ id: 's', description: 'd', judge: { model, timeoutMs: 5_000, clock } })
      .generateScore({ description: 'Scores.', createPrompt: () => 'Score it.' })
    const failed = scorer.run(run).catch((error: unknown) => error)
    await expect.poll(() => model.callCount).toBe(1)
    await clock.advance(5_000)
    expect(await failed).toMatchObject({ code: 'scorer_failed', message: expect.stringContaining('5000 ms') as string })
  })

  it('[J1.1] has its name, version and direction, and its stages receive everything of the run', async () => {
    let seen: unknown
    const scorer = createScorer({ id: 's', name: 'Polite', description: 'd', version: '2', better: 'lower' }).generateScore(({ run: given }) => {
      seen = given
      return 0
    })
    expect(scorer).toMatchObject({ id: 's', name: 'Polite', version: '2', better: 'lower', type: 'any' })
    expect(createScorer({ id: 's', description: 'd' }).generateScore(() => 1)).toMatchObject({ name: 's', version: '1', better: 'higher' })
    const usage = { inputTokens: 1, outputTokens: 2, totalTokens: 3, reasoningTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0 }
    const whole = { ...run, runId: 'r', groundTruth: 'x', requestContext: { tenant: 'a' }, metrics: { durationMs: 5, usage, steps: 1 } }
    await scorer.run(whole)
    expect(seen).toEqual(whole)
  })

  it('[J1.4] writes the schema into the prompt with jsonPromptInjection, and a stage may have a judge of its own', async () => {
    const [model, other] = [scriptedModel([{ text: '{"score":1}' }]), scriptedModel([{ text: '{"reason":"kind"}' }])]
    const scorer = createScorer({ id: 's', description: 'd', judge: { model, jsonPromptInjection: true } })
      .generateScore({ description: 'Scores.', createPrompt: () => 'Score it.' })
      .generateReason({ description: 'Explains.', createPrompt: () => 'Why?', judge: { model: other, instructions: 'Be short.' } })
    expect(await scorer.run(run)).toMatchObject({ score: 1, reason: 'kind' })
    expect(JSON.stringify(model.calls[0]!.prompt)).toContain('maximum')
    expect(JSON.stringify(other.calls[0]!.prompt)).toContain('Be short.')
  })

  it('[J1.5] ends the call of the judge with abortSignal', async () => {
    const stop = new AbortController()
    const model = scriptedModel([{ text: '{"score":1}', hang: { parts: 0 } }])
    const ended = createScorer({ id: 's', description: 'd', judge: { model } }).generateScore({ description: 'Scores.', createPrompt: () => 'Score it.' })
      .run({ ...run, abortSignal: stop.signal }).catch((error: unknown) => error)
    await expect.poll(() => model.callCount).toBe(1)
    stop.abort(new Error('enough'))
    expect(await ended).toMatchObject({ message: 'enough' })
  })

  it('[J1.6] rejects a configuration that cannot work, by name', () => {
    const wrong = (make: () => unknown) => {
      try {
        make()
      } catch (error) {
        return error
      }
      return undefined
    }
    const draft = createScorer({ id: 's', description: 'd' })
    expect(wrong(() => createScorer({ id: '', description: 'd' }))).toMatchObject({ code: 'invalid_argument' })
    expect(wrong(() => createScorer({ id: 's', description: '' }))).toMatchObject({ code: 'invalid_argument' })
    expect(wrong(() => createScorer({ id: 's', description: 'd', better: 'more' } as never))).toMatchObject({ code: 'invalid_argument' })
    expect(wrong(() => createScorer({ id: 's', description: 'd', type: 'chat' } as never))).toMatchObject({ code: 'invalid_argument' })
    expect(wrong(() => createScorer({ id: 's', description: 'd', model: 'x' } as never))).toMatchObject({ code: 'unsupported_option' })
    expect(wrong(() => draft.generateScore('x' as never))).toMatchObject({ code: 'invalid_argument' })
    expect(wrong(() => draft.generateScore({ description: 'd', createPrompt: () => '' }))).toMatchObject({ message: expect.stringContaining('judge') as string })
    expect(wrong(() => draft.analyze({ description: 'd', createPrompt: () => '' } as never))).toMatchObject({ message: expect.stringContaining('outputSchema') as string })
    expect(wrong(() => createScorer({ id: 's', description: 'd', judge: {} as never }))).toMatchObject({ code: 'unsupported_model' })
  })
})
