import { expect, input, stopwatch } from '../../harness/side.mjs'
import { instantModel, textParts } from '../../instant-model.mjs'

const answer = textParts(1)
const called = { count: 0, lastAt: 0 }

export const model = instantModel(() => answer, {
  onCall() {
    called.count++
    called.lastAt = performance.now()
  },
})

/** What is due is put off until now, everything else is decided as usual. */
export const deliveryPolicy = { sources: { due: { action: 'defer', deliverAt: new Date() } } }

const targetOf = (name) => ({ threadId: `thread-${name}`, resourceId: `resource-${name}` })

/**
 * @param send sends a notification; resolves when it is stored
 * @param committed the same, resolves when it is committed
 * @param dispatch sends what is due of up to so many; answers how many that were
 * @param answered how many of these threads have an answer
 */
export async function inbox({ send, committed = send, dispatch, answered }) {
  let sent = 0
  const one = (how) => {
    const number = sent++
    return how({ source: 'github', kind: 'ci-status', priority: 'low', summary: `CI failed on branch ${number}.`, dedupeKey: `ci:${number}`, payload: { number } }, targetOf(number % 100))
  }
  const inTurn = async (count, how) => {
    const stop = stopwatch()
    for (let index = 0; index < count; index++) await one(how)
    return stop()
  }
  const cold = await inTurn(input.cold, committed)
  await inLanes(input.warmup, input.width, () => one(send))
  const atOnce = stopwatch()
  await inLanes(input.atOnce, input.width, () => one(send))
  const together = atOnce()
  const apart = await inTurn(input.inTurn, send)
  const quick = await inTurn(input.inTurn, committed)
  const due = async (count, name) => {
    const targets = Array.from({ length: count }, (_, index) => targetOf(`${name}-${index}`))
    await inLanes(count, input.width, (index) => send({ source: 'due', kind: 'k', summary: `Due ${index}.` }, targets[index]))
    called.count = 0
    const stop = stopwatch()
    const startedAt = performance.now()
    for (let done = 0; done < count;) {
      const some = await dispatch(100)
      if (some === 0) throw new Error(`nothing is due after ${done} of ${count}`)
      done += some
    }
    const deliveredAt = performance.now()
    while (called.count < count) await new Promise(setImmediate)
    const { cpu } = stop()
    const wall = Math.max(deliveredAt, called.lastAt) - startedAt
    while ((await answered(targets)) < count) await new Promise(setImmediate)
    expect('model calls', called.count, count)
    return { wall, cpu }
  }
  await due(Math.min(50, input.due), 'warm')
  const dispatched = await due(input.due, 'due')
  return {
    'ingress, 50 at once/s': input.atOnce / (together.wall / 1_000),
    'ingress, in turn/s': input.inTurn / (apart.wall / 1_000),
    'ingress, in turn and committed/s': input.inTurn / (quick.wall / 1_000),
    'ingress cpu': (together.cpu * 1_000) / input.atOnce,
    'cold ingress': cold.wall / input.cold,
    'cold ingress cpu': cold.cpu / input.cold,
    'dispatch/s': input.due / (dispatched.wall / 1_000),
    'dispatch cpu': (dispatched.cpu * 1_000) / input.due,
  }
}

/** So many times, `width` at once. */
async function inLanes(count, width, work) {
  let next = 0
  const lane = async () => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: width }, lane))
}
