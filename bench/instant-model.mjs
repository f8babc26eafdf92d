/**
 * A language model as a plain object, that answers at once and doesn't look at its prompt. All sides of a benchmark use this one, so
 * that what differs is the loop around it.
 *
 * @param answer the parts to say, for the number of the call
 */
export function instantModel(answer, { specificationVersion = 'v4', onCall = () => {} } = {}) {
  let calls = 0
  return {
    specificationVersion,
    provider: 'instant',
    modelId: 'instant',
    supportedUrls: {},
    async doStream() {
      const index = calls++
      onCall(index)
      return { stream: streamOf(answer(index)) }
    },
    async doGenerate() {
      throw new Error('The benchmarks only stream.')
    },
  }
}

function streamOf(parts) {
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part)
      controller.close()
    },
  })
}

const usage = {
  inputTokens: { total: 100, noCache: 100, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 50, text: 50, reasoning: 0 },
}

/** An answer of `deltas` pieces of text. */
export function textParts(deltas) {
  const said = []
  for (let index = 0; index < deltas; index++) said.push({ type: 'text-delta', id: 'text', delta: `word ${index} ` })
  return [...opening(), { type: 'text-start', id: 'text' }, ...said, { type: 'text-end', id: 'text' }, finish('stop')]
}

/** One call of the tool `weather`. */
export function callParts(index) {
  const id = `call_${index}`
  const args = JSON.stringify({ city: 'Bern' })
  return [
    ...opening(),
    { type: 'tool-input-start', id, toolName: 'weather' },
    { type: 'tool-input-delta', id, delta: args },
    { type: 'tool-input-end', id },
    { type: 'tool-call', toolCallId: id, toolName: 'weather', input: args },
    finish('tool-calls'),
  ]
}

function opening() {
  return [{ type: 'stream-start', warnings: [] }, { type: 'response-metadata', id: 'response', modelId: 'instant', timestamp: new Date(0) }]
}

function finish(reason) {
  return { type: 'finish', finishReason: { unified: reason, raw: reason }, usage }
}
