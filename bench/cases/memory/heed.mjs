import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, input, report } from '../../harness/side.mjs'
import { instantModel, textParts } from '../../instant-model.mjs'
import { heedAgent } from '../../threads/heed.mjs'
import { storedMessages } from '../../threads/stored.mjs'

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc')

const answer = textParts(1)
const { agent, memory } = await heedAgent(instantModel(() => answer))
const target = (index) => ({ threadId: `thread-${index}`, resourceId: `resource-${index % 100}` })

/** Wakes threads in groups; each group is over when all its runs are stored. */
async function wake(from, to) {
  for (let start = from; start < to; start += input.atOnce) {
    const group = Array.from({ length: Math.min(input.atOnce, to - start) }, (_, index) => target(start + index))
    const streams = await Promise.all(group.map(({ threadId, resourceId }) => agent.stream('Hello', { memory: { thread: threadId, resource: resourceId } })))
    await Promise.all(streams.map((stream) => stream.text))
  }
}

/** What is held after a plain collection, and after one that also gives back what V8 reserved and doesn't use. */
async function held() {
  const plain = await after(() => gc())
  const { rss, heap } = await after(() => gc({ type: 'major', execution: 'sync', flavor: 'last-resort' }))
  return { plain: plain.rss, rss, heap }
}

async function after(collect) {
  // Some of it goes in steps.
  for (let round = 0; round < 5; round++) {
    collect()
    await new Promise((resolve) => setImmediate(resolve))
  }
  const { rss, heapUsed } = process.memoryUsage()
  return { rss: rss / 2 ** 20, heap: heapUsed / 2 ** 20 }
}

await wake(0, input.first)
const early = await held()
await wake(input.first, input.threads)
const late = await held()
for (const index of [0, input.threads - 1]) expect(`messages of thread ${index}`, (await storedMessages(memory, target(index))).length, 2)
report({
  'rss first': early.rss, 'rss all': late.rss, 'rss grown': late.rss - early.rss,
  'rss first, plain gc': early.plain, 'rss all, plain gc': late.plain, 'rss grown, plain gc': late.plain - early.plain,
  'heap first': early.heap, 'heap all': late.heap, 'heap grown': late.heap - early.heap,
})
