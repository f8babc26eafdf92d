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

const marks = []
for (const mark of input.marks) {
  await wake(marks.at(-1)?.mark ?? 0, mark)
  marks.push({ mark, ...(await held()) })
}
for (const index of [0, input.marks.at(-1) - 1]) expect(`messages of thread ${index}`, (await storedMessages(memory, target(index))).length, 2)

const [first] = marks
const last = marks.at(-1)
report({
  ...Object.fromEntries(marks.map(({ mark, rss }) => [`rss after ${mark.toLocaleString('en')}`, rss])),
  'rss grown': last.rss - first.rss,
  ...Object.fromEntries(marks.map(({ mark, heap }) => [`heap after ${mark.toLocaleString('en')}`, heap])),
  'heap grown': last.heap - first.heap,
  ...Object.fromEntries(marks.map(({ mark, plain }) => [`rss after ${mark.toLocaleString('en')}, plain gc`, plain])),
  'rss grown, plain gc': last.plain - first.plain,
})
