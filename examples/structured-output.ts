// Structured output: an answer as a value of a schema's type, asked for again when it doesn't fit.
import { Agent, type ModelConfig } from 'heed'
import { scriptedModel } from 'heed/testing'
import { z } from 'zod'

const ticket = z.object({
  title: z.string(),
  severity: z.enum(['low', 'high']),
  components: z.array(z.string()),
})

const script = () =>
  scriptedModel([
    '{ "title": "Export fails", "severity": "urgent", "components": ["export"] }',
    '{ "title": "Export fails", "severity": "high", "components": ["export"] }',
  ])

export async function main(model: ModelConfig = script()) {
  const triage = new Agent({ id: 'triage', instructions: 'Turn what people report into tickets.', model })
  const { object, steps } = await triage.generate('Nobody can export anything since this morning!', {
    structuredOutput: { schema: ticket },
  })
  // `object` is { title: string; severity: 'low' | 'high'; components: string[] }.
  return { severity: object.severity, components: object.components, steps: steps.length }
}

if (import.meta.main) console.log(await main(process.env.OPENAI_API_KEY ? 'openai/gpt-5.5' : undefined))
