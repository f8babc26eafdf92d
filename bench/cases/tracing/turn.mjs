import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect, heedEntry } from '../../harness/side.mjs'
import { deltas, description, execute, inputSchema, instructions, model, question } from '../tool-run/script.mjs'

/** The build as it is installed; `constant`: a copy of it in which the look for an SDK is a constant that finds none. */
async function build(constant) {
  const entry = fileURLToPath(heedEntry())
  if (!constant) return import(pathToFileURL(entry).href)
  const parts = readFileSync(entry, 'utf8').split('function openTelemetry() {')
  expect('places that look for an SDK', parts.length, 2)
  const file = join(dirname(entry), 'without.js')
  writeFileSync(file, parts.join('function openTelemetry() {\n\treturn undefined;'))
  return import(pathToFileURL(file).href)
}

/** Does one run of two steps with a tool, on a thread of its own. */
export async function turnOf({ constant = false } = {}) {
  const { Agent, Heed, InMemoryStore, createTool } = await build(constant)
  const weather = createTool({ id: 'weather', description, inputSchema, execute })
  const agent = new Agent({ id: 'weather-agent', instructions, model: model(), tools: { weather } })
  new Heed({ agents: { agent }, storage: new InMemoryStore() })
  let thread = 0
  return async () => {
    const stream = await agent.stream(question, { memory: { thread: `thread-${thread++}`, resource: 'r' } })
    let texts = 0
    for await (const chunk of stream.fullStream) if (chunk.type === 'text-delta') texts++
    expect('deltas', texts, deltas)
    await stream.result
    // Nothing here ever waits: without a pause no timer would come, and no lease be renewed.
    await new Promise((resolve) => setImmediate(resolve))
  }
}
