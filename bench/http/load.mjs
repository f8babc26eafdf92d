import { connect } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * A process that asks: so many connections, each with one request on its way, for so long. One and the same for every server, and so
 * little work a request that it is never what is measured. Told what to do, it answers how many were answered and how long each took.
 *
 * @typedef {{ port: number, path: string, connections: number, forMs: number, atMost?: number, first: number, body: { before: string, after: string, of: number }, stored: Stored }} Load
 * It ends after `forMs` or after `atMost` requests. A body is `before`, the number of the request modulo `of`, and `after`.
 * @typedef {{ file: string, count: string, perRequest: number }} Stored
 * Where the server stores, and how much of it a request is. Looked at when all were answered, so that what is counted is stored.
 */
process.on('message', async ({ stored, ...load }) => {
  const start = performance.now()
  const result = await run(load)
  const { rows, at } = await allStored(stored, (load.first + result.answered) * stored.perRequest)
  process.send({ ...result, rows, wall: at - start })
})

/** `at`: when it was asked for what turned out to be all. How long counting takes is no matter of the server's. */
async function allStored({ file, count }, wanted) {
  const database = new DatabaseSync(file, { readOnly: true })
  const counting = database.prepare(count)
  for (;;) {
    const at = performance.now()
    const { rows } = counting.get()
    if (rows >= wanted) return { rows, at }
    await sleep(20)
  }
}

async function run({ port, path, connections, forMs, atMost = Number.MAX_SAFE_INTEGER, first, body: { before, after, of } }) {
  const latencies = []
  let next = first
  const until = performance.now() + forMs
  await Promise.all(Array.from({ length: connections }, () => new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    let sentAt
    const ask = () => {
      if (performance.now() >= until || next - first >= atMost) {
        socket.end()
        resolve()
        return
      }
      const body = before + (next++ % of) + after
      sentAt = performance.now()
      socket.write(`POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
    }
    const answers = answerReader((status, text) => {
      if (status !== 200) return reject(new Error(`${status}: ${text}`))
      latencies.push(performance.now() - sentAt)
      ask()
    })
    socket.on('connect', ask).on('data', answers).on('error', reject)
  })))
  latencies.sort((a, b) => a - b)
  const at = (share) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))]
  return { answered: latencies.length, p50: at(0.5), p99: at(0.99) }
}

/** Calls with each whole answer of a connection, by its length or in chunks. */
function answerReader(onAnswer) {
  let rest = ''
  return (data) => {
    rest += data.toString('latin1')
    for (;;) {
      const headEnd = rest.indexOf('\r\n\r\n')
      if (headEnd < 0) return
      const head = rest.slice(0, headEnd)
      const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
      const end = length === undefined ? chunkedEnd(rest, headEnd + 4) : headEnd + 4 + Number(length)
      if (end < 0 || rest.length < end) return
      const text = rest.slice(headEnd + 4, end)
      rest = rest.slice(end)
      onAnswer(Number(head.slice(9, 12)), text)
    }
  }
}

function chunkedEnd(text, from) {
  const end = text.indexOf('0\r\n\r\n', from)
  return end < 0 ? -1 : end + 5
}
