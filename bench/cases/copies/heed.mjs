import { expect, input, report, stopwatch } from '../../harness/side.mjs'
import { watchStalls } from '../../harness/stalls.mjs'
import { instantModel, textParts } from '../../instant-model.mjs'
import { conversation, fill } from '../../threads/conversation.mjs'
import { heedAgent } from '../../threads/heed.mjs'

const answer = textParts(1)
const { memory } = await heedAgent(instantModel(() => answer))
const resourceId = 'resource'

async function measured(act) {
  const stalls = watchStalls()
  const stop = stopwatch()
  await act()
  const { wall, cpu } = stop()
  const { own, wall: longest } = stalls()
  return { wall, cpu, stall: own, longest }
}

await fill(memory, { threadId: 'long', resourceId }, input.messages)
await memory.cloneThread({ sourceThreadId: 'long', newThreadId: 'warm', options: { messageLimit: 10 }, readMessages: false })
const clone = await measured(() => memory.cloneThread({ sourceThreadId: 'long', newThreadId: 'copy', readMessages: false }))
const { messages } = await memory.recall({ threadId: 'copy', perPage: 1 })
expect('last message of the copy', messages[0]?.id, `long-${input.messages - 1}`)

const ids = Array.from({ length: 10 }, (_, index) => `short-${index}`)
for (const threadId of ids) await fill(memory, { threadId, resourceId }, 200)
const mixed = await measured(() => Promise.all(Array.from({ length: input.writes }, (_, index) => {
  const threadId = ids[index % ids.length]
  if (index % 4 === 0) return memory.cloneThread({ sourceThreadId: threadId, newThreadId: `copy-${index}` })
  if (index % 4 === 1) return memory.deleteMessages({ threadId, messageIds: [`${threadId}-${index}`] })
  return memory.saveMessages({ messages: conversation(5, { from: 1_000 + index * 5, threadId, resourceId }) })
})))
const stored = await memory.listThreads({ filter: { resourceId }, perPage: false })
expect('threads', stored.threads.length, 3 + ids.length + input.writes / 4)
report({
  'clone, wall': clone.wall, 'clone, cpu': clone.cpu, 'clone, stall': clone.stall, 'clone, stall with the wait for a processor': clone.longest,
  'mixed, wall': mixed.wall, 'mixed, cpu': mixed.cpu, 'mixed, stall': mixed.stall, 'mixed, stall with the wait for a processor': mixed.longest,
})
