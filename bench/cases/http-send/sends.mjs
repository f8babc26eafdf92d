import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, input, stopwatch } from '../../harness/side.mjs'
import { instantModel, textParts } from '../../instant-model.mjs'

const answer = textParts(10)
const resourceId = 'resource'
const message = 'Where do we stand with the plan, and who was to do what by when?'

export const model = instantModel(() => answer)

/** Messages to threads that sleep on, then messages that each begin one. `count` is the query that counts stored messages of threads by the start of their id. */
export async function sends({ memory, port, file, count }) {
  const generator = fork(join(import.meta.dirname, '../../http/load.mjs'), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const measured = async (name, { of, perRequest, more = {} }) => {
    const [before, after] = JSON.stringify({ message, resourceId, ...more, threadId: `${name}-#` }).split('#')
    const load = async (first, forMs) => {
      generator.send({ port, path: '/api/agents/listener/send-message', connections: input.connections, forMs, first, body: { before, after, of }, stored: { file, count: count(`${name}-`), perRequest } })
      const [result] = await once(generator, 'message')
      expect(`messages of ${name}`, result.rows, (first + result.answered) * perRequest)
      return result
    }
    const warm = await load(0, input.warmMs)
    const stop = stopwatch()
    const { answered, p50, p99, wall } = await load(warm.answered, input.forMs)
    const { cpu } = stop()
    return { [`${name}/s`]: answered / (wall / 1_000), [`${name} p50`]: p50, [`${name} p99`]: p99, [`${name} cpu`]: cpu / answered }
  }
  for (let index = 0; index < input.threads; index++) await memory.createThread({ threadId: `persisted-${index}`, resourceId })
  const persisted = await measured('persisted', { of: input.threads, perRequest: 1, more: { ifIdle: { behavior: 'persist' } } })
  const woken = await measured('woken', { of: Number.MAX_SAFE_INTEGER, perRequest: 2 })
  generator.kill()
  return { ...persisted, ...woken }
}
