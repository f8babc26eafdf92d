import { median } from '../../harness/median.mjs'
import { expect, input, stopwatch } from '../../harness/side.mjs'
import { fill } from '../../threads/conversation.mjs'
import { storedMessages } from '../../threads/stored.mjs'

const target = { threadId: 'thread', resourceId: 'resource' }

/** Stores a thread and reads all of it, several times. */
export async function reads(memory, atOnce) {
  await fill(memory, target, input.messages, atOnce)
  const read = async () => expect('messages', (await storedMessages(memory, target)).length, input.messages)
  await read()
  const times = []
  for (let index = 0; index < input.reads; index++) {
    const stop = stopwatch()
    await read()
    times.push(stop())
  }
  return { wall: median(times.map(({ wall }) => wall)), cpu: median(times.map(({ cpu }) => cpu)) }
}
