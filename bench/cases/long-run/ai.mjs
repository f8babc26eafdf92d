import { isStepCount, streamText, tool } from 'ai'
import { input, report } from '../../harness/side.mjs'
import { description, execute, inputSchema, instructions, question } from '../tool-run/script.mjs'
import { growth } from './growth.mjs'

const tools = { weather: tool({ description, inputSchema, execute }) }

report(await growth('ai', async (model) => {
  const result = streamText({ model, instructions, prompt: question, tools, stopWhen: isStepCount(input.steps + 1) })
  for await (const _ of result.fullStream);
}))
