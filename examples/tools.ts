// Tools: typed by their schemas, run side by side, with errors that the model can correct.
import { Agent, createTool, type ModelConfig } from 'heed'
import { scriptedModel } from 'heed/testing'
import { z } from 'zod'

const forecasts: Record<string, number> = { Bern: 14, Oslo: 6 }

const weather = createTool({
  id: 'weather',
  description: "Tomorrow's temperature in a city, in degrees Celsius.",
  inputSchema: z.object({ city: z.string() }),
  outputSchema: z.object({ city: z.string(), celsius: z.number() }),
  // Asking twice does no harm: after a crash this tool may run again.
  idempotent: true,
  timeoutMs: 5_000,
  execute({ city }) {
    const celsius = forecasts[city]
    // What is thrown goes to the model, not to you.
    if (celsius === undefined) throw new Error(`There is no forecast for ${city}. Known: ${Object.keys(forecasts).join(', ')}.`)
    return { city, celsius }
  },
  // The model reads this in place of the JSON.
  toModelOutput: ({ city, celsius }) => ({ type: 'text', value: `${city}: ${celsius} °C` }),
})

const script = () =>
  scriptedModel([
    { toolCalls: [{ toolName: 'weather', input: { city: 'Berne' } }, { toolName: 'weather', input: { city: 'Oslo' } }] },
    { toolCalls: [{ toolName: 'weather', input: { city: 'Bern' } }] },
    'Bern will be warmer: 14 °C against 6 °C in Oslo.',
  ])

export async function main(model: ModelConfig = script()) {
  const forecaster = new Agent({ id: 'forecaster', instructions: 'Look it up before you answer.', model, tools: { weather } })
  const stream = await forecaster.stream('Where is it warmer tomorrow, in Berne or in Oslo?')

  const log: string[] = []
  for await (const chunk of stream.fullStream) {
    if (chunk.type === 'tool-error') log.push(chunk.payload.error.message)
    if (chunk.type === 'tool-result') log.push(JSON.stringify(chunk.payload.result))
  }
  const { text, toolResults, steps } = await stream.result
  // `result` has the type of the tool's output; of a call that failed it is the text that the model received.
  const known = toolResults.flatMap(({ isError, result }) => (isError ? [] : result.city))
  return { text, known, steps: steps.length, log }
}

if (import.meta.main) console.log(await main(process.env.OPENAI_API_KEY ? 'openai/gpt-5.5' : undefined))
