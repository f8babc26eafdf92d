import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, input, stopwatch } from '../../harness/side.mjs'
import { instantModel, textParts } from '../../instant-model.mjs'

const answer = textParts(10)
const resourceId = 'resource'
/** A server that has not answered its first requests by then is broken. */
const coldLimitMs = 60_000
const message = 'Where do we stand with the plan, and who was to do what by when?'

export const model = instantModel(() => answer)

/** Messages to threads that sleep on, then messages that each begin one. `count` is the query that counts stored messages of threads by the start of their id. */
export async function sends({ memory, port, file, count }) {
  const generator = fork(join(import.meta.dirname, '../../http/load.mjs'), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const measured = async (name, { of, perRequest, more = {}, withCold = false }) => {
    const [before, after] = JSON.stringify({ message, resourceId, ...more, threadId: `${name}-#` }).split('#')
    const load = async (first, forMs, { connections, atMost } = input) => {
      generator.send({ port, path: '/api/agents/listener/send-message', connections, forMs, atMost, first, body: { before, after, of }, stored: { file, count: count(`${name}-`), perRequest } })
      const [result] = await once(generator, 'message')
      expect(`messages of ${name}`, result.rows, (first + result.answered) * perRequest)
      return result
    }
    const stopCold = stopwatch()
    const cold = await load(0, coldLimitMs, { connections: 1, atMost: input.cold })
    expect(`first messages of ${name}`, cold.answered, input.cold)
    const { cpu: coldCpu } = stopCold()
    const warm = await load(cold.answered, input.warmMs)
    const stop = stopwatch()
    const { answered, p50, p99, wall } = await load(cold.answered + warm.answered, input.forMs)
    const { cpu } = stop()
    return {
      ...(withCold ? { 'cold p50': cold.p50, 'cold cpu': coldCpu / cold.answered } : {}),
      [`${name}/s`]: answered / (wall / 1_000), [`${name} p50`]: p50, [`${name} p99`]: p99, [`${name} cpu`]: cpu / answered,
    }
  }
  for (let index = 0; index < input.threads; index++) await memory.createThread({ threadId: `persisted-${index}`, resourceId })
  const persisted = await measured('persisted', { of: input.threads, perRequest: 1, more: { ifIdle: { behavior: 'persist' } }, withCold: true })
  const woken = await measured('woken', { of: Number.MAX_SAFE_INTEGER, perRequest: 2 })
  generator.kill()
  return { ...persisted, ...woken }
}
