import { median } from '../../harness/median.mjs'
import { expect, input, stopwatch } from '../../harness/side.mjs'
import { instantModel } from '../../instant-model.mjs'
import { storedMessages } from '../../threads/stored.mjs'

export const model = instantModel(() => {
  throw new Error('A persisted signal must not wake the agent.')
})

/**
 * @param stored the promise of a receipt that says the signal is stored
 */
export async function signals({ agent, memory }, stored) {
  const send = ({ threadId, resourceId }, index) =>
    stored(agent.sendSignal({ type: 'notification', contents: `signal ${index}` }, { threadId, resourceId, ifIdle: { behavior: 'persist' } }))
  const sendAll = (target, count) => Promise.all(Array.from({ length: count }, (_, index) => send(target, index)))

  for (let sent = 0; sent < input.warmup; sent += input.signals) await sendAll(await newThread(memory, `warm-up-${sent}`), input.signals)
  const batches = []
  let inverted = 0
  for (let batch = 0; batch < input.batches; batch++) {
    const target = await newThread(memory, `at-once-${batch}`)
    const stop = stopwatch()
    await sendAll(target, input.signals)
    batches.push(stop())
    inverted += inversions(await storedMessages(memory, target))
  }
  const inTurn = await newThread(memory, 'in-turn')
  const stop = stopwatch()
  for (let index = 0; index < input.signals; index++) await send(inTurn, index)
  const apart = stop()
  return {
    'at once/s': input.signals / (median(batches.map(({ wall }) => wall)) / 1_000),
    'in turn/s': input.signals / (apart.wall / 1_000),
    cpu: (median(batches.map(({ cpu }) => cpu)) * 1_000) / input.signals,
    inversions: inverted + inversions(await storedMessages(memory, inTurn)),
  }
}

async function newThread(memory, threadId) {
  const target = { threadId, resourceId: 'resource' }
  await memory.createThread(target)
  return target
}

/** How often a signal stands right before one that was sent earlier. */
function inversions(messages) {
  expect('stored signals', messages.length, input.signals)
  const numbers = messages.map(({ content }) => Number(/signal (\d+)/.exec(JSON.stringify(content))?.[1]))
  return numbers.filter((number, index) => index > 0 && number < numbers[index - 1]).length
}
