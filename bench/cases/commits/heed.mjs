import { StatementSync } from 'node:sqlite'
import { expect, input, report } from '../../harness/side.mjs'
import { instantModel, textParts } from '../../instant-model.mjs'
import { heedAgent } from '../../threads/heed.mjs'
import { storedMessages } from '../../threads/stored.mjs'

const times = timedTransactions()
const answer = textParts(10)
const { agent, memory } = await heedAgent(instantModel(() => answer))
const targets = Array.from({ length: input.threads }, (_, index) => ({ threadId: `thread-${index}`, resourceId: 'resource' }))

const turn = (target) => agent.stream('Hello', { memory: { thread: target.threadId, resource: target.resourceId } }).then((stream) => stream.text)
const turns = async (count) => {
  await Promise.all(targets.map(async (target) => {
    for (let index = 0; index < count; index++) await turn(target)
  }))
}

await turns(input.warmup)
times.length = 0
await turns(input.turns)
const at = (measure, share) => {
  const sorted = times.map((time) => time[measure]).toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
}
expect('messages', (await storedMessages(memory, targets[0])).length, 2 * (input.warmup + input.turns))
report({
  p50: at('wall', 0.5), 'p99.9': at('wall', 0.999), longest: at('wall', 1),
  'p50, cpu': at('cpu', 0.5), 'p99.9, cpu': at('cpu', 0.999), 'longest, cpu': at('cpu', 1),
  transactions: times.length,
})

/** The time of every transaction of this process that writes. */
function timedTransactions() {
  const taken = []
  const { run } = StatementSync.prototype
  let began
  StatementSync.prototype.run = function (...values) {
    const text = this.sourceSQL
    if (text === 'BEGIN IMMEDIATE') began = { wall: performance.now(), cpu: process.threadCpuUsage() }
    try {
      return run.apply(this, values)
    } finally {
      if (text === 'COMMIT' && began !== undefined) {
        const { user, system } = process.threadCpuUsage(began.cpu)
        taken.push({ wall: performance.now() - began.wall, cpu: (user + system) / 1_000 })
        began = undefined
      }
    }
  }
  return taken
}
