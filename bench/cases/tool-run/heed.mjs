import { expect, importHeed, input, perRun, report } from '../../harness/side.mjs'
import { deltas, description, execute, inputSchema, instructions, model, question } from './script.mjs'

const { Agent, createTool } = await importHeed()
const weather = createTool({ id: 'weather', description, inputSchema, execute })
const agent = new Agent({ id: 'weather-agent', instructions, model: model(), tools: { weather } })

report(await perRun(input, async () => {
  const stream = await agent.stream(question)
  let texts = 0
  let results = 0
  for await (const chunk of stream.fullStream) {
    if (chunk.type === 'text-delta') texts++
    else if (chunk.type === 'tool-result') results++
  }
  expect('deltas', texts, deltas)
  expect('tool results', results, 1)
}))
