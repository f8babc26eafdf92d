import { median } from '../../harness/median.mjs'
import { expect, input, stopwatch } from '../../harness/side.mjs'
import { instantModel, textParts } from '../../instant-model.mjs'
import { follow } from '../../threads/follow.mjs'
import { storedMessages } from '../../threads/stored.mjs'

const target = { threadId: 'thread', resourceId: 'resource' }
const answer = textParts(10)

export const model = instantModel(() => answer)

/** One message after the other, each sent when the run before it is over. */
export async function turns({ agent, memory }) {
  let firstChunkAt
  const thread = follow(await agent.subscribeToThread(target), () => {
    firstChunkAt ??= performance.now()
  })
  const turn = async (index) => {
    const finished = thread.finish()
    firstChunkAt = undefined
    const sentAt = performance.now()
    agent.sendMessage(`Message ${index}`, target)
    await finished
    return { wall: performance.now() - sentAt, first: firstChunkAt - sentAt }
  }
  for (let index = 0; index < input.warmup; index++) await turn(index)
  const times = []
  const stop = stopwatch()
  for (let index = 0; index < input.turns; index++) times.push(await turn(index))
  const { cpu } = stop()
  expect('stored messages', (await storedMessages(memory, target)).length, 2 * (input.warmup + input.turns))
  return { wall: median(times.map(({ wall }) => wall)), cpu: cpu / input.turns, 'first chunk': median(times.map(({ first }) => first)) }
}
