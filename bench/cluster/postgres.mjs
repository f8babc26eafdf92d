import { fork } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { startServer } from '../../test/postgres/server.ts'

// Processes on one PostgreSQL: node bench/cluster/postgres.mjs [sends] [threads a process]
// From a send that A accepts to the model call in B, from a chunk that B publishes to a subscriber in A, and turns a second with 1, 2 and 4 processes.
const [sends = 300, threads = 50] = process.argv.slice(2).map(Number)
const folder = join(tmpdir(), `heed-bench-nodes-${process.pid}`)
const settings = { fsync: 'on', full_page_writes: 'on', autovacuum: 'on', shared_buffers: '256MB' }
const server = await startServer(folder, settings, { trusting: true })
const members = []

async function open(schema) {
  const child = fork(join(import.meta.dirname, 'postgres-process.mjs'), [server.url, schema], { execArgv: ['--no-warnings'] })
  members.push(child)
  await once(child, 'message')
  const waiting = new Map()
  let ids = 0
  child.on('message', ({ id, result }) => waiting.get(id)?.(result))
  return (name, ...given) => new Promise((resolve) => {
    waiting.set(++ids, resolve)
    child.send({ id: ids, name, given })
  })
}

function spread(name, micros, atMost) {
  const sorted = micros.filter(Number.isFinite).sort((x, y) => x - y)
  const at = (share) => (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN) / 1000
  const ok = !(at(0.99) > atMost)
  if (!ok) process.exitCode = 1
  const wanted = atMost === undefined ? '' : ` (wanted ${atMost}${ok ? '' : ': missed'})`
  console.log(`${name}: p50 ${at(0.5).toFixed(1)} ms, p95 ${at(0.95).toFixed(1)} ms, p99 ${at(0.99).toFixed(1)} ms${wanted}, ${sorted.length} of them`)
}

try {
  const [a, b] = [await open('latency'), await open('latency')]
  const thread = { threadId: 'thread-1', resourceId: 'user-1' }
  await a('watch', thread)
  // B holds the run. Its steps take a millisecond, which is part of the way of a signal: it enters at the next boundary.
  await b('begin', thread)
  const sent = []
  for (let nth = 0; nth < sends; nth++) {
    sent.push(await a('send', thread, `s${nth}`))
    await sleep(Math.random() * 20)
  }
  await sleep(1_000)
  await b('end')
  const [ofA, ofB] = [await a('times'), await b('times')]
  spread('signal accepted in A → model call in B', sent.map(({ id, stored }) => ofB.called[id] - stored), 20)
  spread('chunk said in B → seen in A', Object.entries(ofA.seen).map(([cursor, at]) => at - ofB.said[cursor]), 30)

  spread('a timer of 1 ms in B, late by', ofB.late)

  for (const count of [1, 2, 4]) {
    const nodes = await Promise.all(Array.from({ length: count }, () => open(`turns_${count}`)))
    await Promise.all(nodes.map((node, nth) => node('turns', `warm-${nth}`, 10)))
    const began = performance.now()
    await Promise.all(nodes.map((node, nth) => node('turns', `node-${nth}`, threads)))
    console.log(`${count} processes: ${((count * threads) / ((performance.now() - began) / 1_000)).toFixed(0)} turns/s (${threads} new threads at once in each)`)
    await Promise.all(nodes.map((node) => node('close')))
  }
} finally {
  for (const child of members) child.kill('SIGKILL')
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
}
