import { median } from '../../harness/median.mjs'
import { expect, input } from '../../harness/side.mjs'

const words = 'The train to Bern leaves at seven from platform four and arrives before nine. '
const threadId = 'thread'
const resourceId = 'resource'

/** Messages as a store gives them, in the format that both sides read. */
function stored(count) {
  const messages = []
  for (let index = 0; index < count; index++) {
    const role = index % 2 === 0 ? 'user' : 'assistant'
    const parts = [{ type: 'text', text: `${index}. ${words.repeat(1 + (index % 5))}` }]
    if (index % 10 === 1) {
      const toolInvocation = { state: 'result', toolCallId: `call_${index}`, toolName: 'weather', args: { city: 'Bern' }, result: { rain: true, degrees: 7 } }
      parts.unshift({ type: 'step-start' }, { type: 'tool-invocation', toolInvocation }, { type: 'step-start' })
    }
    messages.push({ id: `message_${index}`, role, threadId, resourceId, createdAt: new Date(1_750_000_000_000 + index * 1_000), content: { format: 2, parts } })
  }
  return messages
}

function revive(text) {
  const messages = JSON.parse(text)
  for (const message of messages) message.createdAt = new Date(message.createdAt)
  return messages
}

/**
 * @param convert messages into a list and out as a prompt
 */
export async function conversion(convert) {
  const text = JSON.stringify(stored(input.messages))
  const times = []
  const parses = []
  for (let run = 0; run < 1 + input.warmup + input.runs; run++) {
    const began = performance.now()
    const messages = revive(text)
    const parsed = performance.now()
    const prompt = await convert(messages)
    times.push(performance.now() - parsed)
    parses.push(parsed - began)
    expectWhole(prompt)
  }
  const warm = median(times.slice(1 + input.warmup))
  const parse = median(parses.slice(1 + input.warmup))
  return { first: times[0], warm, parse, 'warm over parse': warm / parse }
}

/** Every message must have come out, and every tool call with its result behind it. */
function expectWhole(prompt) {
  const calls = Math.floor(input.messages / 10)
  expect('prompt messages', prompt.length, input.messages + 2 * calls)
  expect('tool results', prompt.filter((message) => message.role === 'tool').length, calls)
}
