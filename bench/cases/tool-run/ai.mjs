import { isStepCount, streamText, tool } from 'ai'
import { expect, input, perRun, report } from '../../harness/side.mjs'
import { deltas, description, execute, inputSchema, instructions, model, question } from './script.mjs'

const instant = model()
const tools = { weather: tool({ description, inputSchema, execute }) }

report(await perRun(input, async () => {
  const result = streamText({ model: instant, instructions, prompt: question, tools, stopWhen: isStepCount(5) })
  let texts = 0
  let results = 0
  for await (const part of result.fullStream) {
    if (part.type === 'text-delta') texts++
    else if (part.type === 'tool-result') results++
  }
  expect('deltas', texts, deltas)
  expect('tool results', results, 1)
}))
