import { Agent } from '@mastra/core/agent'
import { createTool } from '@mastra/core/tools'
import { input, report } from '../../harness/side.mjs'
import { description, execute, inputSchema, instructions, question } from '../tool-run/script.mjs'
import { growth } from './growth.mjs'

const weather = createTool({ id: 'weather', description, inputSchema, execute })

report(await growth('peer', async (model) => {
  const agent = new Agent({ id: 'weather-agent', name: 'weather-agent', instructions, model, tools: { weather } })
  const stream = await agent.stream(question, { maxSteps: input.steps + 1 })
  for await (const _ of stream.fullStream);
}))
