import { median } from '../../harness/median.mjs'
import { expect, importHeed, input, report, stopwatch } from '../../harness/side.mjs'
import { instantModel, textParts } from '../../instant-model.mjs'
import { fill } from '../../threads/conversation.mjs'
import { newDatabase } from '../../threads/database.mjs'

const { Agent, Heed, Memory } = await importHeed()
const { LibSQLStore } = await importHeed('libsql')
const answer = textParts(1)
const agent = new Agent({ id: 'listener', instructions: 'You answer.', model: instantModel(() => answer), memory: new Memory({ lastMessages: 10, semanticRecall: false }) })
const heed = new Heed({ agents: { agent }, storage: new LibSQLStore({ url: newDatabase() }) })
await heed.start()
const memory = await agent.getMemory()
const threads = input.sizes.map((size, index) => ({ size, target: { threadId: `thread-${index}`, resourceId: 'resource' }, cpu: 0, walls: [] }))
for (const { size, target } of threads) await fill(memory, target, size)

async function turn({ target }) {
  const { text } = await agent.generate('Hello', { memory: { thread: target.threadId, resource: target.resourceId } })
  if (text === '') throw new Error('no answer')
}
for (let index = 0; index < input.warmup; index++) for (const thread of threads) await turn(thread)
for (let index = 0; index < input.turns; index++) {
  for (const thread of threads) {
    const stop = stopwatch()
    await turn(thread)
    const { cpu, wall } = stop()
    thread.cpu += cpu
    thread.walls.push(wall)
  }
}
const { messages } = await memory.recall({ ...threads.at(-1).target, perPage: 1 })
expect('role of the last message', messages[0]?.role, 'assistant')
const [short, middle, long] = threads.map(({ cpu, walls }) => ({ cpu: cpu / input.turns, wall: median(walls) }))
report({
  'cpu, shortest': short.cpu, 'cpu, middle': middle.cpu, 'cpu, longest': long.cpu,
  'wall, shortest': short.wall, 'wall, middle': middle.wall, 'wall, longest': long.wall,
  'cpu, longest over shortest': long.cpu / short.cpu,
  'cpu, middle over shortest': middle.cpu / short.cpu,
  'wall, longest over shortest': long.wall / short.wall,
})
