// Scorers: an agent is evaluated on three questions, by its words, by its tools and by a judge.
import { Agent, createTool, type ModelConfig } from 'heed'
import { createAnswerRelevancyScorer, createKeywordCoverageScorer, createScorer, createToolCallAccuracyScorer, runEvals, textOf } from 'heed/scorers'
import { scriptedModel } from 'heed/testing'
import { z } from 'zod'

const weather = createTool({
  id: 'weather', description: 'The weather in a city.', inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => `21 degrees in ${city}`,
})
const look = (city: string) => ({ toolCalls: [{ toolName: 'weather', input: { city } }] })
const verdicts = (...given: string[]) => JSON.stringify({ findings: given.map((verdict) => ({ text: 'It is 21 degrees.', verdict, why: 'It is about the weather.' })) })

/** A scorer of your own: it needs no model. */
const short = createScorer({ id: 'short', description: 'The answer has at most ten words.' })
  .analyze(({ run }) => textOf(run.output).split(/\s+/).length)
  .generateScore(({ results }) => (results.analyzeStepResult <= 10 ? 1 : 10 / results.analyzeStepResult))
  .generateReason(({ results }) => `The answer has ${results.analyzeStepResult} words.`)

export async function main(given?: ModelConfig, print: (text: string) => void = console.log) {
  const model = given ?? scriptedModel([
    look('Sintra'), 'The weather in Sintra is fine: 21 degrees.', look('Porto'), 'The weather in Porto: 21 degrees.', 'I do not know the weather in Faro.',
  ])
  const judge = given ?? scriptedModel([verdicts('yes'), verdicts('yes'), verdicts('no')])
  const agent = new Agent({ id: 'guide', instructions: 'You answer in one sentence.', model, tools: { weather } })
  const result = await runEvals({
    target: agent,
    data: ['Sintra', 'Porto', 'Faro'].map((city) => ({ id: city, input: `How is the weather in ${city}?` })),
    scorers: [
      short,
      createKeywordCoverageScorer(),
      createToolCallAccuracyScorer({ expectedTools: ['weather'] }),
      { scorer: createAnswerRelevancyScorer({ model: judge }), threshold: 0.6 },
    ],
    onItemComplete: ({ id, scores }) => print(`${id}: ${Object.entries(scores).map(([scorer, score]) => `${scorer} ${score.toFixed(2)}`).join(', ')}`),
  })
  print(`${result.verdict}: answer-relevancy is ${result.scores['answer-relevancy']?.toFixed(2)}`)
  return result
}

if (import.meta.main) await main()
