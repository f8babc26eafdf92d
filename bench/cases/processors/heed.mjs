import { median } from '../../harness/median.mjs'
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
const streaming = ten((id) => ({ id, processInput() {}, processInputStep() {}, processOutputStep() {}, processOutputResult() {}, processOutputStream: ({ part }) => part }))
const agentWith = (id, processors) => new Agent({ id, instructions: 'You answer.', model, inputProcessors: processors, outputProcessors: processors })
const agents = { none: agentWith('none', []), ten: agentWith('ten', quiet), streaming: agentWith('streaming', streaming) }
const heed = new Heed({ agents, storage: new LibSQLStore({ url: newDatabase() }) })
await heed.start()

const sides = []
for (const [name, agent] of Object.entries(agents)) {
  const target = { threadId: name, resourceId: 'resource' }
  sides.push({ name, agent, target, thread: follow(await agent.subscribeToThread(target)), spent: [] })
}

async function turns({ agent, target, thread }, count) {
  for (let index = 0; index < count; index++) {
    const finished = thread.finish()
    agent.sendMessage(`Message ${index}`, target)
    await finished
  }
}

// Whoever comes after another has some of its garbage collected: none always has the same before it.
const orders = [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1], [2, 0, 1], [1, 0, 2]]
const inOrder = (block) => orders[block % orders.length].map((index) => sides[index])

for (let done = 0; done < input.warmup; done += input.turns) for (const side of inOrder(done / input.turns)) await turns(side, input.turns)
for (let block = 0; block < input.blocks; block++) {
  for (const side of inOrder(block)) {
    const stop = stopwatch()
    await turns(side, input.turns)
    side.spent.push(stop().cpu / input.turns)
  }
}
const sample = {}
for (const { name, agent, target, spent } of sides) {
  expect(`messages with ${name}`, (await storedMessages(await agent.getMemory(), target)).length, 2 * (input.warmup + input.blocks * input.turns))
  sample[name] = median(spent)
}
report({ ...sample, 'ten over none': sample.ten / sample.none, 'streaming over none': sample.streaming / sample.none })
