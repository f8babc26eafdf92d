import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

// How long it takes until what one process does is felt in another: node bench/cluster/run.mjs [sends] [step in ms]
const [sends = 300, stepMs = 10] = process.argv.slice(2).map(Number)
const folder = mkdtempSync(join(tmpdir(), 'heed-cluster-bench-'))
const thread = { resourceId: 'user-1', threadId: 'thread-1' }

async function open() {
  const child = fork(join(import.meta.dirname, 'process.mjs'), [join(folder, 'heed.db'), String(stepMs)], { execArgv: [] })
  await once(child, 'message')
  const waiting = new Map()
  let ids = 0
  child.on('message', ({ id, result }) => waiting.get(id)?.(result))
  const ask = (name, ...given) => new Promise((resolve) => {
    waiting.set(++ids, resolve)
    child.send({ id: ids, name, given })
  })
  await ask('start')
  return { child, ask }
}

function spread(name, micros) {
  const sorted = micros.filter(Number.isFinite).sort((x, y) => x - y)
  const at = (share) => ((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN) / 1000).toFixed(1)
  console.log(`${name}: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, most ${at(1)} ms (${sorted.length})`)
  return Number(at(0.99))
}

/** When the first chunk of the next process that runs the thread is seen. */
async function nextEpoch({ ask }) {
  const last = Math.max(...Object.keys((await ask('times')).epochs).map(Number))
  for (;;) {
    const found = Object.entries((await ask('times')).epochs).find(([epoch]) => Number(epoch) > last)
    if (found) return found[1]
    await sleep(5)
  }
}

const members = []
try {
  const [a, b] = (members.push(await open(), await open()), members)
  await a.ask('watch', thread)
  await b.ask('watch', thread)
  await a.ask('begin', thread)
  const sent = []
  for (let index = 0; index < sends; index++) {
    sent.push({ id: `s${index}`, ...(await b.ask('send', thread, `s${index}`)) })
    await sleep(Math.random() * stepMs)
  }
  const ofA = await a.ask('times')
  const ofB = await b.ask('times')
  console.log(`${sends} sends in B to a run in A whose tool takes ${stepMs} ms`)
  const drained = spread('accepted in B → entered in A', sent.map(({ id, stored }) => ofA.entered[id] - stored))
  spread('accepted in B → outcome told in B', sent.map(({ stored, told }) => told - stored))
  spread('said in A → seen in B', Object.entries(ofB.seen).map(([cursor, at]) => at - ofA.seen[cursor]))

  const from = await b.ask('now')
  const handedOver = nextEpoch(b)
  await a.ask('close')
  console.log(`handed over by close → first chunk in B: ${(((await handedOver) - from) / 1000).toFixed(1)} ms`)

  const c = await open()
  members.push(c)
  await c.ask('watch', thread)
  const killed = await c.ask('now')
  const takenOver = nextEpoch(c)
  b.child.kill('SIGKILL')
  console.log(`killed → first chunk in C: ${(((await takenOver) - killed) / 1_000_000).toFixed(1)} s, of which up to 10 are the lease`)
  if (drained > 20 + stepMs) {
    console.error(`p99 from acceptance to the drain is above 20 ms and the step's own time`)
    process.exitCode = 1
  }
} finally {
  for (const { child } of members) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
}
