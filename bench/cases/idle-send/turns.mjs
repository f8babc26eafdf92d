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
  let sent = 0
  const measured = async (count) => {
    const times = []
    const stop = stopwatch()
    for (let index = 0; index < count; index++) times.push(await turn(sent++))
    const { cpu, wall } = stop()
    return { times, cpu: cpu / count, wall: wall / count }
  }
  const cold = await measured(input.cold)
  while (sent < input.warmup) await turn(sent++)
  const warm = await measured(input.turns)
  expect('stored messages', (await storedMessages(memory, target)).length, 2 * (input.warmup + input.turns))
  return {
    wall: median(warm.times.map(({ wall }) => wall)),
    cpu: warm.cpu,
    'first chunk': median(warm.times.map(({ first }) => first)),
    'cold wall': cold.wall,
    'cold cpu': cold.cpu,
  }
}
