import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Agent, Heed, Memory, silentLogger } from '../../src/index.ts'
import { PostgresStore } from '../../src/store/postgres/index.ts'
import { connectClient } from '../../src/store/postgres/sessions.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { longThread, seed } from './seeding.ts'
import { startServer } from './server.ts'

const usage = `npm run test:postgres-scale -- [--messages 1000000] [--threads 1000000] [--times 300]

Compares a database with so many messages on one thread, and so many threads, with one that has a thousand of each, on a PostgreSQL server of its own.
Both are asked in turn, so that the load of the machine falls on both. Fails where the median of a call is more than 1.5 times as long.`

const most = 1.5
const { values } = parseArgs({ options: {
  messages: { type: 'string', default: '1000000' }, threads: { type: 'string', default: '1000000' }, times: { type: 'string', default: '300' },
  help: { type: 'boolean', default: false },
} })
const print = (line: string) => process.stdout.write(`${line}\n`)
if (values.help) print(usage)
else process.exitCode = await compare(Number(values.messages), Number(values.threads), Number(values.times))

type Calls = Record<string, (nth: number) => Promise<unknown>>

async function compare(messages: number, threads: number, times: number): Promise<number> {
  const folder = join(tmpdir(), `heed-scale-${process.pid}`)
  // As a server is set up elsewhere, but for the size of its memory.
  const server = await startServer(folder, { shared_buffers: '256MB', autovacuum: 'on', max_wal_size: '4GB', fsync: 'on', full_page_writes: 'on' }, { trusting: true })
  const heeds: Heed[] = []
  try {
    const open = async (schemaName: string, size: { messages: number; threads: number }): Promise<Calls> => {
      const storage = new PostgresStore({ connectionString: server.url, schemaName, max: 4 })
      await storage.open()
      const began = performance.now()
      await within(server.url, (query) => seed(query, schemaName, size))
      print(`${schemaName}: ${size.messages} messages and ${size.threads} threads in ${Math.round((performance.now() - began) / 1000)} s`)
      const agent = new Agent({ id: 'guide', model: scriptedModel(['Good.'], { loop: true }), memory: new Memory({ lastMessages: 20, semanticRecall: false }) })
      const heed = new Heed({ agents: { agent }, storage, logger: silentLogger })
      heeds.push(heed)
      await heed.start()
      const memory = await agent.getMemory()
      const some = (nth: number) => 1 + ((nth * 7_919) % size.threads)
      return {
        'a turn on the long thread': () => agent.generate('And?', { memory: { thread: longThread.threadId, resource: longThread.resourceId } }),
        'a turn on one of the threads': (nth) => agent.generate('And?', { memory: { thread: `seeded-${some(nth)}`, resource: `resource-${some(nth) % 1000}` } }),
        'a persisted signal on the long thread': (nth) => agent.sendSignal(
          { type: 'reactive', contents: `Event ${nth}.` }, { ...longThread, ifIdle: { behavior: 'persist' }, ifActive: { behavior: 'persist' } },
        ).stored,
        'the newest 20 messages': () => memory.recall({ ...longThread, perPage: 20 }),
        '20 threads of a resource': (nth) => memory.listThreads({ filter: { resourceId: `resource-${some(nth) % 1000}` }, perPage: 20 }),
        'a thread by its id': (nth) => memory.getThreadById({ threadId: `seeded-${some(nth)}` }),
        'a sweep': () => storage.listOrphans(Date.now(), 100),
      }
    }
    const small = await open('small', { messages: 1_000, threads: 1_000 })
    const large = await open('large', { messages, threads })
    await within(server.url, (query) => query('CHECKPOINT'))
    return await report(small, large, times)
  } finally {
    await Promise.all(heeds.map((heed) => heed.close()))
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function report(small: Calls, large: Calls, times: number): Promise<number> {
  print(`| call, ${times} times each | small: median, p95 ms | large: median, p95 ms | ratio of medians |\n|---|---|---|---|`)
  let slower = 0
  for (const [name, call] of Object.entries(small)) {
    const [few, many]: [number[], number[]] = [[], []]
    for (let nth = -20; nth < times; nth += 1) {
      for (const [taken, act] of [[few, call], [many, large[name] ?? call]] as const) {
        const began = performance.now()
        await act(nth + 20)
        if (nth >= 0) taken.push(performance.now() - began)
      }
    }
    const ratio = at(many, 0.5) / at(few, 0.5)
    if (ratio > most) slower += 1
    const shown = (taken: number[]) => `${at(taken, 0.5).toFixed(2)}, ${at(taken, 0.95).toFixed(2)}`
    print(`| ${name} | ${shown(few)} | ${shown(many)} | ${ratio.toFixed(2)} |`)
  }
  print(slower === 0 ? `No call takes more than ${most} times as long.` : `${slower} calls take more than ${most} times as long.`)
  return slower === 0 ? 0 : 1
}

function at(taken: readonly number[], share: number): number {
  return taken.toSorted((a, b) => a - b)[Math.floor(taken.length * share)] ?? NaN
}

type Query = (text: string) => Promise<{ rows: Array<Record<string, unknown>> }>

async function within<Result>(url: string, act: (query: Query) => Promise<Result>): Promise<Result> {
  const client = (await connectClient({ connectionString: url })) as unknown as { query: Query; end(): Promise<void> }
  try {
    return await act((text) => client.query(text))
  } finally {
    await client.end()
  }
}
