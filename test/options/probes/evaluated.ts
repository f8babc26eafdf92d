import { expect } from 'vitest'
import type { GroundedScorerOptions, Scorer } from '../../../src/scorers/index.ts'
import type { Processor } from '../../../src/index.ts'
import { open, type Probe } from '../probe.ts'
import { scorers, testing } from '../walked.ts'

const { scriptedModel, virtualClock } = testing

// For lists of findings, and for a choice.
const listed = JSON.stringify({ findings: [{ text: 't', verdict: 'yes', why: 'w' }] })
const chosen = JSON.stringify({ choice: 'yes', why: 'w' })
const user = { id: 'q', role: 'user' as const, createdAt: new Date(0), content: { format: 2 as const, parts: [{ type: 'text' as const, text: 'Is it warm?' }] } }
const input = { inputMessages: [user], rememberedMessages: [user], systemMessages: ['Answer in one sentence.'] }

/** The scorers with a judge; those of sources take a context. */
const judged: Record<string, (options: GroundedScorerOptions) => Scorer> = {
  createAnswerRelevancyScorer: (options) => scorers.createAnswerRelevancyScorer(options),
  createBiasScorer: (options) => scorers.createBiasScorer(options),
  createFaithfulnessScorer: (options) => scorers.createFaithfulnessScorer(options),
  createHallucinationScorer: (options) => scorers.createHallucinationScorer(options),
  createClassifierScorer: (options) => scorers.createClassifierScorer({ ...options, id: 'c', description: 'd', question: 'q', choices: { yes: 1, no: 0 } }),
  createPromptAlignmentScorer: (options) => scorers.createPromptAlignmentScorer(options),
  createToxicityScorer: (options) => scorers.createToxicityScorer(options),
}
const grounded = ['createFaithfulnessScorer', 'createHallucinationScorer']

export const evaluations: Probe[] = [
  ...Object.entries(judged).map(([name, create]) => ({
    title: `${name}: its judge`,
    async run() {
      const finding = name === 'createClassifierScorer' ? chosen : listed
      const model = scriptedModel([finding])
      const context = grounded.includes(name) ? { context: ['Sintra is in Portugal.'] } : {}
      await create({ model, instructions: 'Be strict.', jsonPromptInjection: true, ...context }).run({ input, output: 'It is warm.' })
      const prompt = JSON.stringify(model.calls[0]?.prompt)
      for (const text of ['Be strict.', 'JSON Schema', ...(context.context ?? [])]) expect(prompt).toContain(text)
      const refuses = { id: 'refuses', processInput: ({ abort }: { abort: (reason: string) => never }) => abort('not to be read') }
      await expect(create({ model: scriptedModel([finding]), inputProcessors: [refuses] }).run({ input, output: 'It is warm.' })).rejects.toThrow('not to be read')
      let asked = 0
      const again: Processor = { id: 'again', processOutputStep: ({ abort, messages }) => (asked++ % 2 === 0 ? abort('once more', { retry: true }) : messages) }
      expect((await create({ model: scriptedModel([finding, finding]), outputProcessors: [again] }).run({ input, output: 'It is warm.' })).score).toBe(1)
      expect(asked).toBe(2)
      await expect(create({ model: scriptedModel([finding]), outputProcessors: [again], maxProcessorRetries: 0 }).run({ input, output: 'It is warm.' })).rejects.toThrow('once more')
      const clock = virtualClock()
      const late = create({ model: scriptedModel([{ text: finding, hang: true }]), timeoutMs: 1_000, clock }).run({ input, output: 'It is warm.' }).catch((error: unknown) => error)
      await expect.poll(() => clock.pending).toBe(1)
      await clock.advance(1_000)
      expect(JSON.stringify(await late)).toContain('within 1000 ms')
    },
  })),
  {
    title: 'runEvals: the callback of an aborted case',
    async run() {
      const stop = new AbortController()
      let aborted = 0
      const { agent } = open({}, () => (stop.abort(), { text: 'Long.', hang: true }))
      const targetOptions = { onAbort: () => void aborted++ }
      await scorers.runEvals({ target: agent, data: [{ input: 'Go.' }], scorers: [() => ({ name: 'any', score: 1 })], targetOptions, abortSignal: stop.signal }).catch(() => {})
      expect(aborted).toBe(1)
    },
  },
]
