import { expect, importHeed, input, report, stopwatch } from '../../harness/side.mjs'
import { instantModel, textParts } from '../../instant-model.mjs'
import { newDatabase } from '../../threads/database.mjs'
import { follow } from '../../threads/follow.mjs'
import { storedMessages } from '../../threads/stored.mjs'

const { Agent, Heed } = await importHeed()
const { LibSQLStore } = await importHeed('libsql')

const answer = textParts(10)
const model = instantModel(() => answer)
const ten = (make) => Array.from({ length: 10 }, (_, index) => make(`nothing-${index}`))
const quiet = ten((id) => ({ id, processInput() {}, processInputStep() {}, processOutputStep() {}, processOutputResult() {} }))
const later = ten((id) => ({ id, async processInput() {}, async processInputStep() {}, async processOutputStep() {}, async processOutputResult() {} }))
const streaming = ten((id) => ({ id, processInput() {}, processInputStep() {}, processOutputStep() {}, processOutputResult() {}, processOutputStream: ({ part }) => part }))
const kinds = { none: [], ten: quiet, async: later, streaming }

// Each kind has two agents, one that was made before those of the others and one after them: what is made first has the better places in memory.
const agents = {}
for (const kind of ['none', 'ten', 'async', 'streaming', 'streaming', 'async', 'ten', 'none']) {
  const id = kind in agents ? `${kind}-again` : kind
  agents[id] = new Agent({ id, instructions: 'You answer.', model, inputProcessors: kinds[kind], outputProcessors: kinds[kind] })
}
const heed = new Heed({ agents, storage: new LibSQLStore({ url: newDatabase() }) })
await heed.start()

const sides = []
for (const [name, agent] of Object.entries(agents)) {
  const target = { threadId: name, resourceId: 'resource' }
  sides.push({ kind: name.replace('-again', ''), name, agent, target, thread: follow(await agent.subscribeToThread(target)) })
}

async function turns({ agent, target, thread }, count) {
  for (let index = 0; index < count; index++) {
    const finished = thread.finish()
    agent.sendMessage(`Message ${index}`, target)
    await finished
  }
}

// A side also pays for collecting garbage of the side before it. So each side follows each of its neighbors equally often, and is first as
// often as it is last.
function inOrder(block) {
  const start = Math.floor(block / 2) % sides.length
  const order = [...sides.slice(start), ...sides.slice(0, start)]
  return block % 2 === 0 ? order : order.reverse()
}

for (let done = 0; done < input.warmup; done += input.turns) for (const side of inOrder(done / input.turns)) await turns(side, input.turns)
const spent = { none: 0, ten: 0, async: 0, streaming: 0 }
for (let block = 0; block < input.blocks; block++) {
  for (const side of inOrder(block)) {
    const stop = stopwatch()
    await turns(side, input.turns)
    spent[side.kind] += stop().cpu
  }
}
for (const { name, agent, target } of sides) {
  expect(`messages with ${name}`, (await storedMessages(await agent.getMemory(), target)).length, 2 * (input.warmup + input.blocks * input.turns))
}
const sample = Object.fromEntries(Object.entries(spent).map(([kind, cpu]) => [kind, cpu / (2 * input.blocks * input.turns)]))
report({ ...sample, 'ten over none': sample.ten / sample.none, 'async over none': sample.async / sample.none, 'streaming over none': sample.streaming / sample.none })
