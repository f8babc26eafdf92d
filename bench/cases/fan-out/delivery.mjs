import { median } from '../../harness/median.mjs'
import { expect, input, stopwatch } from '../../harness/side.mjs'
import { instantModel, textParts } from '../../instant-model.mjs'
import { follow } from '../../threads/follow.mjs'

const said = textParts(input.chunks)

export const model = instantModel(() => said)

/** Runs for each number of subscribers, each on a thread of its own; one before them, to warm up. */
export async function delivery({ agent }) {
  await deliver(agent, { threadId: 'warm-up', resourceId: 'resource' }, 1)
  const sample = {}
  for (const { subscribers, runs } of input.audiences) {
    const spent = []
    for (let run = 0; run < runs; run++) {
      spent.push(await deliver(agent, { threadId: `thread-${subscribers}-${run}`, resourceId: 'resource' }, subscribers))
    }
    sample[`chunks/s to ${subscribers}`] = input.chunks / (median(spent.map(({ wall }) => wall)) / 1_000)
    sample[`cpu to ${subscribers}`] = (median(spent.map(({ cpu }) => cpu)) * 1_000) / input.chunks
  }
  return sample
}

async function deliver(agent, target, subscribers) {
  const seen = new Array(subscribers).fill(0)
  const followers = []
  for (let index = 0; index < subscribers; index++) {
    followers.push(follow(await agent.subscribeToThread(target), (chunk) => {
      if (chunk.type === 'text-delta') seen[index]++
    }))
  }
  const finishes = followers.map((follower) => follower.finish())
  const stop = stopwatch()
  agent.sendMessage('Go on', target)
  await Promise.all(finishes)
  const spent = stop()
  for (const follower of followers) follower.close()
  for (const [index, count] of seen.entries()) expect(`chunks of subscriber ${index}`, count, input.chunks)
  return spent
}
