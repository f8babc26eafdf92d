/**
 * What recall costs: `npm run bench:recall:scale [-- --messages 100000] [-- --others 1000000]`. Messages of one resource with vectors that are made
 * up (the question's is real where embedding counts), alone and beside those of another resource, which is then searched itself, in a file of its own that is removed afterwards. Writes results/recall-scale.md.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { constants, getPriority, loadavg, setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { parseArgs } from 'node:util'
import { localEmbedder } from '../../src/embed/index.ts'
import { textEmbedder } from '../../src/memory/semantic/setting.ts'
import type { MetadataFilter } from '../../src/recall/filter/filter.ts'
import { quantize } from '../../src/recall/rank/quantized-vectors.ts'
import type { TextEmbedder } from '../../src/recall/embedder.ts'
import { LibSQLStore } from '../../src/store/sqlite/store.ts'
import { watchStalls } from '../harness/stalls.mjs'

const { values } = parseArgs({ options: { messages: { type: 'string', default: '100000' }, others: { type: 'string', default: '1000000' } } })
const [count, others] = [Number(values.messages), Number(values.others)]
const folder = mkdtempSync(join(tmpdir(), 'heed-bench-scale-'))
const path = join(folder, 'scale.db')
const syllables = ['ba', 'ko', 'li', 'mu', 'ne', 'ra', 'so', 'ti', 'vu', 'ze']
const vocabulary = Array.from({ length: 20_000 }, (_, at) => `${syllables.map((part, place) => (Math.floor(at / 10 ** (place % 5)) % 10 === place ? part : '')).join('')}w${at.toString(36)}`)
let seed = 1
const chance = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647
const word = () => vocabulary[Math.floor(chance() ** 3 * vocabulary.length)] ?? ''
const sentence = () => Array.from({ length: 18 }, word).join(' ')
const at = (share: number, times: number[]) => times.toSorted((a, b) => a - b)[Math.floor(times.length * share)] ?? 0

const lines: string[] = []
const loads: number[] = []
function say(what: string, measured: string, wanted = ''): void {
  process.stdout.write(`${what}: ${measured}${wanted && ` (wanted: ${wanted})`}\n`)
  lines.push(`| ${what} | ${measured} | ${wanted} |`)
  loads.push(loadavg()[0] ?? 0)
}

async function open() {
  const opened = new LibSQLStore({ url: `file:${path}` })
  const index = await opened.getStore('recall')
  if (!index) throw new Error('this store has no recall')
  await index.status()
  return { store: opened, recall: index }
}
let { store, recall } = await open()

/** Others need the machine too while it takes minutes. Where the priority can't be raised again, it stays. */
async function politely(work: () => Promise<void>): Promise<void> {
  const before = getPriority()
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
  await work()
  try {
    setPriority(before)
  } catch {
    say('priority', 'could not be raised again: times are too long')
  }
}

async function fill(resourceId: string, messages: number): Promise<void> {
  for (let done = 0; done < messages; done += 500) {
    const threadId = `${resourceId}-${Math.floor(done / 2_000)}`
    await store.createThread({ id: threadId, resourceId, now: 1 })
    const some = Array.from({ length: Math.min(500, messages - done) }, (_, n) => ({ id: `m${done + n}`, role: 'user' as const, createdAt: new Date(), content: { format: 2 as const, parts: [{ type: 'text' as const, text: sentence() }] } }))
    await store.saveMessages([{ scope: { threadId, resourceId }, messages: some }])
  }
}

async function indexed(): Promise<void> {
  for (;;) {
    const { pending, rebuilding } = await recall.status()
    if (pending === 0 && !rebuilding) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Searches one after the other. */
async function searches(embedder: TextEmbedder | undefined, rounds = 60, more: { resourceId?: string; filter?: MetadataFilter; before?: (round: number) => Promise<unknown> } = {}): Promise<{ wall: number[]; cpu: number[] }> {
  const [wall, cpu]: [number[], number[]] = [[], []]
  for (let round = 0; round < rounds; round += 1) {
    const text = Array.from({ length: 6 }, word).join(' ')
    await more.before?.(round)
    const before = process.cpuUsage()
    const since = performance.now()
    await recall.search({ resourceId: more.resourceId ?? 'one', text, limit: 10, ...(embedder && { embedder }), ...(more.filter && { filter: more.filter }) })
    wall.push(performance.now() - since)
    const { user, system } = process.cpuUsage(before)
    cpu.push((user + system) / 1_000)
  }
  return { wall, cpu }
}

async function measure(name: string, embedder: TextEmbedder | undefined, wanted: string, resourceId = 'one'): Promise<number> {
  await searches(embedder, 5, { resourceId })
  const { wall, cpu } = await searches(embedder, 60, { resourceId })
  const stalls = watchStalls()
  await searches(embedder, 30, { resourceId })
  const stall = stalls()
  say(name, `${at(0.5, wall).toFixed(1)} ms, p95 ${at(0.95, wall).toFixed(1)} ms, CPU ${at(0.5, cpu).toFixed(1)} ms`, wanted)
  say(`${name}: the event loop held at most`, `${stall.own.toFixed(1)} ms (${stall.wall.toFixed(1)} ms with the wait for a processor)`, 'at most 20 ms')
  return at(0.5, cpu)
}

/** Right after one message changed, and with filters, of which the last lets nothing through. */
async function changing(name: string, embedder: TextEmbedder): Promise<void> {
  const thread = (n: number) => ({ threadId: `one-${n}`, resourceId: 'one' })
  const changes: ReadonlyArray<[string, (round: number) => Promise<unknown>]> = [
    ['edited', (round) => store.updateMessages([{ scope: thread(0), patches: [{ id: `m${round}`, content: { parts: [{ type: 'text', text: sentence() }] } }] }])],
    ['deleted', (round) => store.deleteMessages(thread(1), [`m${2_000 + round}`])],
    ['added', (round) => store.saveMessages([{ scope: thread(2), messages: [{ id: `new${round}`, role: 'user', createdAt: new Date(), content: { format: 2, parts: [{ type: 'text', text: sentence() }] } }] }])],
  ]
  // Behind an edit the embedder makes vectors of it. The question waits for the text that it is at: that is measured apart from the index.
  const told = ({ wall, cpu: used }: { wall: number[]; cpu: number[] }) => `${at(0.5, wall).toFixed(1)} ms, p95 ${at(0.95, wall).toFixed(1)} ms, CPU ${at(0.5, used).toFixed(1)} ms`
  for (const [what, before] of changes) say(`fused, ${name}, each right after a message was ${what}`, `apart from embedding: ${told(await searches(instant, 20, { before }))}`, 'under 150 ms')
  const [[, edit] = []] = changes
  if (edit) say(`fused, ${name}, each right after a message was edited, with what embedding it takes`, told(await searches(embedder, 20, { before: (round) => edit(100 + round) })))
  for (const filter of [{ role: 'user' }, { thread_id: 'one-7' }, { created_at: { $gt: '2099-01-01' } }]) say(`fused, ${name}, filter ${JSON.stringify(filter)}`, told(await searches(embedder, 20, { filter })), 'under 150 ms')
}

/** What is done on the index while no process has it open. */
async function between(work: (index: DatabaseSync) => void): Promise<void> {
  await store.close()
  const index = new DatabaseSync(`${path}-recall`)
  index.exec('BEGIN')
  work(index)
  index.exec('COMMIT')
  index.close()
  ;({ store, recall } = await open())
}

const local = textEmbedder(localEmbedder())
const dimension = (await local.embed(['a first question']))[0]?.length ?? 0
/** Makes up vectors: what a search costs apart from embedding the question. */
const instant: TextEmbedder = { id: local.id, maxBatch: 64, embed: async (texts) => texts.map(() => Float32Array.from({ length: dimension }, () => chance() - 0.5)) }
// Vectors are put where the embedder would put them, and nothing waits for it: making so many takes hours.
const known = (index: DatabaseSync) => index.prepare('INSERT INTO embedders (key, id, dimension, complete, used_at) VALUES (1, ?, ?, 1, ?)').run(local.id, dimension, Date.now())
const unknown = (index: DatabaseSync) => index.exec('DELETE FROM embedders; DELETE FROM unembedded')

async function first(name: string, wanted = 'under 300 ms', resourceId = 'one'): Promise<void> {
  const { wall: [wall = 0], cpu: [used = 0] } = await searches(instant, 1, { resourceId })
  say(`first fused search, ${name}, which reads all passages and vectors`, `${wall.toFixed(0)} ms, CPU ${used.toFixed(0)} ms`, wanted)
}

async function both(name: string): Promise<{ words: number; fused: number }> {
  const words = await measure(`full text, ${name}`, undefined, 'under 20 ms')
  await between(known)
  await first(name)
  const fused = await measure(`fused, ${name}, apart from embedding the question`, instant, 'under 40 ms CPU')
  await measure(`fused, ${name}, with embedding the question`, local, 'under 150 ms')
  await changing(name, local)
  await between(unknown)
  return { words, fused }
}

let since = performance.now()
let cpu = process.cpuUsage()
await fill('one', count)
const saved = performance.now() - since
await indexed()
const { user, system } = process.cpuUsage(cpu)
say('saving and indexing a message', `${((performance.now() - since) / count).toFixed(3)} ms, of which ${(saved / count).toFixed(3)} ms until all were saved; CPU ${((user + system) / 1_000 / count).toFixed(3)} ms`, 'at most 5.4 ms')
/** Gives vectors to all passages of a resource. */
function embedAll(index: DatabaseSync, resourceId: string): void {
  const put = index.prepare('INSERT INTO vectors (embedder, resource, passage, vector) VALUES (1, ?, ?, ?)')
  const vector = () => quantize(Float32Array.from({ length: dimension }, () => chance() - 0.5))
  const keys = index.prepare('SELECT p.key, p.resource FROM passages p JOIN resources r ON r.key = p.resource WHERE r.id = ?').all(resourceId)
  for (const { key, resource } of keys) put.run(Number(resource), Number(key), vector())
}
await between((index) => embedAll(index, 'one'))
const alone = await both(`${count} messages of one resource`)

const embedding: number[] = []
for (let round = 0; round < 20; round += 1) {
  cpu = process.cpuUsage()
  await local.embed([`${word()} ${word()} ${word()}`])
  const spent = process.cpuUsage(cpu)
  embedding.push((spent.user + spent.system) / 1_000)
}
const [all, asked] = [new Float32Array(count * dimension).fill(0.5), new Float32Array(dimension).fill(0.5)]
const scans: number[] = []
for (let round = 0; round < 5; round += 1) {
  cpu = process.cpuUsage()
  let best = 0
  for (let place = 0; place < count; place += 1) {
    let sum = 0
    for (let n = 0; n < dimension; n += 1) sum += (all[place * dimension + n] as number) * (asked[n] as number)
    best = Math.max(best, sum)
  }
  const spent = process.cpuUsage(cpu)
  scans.push((spent.user + spent.system) / 1_000)
}
say('CPU of embedding a question', `${at(0.5, embedding).toFixed(1)} ms`)
say(`CPU of a bare scan of ${count} vectors in JavaScript`, `${at(0.5, scans).toFixed(1)} ms`)
say('CPU of a fused search apart from embedding, which compares two vectors a message, over that of a bare scan of one', (alone.fused / at(0.5, scans)).toFixed(2))

if (others > 0) {
  since = performance.now()
  await politely(async () => {
    await fill('other', others)
    await indexed()
  })
  say(`saving and indexing a message, ${others} of another resource`, `${((performance.now() - since) / others).toFixed(3)} ms`)
  const beside = await both(`beside ${others} of another resource`)
  say('CPU beside the other resource over that alone', `full text ${(beside.words / alone.words).toFixed(2)}, fused ${(beside.fused / alone.fused).toFixed(2)}`)
  await between((index) => {
    known(index)
    embedAll(index, 'other')
  })
  const name = `${others} messages of one resource`
  await measure(`full text, ${name}`, undefined, 'under 150 ms', 'other')
  const before = process.memoryUsage().rss
  await first(name, '', 'other')
  await measure(`fused, ${name}, apart from embedding the question`, instant, 'under 150 ms', 'other')
  say(`memory of the process after that, ${name}`, `${Math.round(process.memoryUsage().rss / 2 ** 20)} MB, ${Math.round((process.memoryUsage().rss - before) / 2 ** 20)} MB more than before its vectors were read`, 'recallMemoryBytes: 384 MB, and what one search needs')
}
await localEmbedder().close()
await store.close()
rmSync(folder, { recursive: true })
const busy = `While it ran, the load average of the machine was ${Math.min(...loads).toFixed(0)} to ${Math.max(...loads).toFixed(0)}: with more than 2, times include the wait for a processor, and CPU is what counts.`
const head = `# What recall costs\n\nMade by \`npm run bench:recall:scale\`, on a shared machine of two cores: medians of 60 searches. CPU is that of all threads of the process. ${busy}\n\n| | measured | wanted |\n|---|---|---|\n`
writeFileSync(new URL('../results/recall-scale.md', import.meta.url), `${head}${lines.join('\n')}\n`)
