import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { Agent, createTool, Heed, Memory, silentLogger } from '../../src/index.ts'
import { PostgresStore } from '../../src/store/postgres/index.ts'
import { Session } from '../../src/store/postgres/sessions.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { soon } from '../thread/said.ts'
import { longThread, seed } from './seeding.ts'
import { newSchema, noPostgres, sharedServer, whyNoPostgres } from './server.ts'
import { inDatabase } from './stores.ts'

/** A schema of its own, which is dropped: what it held is in no statistics of another test. */
async function newDatabase(): Promise<{ schema: string; open(): PostgresStore }> {
  const [schema, connectionString] = [newSchema(), await sharedServer()]
  onTestFinished(() => inDatabase((query) => query(`DROP SCHEMA "${schema}" CASCADE`)).then(() => {}))
  const store = new PostgresStore({ connectionString, schemaName: schema, max: 2 })
  await store.open()
  await store.close()
  return { schema, open: () => new PostgresStore({ connectionString, schemaName: schema, max: 4 }) }
}

/** An agent that calls a tool before each answer. */
function guide(): Agent {
  const model = scriptedModel((call) => (call.prompt.at(-1)?.role === 'tool' ? { text: 'It is 7.' } : { toolCalls: [{ toolName: 'clock', input: {} }] }), { loop: true })
  const clock = createTool({ id: 'clock', execute: async () => 7 })
  return new Agent({ id: 'guide', model, tools: { clock }, memory: new Memory({ lastMessages: 20, semanticRecall: false }) })
}

interface PlanNode {
  'Node Type': string
  'Relation Name'?: string
  Plans?: PlanNode[]
}

/** Tables of one row, of one row a process, or of one row a failover. */
const small = new Set(['heed_processes', 'heed_epochs', 'heed_timelines', 'heed_usage', 'heed_recall', 'heed_recall_progress', 'heed_pruning', 'heed_schema', 'heed_purges'])

function* scanned(node: PlanNode): Generator<string> {
  if (node['Node Type'] === 'Seq Scan' && node['Relation Name']?.startsWith('heed_') && !small.has(node['Relation Name'])) yield node['Relation Name']
  for (const below of node.Plans ?? []) yield* scanned(below)
}

describe.skipIf(noPostgres)(`a large database${whyNoPostgres}`, () => {
  it('[Q1.6] a turn, lists, an inbox and a sweep read by indexes alone', async () => {
    const { schema, open } = await newDatabase()
    await inDatabase((query) => seed(query, schema, { messages: 20_000, threads: 20_000 }))
    const texts = new Set<string>()
    const { batch } = Session.prototype
    const sent = vi.spyOn(Session.prototype, 'batch').mockImplementation(function (this: Session, statements) {
      for (const { text } of statements) if (/^\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b/.test(text)) texts.add(text)
      return batch.call(this, statements)
    })
    onTestFinished(() => sent.mockRestore())
    const agent = guide()
    const storage = open()
    const heed = new Heed({ agents: { agent }, storage, logger: silentLogger })
    onTestFinished(() => heed.close())
    await heed.start()
    await agent.sendMessage('What time is it?', longThread).outcome
    await agent.queueMessage('And now?', longThread).outcome
    await soon(() => agent.activeRun(longThread)).toBeNull()
    const memory = await agent.getMemory()
    await memory.recall({ ...longThread, perPage: 20 })
    await memory.listThreads({ filter: { resourceId: 'resource-7' }, perPage: 20 })
    await memory.getThreadById({ threadId: 'seeded-9' })
    await agent.sendNotificationSignal({ source: 'mail', kind: 'new', summary: 'A letter.', priority: 'medium' }, longThread)
    const inbox = await storage.getStore('notifications')
    expect((await inbox?.listNotifications({ ...longThread, limit: 10 }))?.notifications).toHaveLength(1)
    expect(texts.size).toBeGreaterThan(40)

    const wrong: string[] = []
    await inDatabase(async (query) => {
      const plans = async (which: string) => {
        for (const text of texts) {
          const { rows } = await query(`EXPLAIN (GENERIC_PLAN, FORMAT JSON) ${text}`)
          const [{ Plan }] = (rows[0] as { 'QUERY PLAN': [{ Plan: PlanNode }] })['QUERY PLAN']
          for (const table of scanned(Plan)) if (which !== 'seeded' || /^heed_(?:threads|messages|mailbox|runs)$/.test(table)) wrong.push(`${which}: ${table} by ${text}`)
        }
      }
      await plans('seeded')
      // The other tables are empty here, so the planner would read them whole: it does so now only where no index can answer.
      await query('SET enable_seqscan = off')
      await plans('indexed')
    })
    expect(wrong).toEqual([])
  })

  it('[Q1.7] steps of a run and heartbeats change rows without writing to an index', async () => {
    const { schema, open } = await newDatabase()
    const agent = guide()
    const storage = open()
    const heed = new Heed({ agents: { agent }, storage, logger: silentLogger })
    for (let turn = 0; turn < 10; turn += 1) await agent.generate('What time is it?', { memory: { thread: 't', resource: 'r' } })
    for (let beat = 0; beat < 20; beat += 1) await storage.heartbeat('a process', Date.now() + 10_000)
    await heed.close()
    // A connection reports what it did when it ends.
    const { rows } = await inDatabase((query) => query(`
      SELECT relname AS name, n_tup_upd::int AS updates, n_tup_hot_upd::int AS hot FROM pg_stat_user_tables WHERE schemaname = '${schema}' AND n_tup_upd > 0 ORDER BY 1`))
    const hot = (name: string) => {
      const found = rows.find((row) => row.name === `heed_${name}`)
      return [Number(found?.updates) >= 20, Number(found?.hot) / Number(found?.updates)]
    }
    expect(hot('processes')).toEqual([true, 1])
    // Of the changes of a turn with one tool call, the wake and the end move the thread in the lists of threads.
    expect(hot('threads')).toEqual([true, expect.toSatisfy((share: number) => share >= 0.6)])
    expect(hot('runs')).toEqual([true, expect.toSatisfy((share: number) => share >= 0.6)])
  })
})
