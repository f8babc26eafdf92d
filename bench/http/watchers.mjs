import { connect } from 'node:net'

/**
 * A process that watches: so many connections a thread. Says `{ open }` when all of them are, and `{ seen, p50, p99, max }` when the
 * run of every thread was seen to its end. Each event says when it was sent.
 *
 * @typedef {{ port: number, threads: string[], perThread: number, resourceId: string }} Watch
 */
process.on('message', async ({ port, threads, perThread, resourceId }) => {
  const latencies = []
  const watched = threads.flatMap((threadId) => Array.from({ length: perThread }, () => watch(port, { threadId, resourceId }, latencies)))
  await Promise.all(watched.map(({ open }) => open))
  process.send({ open: watched.length })
  const seen = await Promise.all(watched.map(({ over }) => over))
  latencies.sort((a, b) => a - b)
  const at = (share) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))]
  process.send({ seen: [Math.min(...seen), Math.max(...seen)], p50: at(0.5), p99: at(0.99), max: latencies.at(-1) })
})

function watch(port, scope, latencies) {
  const open = Promise.withResolvers()
  const over = Promise.withResolvers()
  const body = JSON.stringify(scope)
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  let rest = ''
  let seen = 0
  socket.on('connect', () => {
    socket.write(`POST /api/agents/listener/threads/subscribe HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
  })
  socket.on('data', (data) => {
    const now = performance.timeOrigin + performance.now()
    const frames = (rest + data.toString('latin1')).split('\n\n')
    rest = frames.pop()
    for (const frame of frames) {
      if (frame.endsWith(': connected')) open.resolve()
      if (frame.includes('"type":"text-delta"')) {
        // Events that waited for each other come as one.
        for (const sentAt of /"text":"([^"]*)"/.exec(frame)[1].split(';').slice(0, -1)) {
          seen++
          latencies.push(now - Number(sentAt))
        }
      }
      if (frame.includes('"type":"finish"')) {
        over.resolve(seen)
        socket.destroy()
      }
    }
  })
  socket.on('error', (error) => {
    open.reject(error)
    over.reject(error)
  })
  return { open: open.promise, over: over.promise }
}
