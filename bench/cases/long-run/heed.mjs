import { importHeed, input, report } from '../../harness/side.mjs'
import { description, execute, inputSchema, instructions, question } from '../tool-run/script.mjs'
import { growth } from './growth.mjs'

const { Agent, createTool } = await importHeed()
const weather = createTool({ id: 'weather', description, inputSchema, execute })

report(await growth('heed', async (model) => {
  const agent = new Agent({ id: 'weather-agent', instructions, model, tools: { weather } })
  const stream = await agent.stream(question, { maxSteps: input.steps + 1 })
  for await (const _ of stream.fullStream);
}))
