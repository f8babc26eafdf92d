import { connect, type Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { Agent } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

const deltas = 4_000
/** More than the buffers of two kernels on one machine take. */
const delta = 'x'.repeat(8_000)

/** A server that says much, and a client that watches it and stops reading after the first words. */
async function stalled(stallMs: number) {
  const model = scriptedModel([{ text: Array.from({ length: deltas }, () => delta) }])
  const { server, ask } = await served({ guide: new Agent({ id: 'guide', model }) }, { stallMs, heartbeatMs: 25_000 })
  const streams = async () => Number(/^heed_event_streams (\d+)$/m.exec(await (await ask('/metrics')).text())?.[1])
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  await new Promise<void>((resolve) => {
    socket.once('data', () => {
      socket.pause()
      resolve()
    })
    socket.write(`GET /api/agents/guide/threads/${thread.threadId}/subscribe?resourceId=${thread.resourceId} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  })
  expect(await streams()).toBe(1)
  await ask('/agents/guide/send-message', { json: { message: 'Much.', ...thread } })
  return { socket, streams }
}

/** Everything up to the end of the answer. */
function rest(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = []
    socket.on('data', (part) => {
      parts.push(part)
      if (part.subarray(-5).toString() === '0\r\n\r\n') resolve(Buffer.concat(parts).toString())
    })
    socket.on('error', reject)
    socket.resume()
  })
}

it('[H2.3] a client that stops reading is closed with a reason, and finds it when it reads again', async () => {
  const { socket, streams } = await stalled(1_000)
  await expect.poll(streams, { interval: 20 }).toBe(0)
  const text = await rest(socket)
  expect(text).toMatch(/: closed, too slow\n\n\r\n0\r\n\r\n$/)
  // It received the pending chunks in few frames: whole deltas, joined.
  const joined = [...text.matchAll(/"type":"text-delta".*?"text":"(x+)"/g)].map(([, said = '']) => said.length)
  expect(joined.every((length) => length % delta.length === 0)).toBe(true)
  expect(Math.max(...joined)).toBeGreaterThan(delta.length)
})

it('[H2.3] a client that takes not even the reason keeps no connection', async () => {
  const { socket, streams } = await stalled(200)
  await expect.poll(streams, { interval: 20 }).toBe(0)
  socket.on('error', () => {})
  // A client that does not read notices the reset only when it writes.
  await expect.poll(() => {
    socket.write('x')
    return socket.destroyed
  }, { interval: 50 }).toBe(true)
})
