import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, input, report, stopwatch } from '../../harness/side.mjs'
import { heedServer } from '../../http/heed-server.mjs'
import { textParts } from '../../instant-model.mjs'
import { settledMemory } from '../../harness/settled-memory.mjs'

const { groups, threadsPerGroup, perThread, eventsPerSecond, seconds } = input
const everyMs = (1_000 * threadsPerGroup) / eventsPerSecond
const events = Math.round((seconds * 1_000) / everyMs)
const resourceId = 'resource'

/** Says the time, again and again. */
const model = {
  specificationVersion: 'v4',
  provider: 'paced',
  modelId: 'paced',
  supportedUrls: {},
  async doStream() {
    const parts = textParts(0)
    const end = parts.splice(-2)
    let timer
    const stream = new ReadableStream({
      start(controller) {
        for (const part of parts) controller.enqueue(part)
        let left = events
        timer = setInterval(() => {
          controller.enqueue({ type: 'text-delta', id: 'text', delta: `${(performance.timeOrigin + performance.now()).toFixed(3)};` })
          if (--left > 0) return
          clearInterval(timer)
          for (const part of end) controller.enqueue(part)
          controller.close()
        }, everyMs)
      },
      cancel: () => clearInterval(timer),
    })
    return { stream }
  },
}

const { agent, port } = await heedServer(model)
const threads = Array.from({ length: groups * threadsPerGroup }, (_, index) => `thread-${index}`)
const watchers = fork(join(import.meta.dirname, '../../http/watchers.mjs'), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
await agent.generate('Warm up', { maxSteps: 1, model: { ...model, doStream: async () => ({ stream: ReadableStream.from(textParts(10)) }) } })
const before = settledMemory()
watchers.send({ port, threads, perThread, resourceId })
const [{ open }] = await once(watchers, 'message')
expect('open streams', open, threads.length * perThread)
const bytes = settledMemory() - before

const stop = stopwatch()
const over = once(watchers, 'message')
// Threads of a group speak in turns, not all at the same moment.
for (const [index, threadId] of threads.entries()) setTimeout(() => agent.sendMessage('Go on', { threadId, resourceId }), (index * everyMs) / threads.length)
const [{ seen, p50, p99, max }] = await over
const { cpu, wall } = stop()
expect('fewest events of a stream', seen[0], events)
expect('most events of a stream', seen[1], events)
report({ p50, p99, max, cpu: (100 * cpu) / wall, 'cpu µs an event': (cpu * 1_000) / (events * open), 'kB a connection': bytes / open / 1_024 })
