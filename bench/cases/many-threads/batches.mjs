import { expect, input, stopwatch } from '../../harness/side.mjs'
import { instantModel, textParts } from '../../instant-model.mjs'
import { follow } from '../../threads/follow.mjs'
import { storedMessages } from '../../threads/stored.mjs'

const answer = textParts(10)

export const model = instantModel(() => answer)

/** Batches of new threads; the first one warms up. */
export async function batches({ agent, memory }) {
  let cpu = 0
  let wall = 0
  for (let batch = 0; batch < input.batches; batch++) {
    const targets = Array.from({ length: input.threads }, (_, index) => ({ threadId: `thread-${batch}-${index}`, resourceId: 'resource' }))
    const threads = []
    for (const target of targets) threads.push(follow(await agent.subscribeToThread(target)))
    const finishes = threads.map((thread) => thread.finish())
    const stop = stopwatch()
    for (const target of targets) agent.sendMessage('Hello', target)
    await Promise.all(finishes)
    const spent = stop()
    for (const thread of threads) thread.close()
    for (const target of targets) expect(`messages of ${target.threadId}`, (await storedMessages(memory, target)).length, 2)
    if (batch === 0) continue
    cpu += spent.cpu
    wall += spent.wall
  }
  const turns = input.threads * (input.batches - 1)
  return { 'turns/s': turns / (wall / 1_000), cpu: cpu / turns }
}
