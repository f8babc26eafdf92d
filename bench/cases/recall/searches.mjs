import { median } from '../../harness/median.mjs'
import { expect, input, stopwatch } from '../../harness/side.mjs'

const resourceId = 'resource'
const dimension = 384
const ofThread = 500
let seed = 1
const chance = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647
const word = () => `word${Math.floor(chance() ** 3 * 5_000).toString(36)}`
const words = (count) => Array.from({ length: count }, word).join(' ')

/** A vector that depends on the text alone, in as little time as numbers can be made. */
function vectorOf(text) {
  let state = 7
  for (let at = 0; at < text.length; at += 1) state = (Math.imul(state, 31) + text.charCodeAt(at)) | 0
  return Array.from({ length: dimension }, () => (state = (Math.imul(state, 1_103_515_245) + 12_345) | 0) / 2 ** 31)
}

export const embedder = {
  specificationVersion: 'v2',
  provider: 'bench',
  modelId: 'made-up',
  maxEmbeddingsPerCall: 512,
  supportsParallelCalls: true,
  doEmbed: async ({ values }) => ({ embeddings: values.map(vectorOf), usage: { tokens: 0 }, warnings: [] }),
}

export const semanticRecall = { topK: 4, messageRange: 0, scope: 'resource' }

/** Saves messages until all have vectors, and searches. `embedded` answers how many have one. */
export async function searches(memory, { atOnce, embedded }) {
  const { messages: count } = input
  const saving = stopwatch()
  for (let from = 0; from < count; from += atOnce) {
    const threadId = `thread-${Math.floor(from / ofThread)}`
    if (from % ofThread === 0) await memory.createThread({ threadId, resourceId })
    await memory.saveMessages({
      messages: Array.from({ length: atOnce }, (_, n) => ({
        id: `m${from + n}`, threadId, resourceId, role: n % 2 === 0 ? 'user' : 'assistant', createdAt: new Date(1_700_000_000_000 + (from + n) * 1_000),
        content: { format: 2, parts: [{ type: 'text', text: words(18) }] },
      })),
    })
  }
  while ((await embedded()) < count) await new Promise((resolve) => setTimeout(resolve, 20))
  const saved = saving()
  expect('messages with vectors', await embedded(), count)

  const search = async () => {
    const stop = stopwatch()
    const { messages } = await memory.recall({ threadId: 'thread-0', resourceId, vectorSearchString: words(6), perPage: 4 })
    const spent = stop()
    if (messages.length < 4) throw new Error(`a search found ${messages.length} messages`)
    return spent
  }
  const first = await search()
  for (let nth = 0; nth < input.warmup; nth += 1) await search()
  const spent = []
  for (let nth = 0; nth < input.searches; nth += 1) spent.push(await search())
  return {
    'message, cpu': saved.cpu / count, 'message, wall': saved.wall / count,
    'search, cpu': median(spent.map(({ cpu }) => cpu)), 'search, wall': median(spent.map(({ wall }) => wall)), 'first search, wall': first.wall, 'first search, cpu': first.cpu,
  }
}
