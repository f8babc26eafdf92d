/**
 * What recall costs: `npm run bench:recall:scale [-- --messages 100000] [-- --others 1000000]`. Messages of one resource with vectors that are made
 * up (the question's is real), and messages of another, in a file of its own that is removed afterwards.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { DatabaseSync } from 'node:sqlite'
import { parseArgs } from 'node:util'
import { localEmbedder } from '../../src/embed/index.ts'
import { textEmbedder } from '../../src/memory/semantic/embedder.ts'
import { quantised } from '../../src/recall/quantised.ts'
import type { TextEmbedder } from '../../src/recall/embedder.ts'
import { LibSQLStore } from '../../src/store/libsql/store.ts'

const { values } = parseArgs({ options: { messages: { type: 'string', default: '100000' }, others: { type: 'string', default: '0' } } })
const folder = mkdtempSync(join(tmpdir(), 'heed-bench-scale-'))
const path = join(folder, 'scale.db')
const vocabulary = Array.from({ length: 20_000 }, (_, at) => `${['ba', 'ko', 'li', 'mu', 'ne', 'ra', 'so', 'ti', 'vu', 'ze'].map((part, place) => (Math.floor(at / 10 ** (place % 5)) % 10 === place ? part : '')).join('')}w${at.toString(36)}`)
let seed = 1
const chance = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647
const word = () => vocabulary[Math.floor(chance() ** 3 * vocabulary.length)] ?? ''
const sentence = () => Array.from({ length: 18 }, word).join(' ')
const median = (times: number[]) => times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0
const p95 = (times: number[]) => times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.95)] ?? 0
const say = (text: string) => process.stdout.write(`${text}\n`)

async function open() {
  const opened = new LibSQLStore({ url: `file:${path}` })
  const index = await opened.getStore('recall')
  if (!index) throw new Error('this store has no recall')
  await index.status()
  return { store: opened, recall: index }
}
let { store, recall } = await open()

async function fill(resourceId: string, count: number): Promise<void> {
  for (let done = 0; done < count; done += 500) {
    const threadId = `${resourceId}-${Math.floor(done / 2_000)}`
    await store.createThread({ id: threadId, resourceId, now: 1 })
    const messages = Array.from({ length: Math.min(500, count - done) }, (_, at) => ({ id: `m${done + at}`, role: 'user' as const, createdAt: new Date(), content: { format: 2 as const, parts: [{ type: 'text' as const, text: sentence() }] } }))
    await store.saveMessages([{ scope: { threadId, resourceId }, messages }])
  }
}

async function indexed(): Promise<void> {
  for (;;) {
    const { pending, rebuilding } = await recall.status()
    if (pending === 0 && !rebuilding) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

async function timed(embedder: TextEmbedder | undefined, rounds = 40): Promise<number[]> {
  const times: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    const text = Array.from({ length: 6 }, word).join(' ')
    const since = performance.now()
    await recall.search({ resourceId: 'one', text, limit: 10, ...(embedder && { embedder }) })
    times.push(performance.now() - since)
  }
  return times
}

const count = Number(values.messages)
let since = performance.now()
await fill('one', count)
const saved = performance.now() - since
await indexed()
say(`${count} messages: indexed in ${((performance.now() - since) / count).toFixed(3)} ms a message, of which ${(saved / count).toFixed(3)} ms is saving`)
await timed(undefined, 5)
let times = await timed(undefined)
say(`full text: ${median(times).toFixed(1)} ms, p95 ${p95(times).toFixed(1)} ms`)

const local = textEmbedder(localEmbedder())
const [question = []] = await local.embed(['a first question'])
const dimension = question.length
// Vectors are put where the embedder would put them: making so many takes hours.
await store.close()
const index = new DatabaseSync(`${path}-recall`)
index.exec('BEGIN')
index.prepare('INSERT INTO embedders (key, id, dimension, complete, used_at) VALUES (1, ?, ?, 1, ?)').run(local.id, dimension, Date.now())
const put = index.prepare('INSERT INTO vectors (embedder, resource, passage, own, pair) VALUES (1, ?, ?, ?, ?)')
for (const { key, resource } of index.prepare('SELECT key, resource FROM passages').all()) {
  const vector = () => quantised(Float32Array.from({ length: dimension }, () => chance() - 0.5))
  put.run(Number(resource), Number(key), vector(), vector())
}
index.exec('COMMIT')
index.close()
;({ store, recall } = await open())
since = performance.now()
await timed(local, 1)
say(`first fused search, with reading all vectors: ${(performance.now() - since).toFixed(0)} ms`)
const loop = monitorEventLoopDelay({ resolution: 1 })
loop.enable()
times = await timed(local)
loop.disable()
const embedding: number[] = []
for (let round = 0; round < 20; round += 1) {
  since = performance.now()
  await local.embed([`${word()} ${word()} ${word()}`])
  embedding.push(performance.now() - since)
}
say(`fused: ${median(times).toFixed(1)} ms, p95 ${p95(times).toFixed(1)} ms, of which embedding the question ${median(embedding).toFixed(1)} ms`)
const [all, asked] = [new Float32Array(count * dimension).fill(0.5), new Float32Array(dimension).fill(0.5)]
const scans: number[] = []
for (let round = 0; round < 5; round += 1) {
  since = performance.now()
  let best = 0
  for (let at = 0; at < count; at += 1) {
    let sum = 0
    for (let n = 0; n < dimension; n += 1) sum += (all[at * dimension + n] as number) * (asked[n] as number)
    best = Math.max(best, sum)
  }
  scans.push(performance.now() - since)
}
say(`a bare scan of ${count} vectors: ${median(scans).toFixed(1)} ms; fused without embedding is ${((median(times) - median(embedding)) / median(scans)).toFixed(2)} of it, with two vectors a message`)
say(`while searching the event loop was held for ${(loop.max / 1e6).toFixed(1)} ms at most, ${(loop.percentile(99) / 1e6).toFixed(1)} ms at p99`)

const others = Number(values.others)
if (others > 0) {
  for (let done = 0; done < others; done += 500) {
    const threadId = `other-${Math.floor(done / 2_000)}`
    await store.createThread({ id: threadId, resourceId: 'other', now: 1 })
    await store.saveMessages([{ scope: { threadId, resourceId: 'other' }, messages: Array.from({ length: 500 }, (_, at) => ({ id: `o${done + at}`, role: 'user' as const, createdAt: new Date(), content: { format: 2 as const, parts: [{ type: 'text' as const, text: sentence() }] } })) }])
  }
  await indexed()
  say(`with ${others} messages of another resource: full text ${median(await timed(undefined)).toFixed(1)} ms`)
}
await localEmbedder().close()
await store.close()
rmSync(folder, { recursive: true })
