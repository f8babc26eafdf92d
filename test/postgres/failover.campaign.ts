import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { afterEach, describe, expect, it } from 'vitest'
import { checkPostgres } from '../../src/cli/doctor/postgres.ts'
import { Agent, createTool, Heed, Memory, type Logger } from '../../src/index.ts'
import { acceptOne, send, threadId, wide, windows } from '../../src/store/conformance/fixture.ts'
import { note, scope } from '../../src/store/conformance/notifications/fixture.ts'
import type { Rewound } from '../../src/store/contract/threads.ts'
import { PostgresStore } from '../../src/store/postgres/index.ts'
import { connectClient } from '../../src/store/postgres/sessions.ts'
import { scriptedModel, type ScriptedStep } from '../../src/testing/index.ts'
import { transactionPooler } from './pooler.ts'
import { proxyTo } from './proxy.ts'
import { noPostgres, startReplica, startServer, whyNoPostgres } from './server.ts'

let folders = 0
const ends: Array<() => Promise<void> | void> = []
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end()
})

async function query(port: number, text: string): Promise<Array<Record<string, unknown>>> {
  const client = (await connectClient({ connectionString: `postgresql://heed@127.0.0.1:${port}/postgres` })) as unknown as {
    query(text: string): Promise<{ rows: Array<Record<string, unknown>> }>; end(): Promise<void>
  }
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

/** A server and its standby. Clients reach one of them through a door, and the standby its origin through a feed. */
async function pair() {
  const folder = join(tmpdir(), `postgres-failover-${process.pid}-${folders++}`)
  const primary = await startServer(`${folder}-primary`, {}, { trusting: true })
  await primary.stop()
  const feed = await proxyTo(primary.port)
  const standby = await startReplica(primary, `${folder}-standby`, feed.port)
  await primary.restart()
  const door = await proxyTo(primary.port)
  ends.push(() => rmSync(`${folder}-primary`, { recursive: true }), () => rmSync(`${folder}-standby`, { recursive: true }), () => primary.stop(), () => standby.stop(), () => feed.close(), () => door.close())
  return {
    primary, standby, door,
    /** The standby has what its origin has stored until now. */
    async caughtUp() {
      const [now] = await query(primary.port, 'SELECT pg_current_wal_lsn()::text AS lsn')
      await expect.poll(() => query(standby.port, `SELECT coalesce(pg_last_wal_replay_lsn() >= '${String(now?.lsn)}'::pg_lsn, false) AS done`)).toEqual([{ done: true }])
    },
    /** From here on the standby gets nothing. */
    lag() {
      feed.refusing = true
      feed.cut()
    },
    /** The first server is gone, and clients reach the standby, which accepts writes. */
    async failOver() {
      await primary.stop()
      await query(standby.port, 'SELECT pg_promote()')
      door.to = standby.port
      door.cut()
    },
  }
}

interface Logged {
  level: string
  message: string
  fields: Record<string, unknown>
}

/** A model call: whose words were new to it, and from when until when it ran. */
interface Call {
  words: string
  from: number
  to: number
  aborted?: unknown
}

/** The last words of the user, and whether the tool was called since. */
function wordsOf({ prompt }: Pick<LanguageModelV4CallOptions, 'prompt'>): string {
  const asked = prompt.filter(({ role }) => role === 'user').at(-1)
  return `${/"text":"([^"]*)"/.exec(JSON.stringify(asked?.content))?.[1] ?? ''}${prompt.at(-1)?.role === 'tool' ? ' noted' : ''}`
}

/** A process on the database. `answer`: how a call is answered. */
async function processOn(port: number, answer: (words: string) => ScriptedStep) {
  const calls: Call[] = []
  const logged: Logged[] = []
  const effects: string[] = []
  const log = (level: string) => (message: string, fields: Record<string, unknown> = {}) => void logged.push({ level, message, fields })
  const logger: Logger = { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') }
  const note = createTool({ id: 'note', execute: async () => effects.push('noted') })
  const model = scriptedModel(({ options }) => {
    const call: Call = { words: wordsOf(options), from: performance.now(), to: Infinity }
    calls.push(call)
    options.abortSignal?.addEventListener('abort', () => Object.assign(call, { to: performance.now(), aborted: options.abortSignal?.reason as unknown }))
    return answer(call.words)
  })
  const store = new PostgresStore({ connectionString: `postgresql://heed@127.0.0.1:${port}/postgres`, max: 4 })
  const agent = new Agent({ id: 'guide', model, tools: { note }, memory: new Memory({ options: { semanticRecall: false } }) })
  const heed = new Heed({ agents: { agent }, storage: store, logger })
  ends.push(() => heed.close())
  await heed.start()
  return { agent, heed, store, calls, logged, effects, rewinds: () => logged.filter(({ fields }) => fields.code === 'store_rewound') }
}

const one = { threadId: 'one', resourceId: 'ada' }
const two = { threadId: 'two', resourceId: 'ada' }
const said = (store: PostgresStore, threadId: string) => store.listRows({ threadId }, { limit: 100 }).then(({ rows }) => rows.flatMap(({ content }) => content.parts.flatMap((part) => (part.type === 'text' ? part.text : []))))

describe.skipIf(noPostgres)(`a failover to a standby that streams${whyNoPostgres}`, () => {
  it('[Q2.11] [Q2.12] that lags: every process takes another name, no run goes on beside its repetition, and the lost commits are reported', async () => {
    const servers = await pair()
    const first = Promise.withResolvers<void>()
    let isOver = false
    // Until the failover the answers to `Hello` and `Then` wait.
    const answer = (words: string) => {
      if (words === 'Hello') return { toolCalls: [{ toolName: 'note', input: {} }] }
      if (words === 'Hello noted') return isOver ? { text: ['Hello again.'] } : { text: ['Hello to you.'], gate: { parts: 0, until: first.promise } }
      if (words === 'Then') return isOver ? { text: ['And then.'] } : { text: ['Never stored.'], gate: { parts: 1, until: new Promise<void>(() => {}) } }
      return { text: [`Yes: ${words}`] }
    }
    const a = await processOn(servers.door.port, answer)
    const b = await processOn(servers.door.port, answer)
    const owners = async (port: number) => (await query(port, 'SELECT owner FROM heed_processes WHERE closed_at IS NULL ORDER BY owner')).map(({ owner }) => String(owner))
    const before = await owners(servers.primary.port)
    expect(before).toHaveLength(2)
    const chunks: Array<{ type: string; reason?: unknown }> = []
    const subscription = await b.agent.subscribeToThread(one)
    void (async () => {
      for await (const chunk of subscription.stream) chunks.push({ type: chunk.type, ...('data' in chunk && { reason: (chunk.data as { reason?: unknown }).reason }) })
    })()

    // The standby has the first step of a run, and a message that waits for its end.
    await a.agent.sendMessage({ contents: 'Hello', id: 'hello' }, one).stored
    await expect.poll(() => a.calls.map(({ words }) => words)).toEqual(['Hello', 'Hello noted'])
    await a.agent.queueMessage({ contents: 'Then', id: 'then' }, one).stored
    await servers.caughtUp()
    const findings = (await checkPostgres(b.store, 'it')).filter(({ status }) => status !== 'ok').map(({ check }) => check)
    expect(findings).toEqual(['durability', 'standbys'])
    servers.lag()

    // It does not have the end of the run, the next run under the same lease, and what is sent meanwhile.
    first.resolve()
    await expect.poll(() => a.calls.map(({ words }) => words)).toEqual(['Hello', 'Hello noted', 'Then'])
    const entering = a.agent.sendMessage({ contents: 'More', id: 'more' }, one)
    await entering.stored
    await b.agent.sendMessage({ contents: 'Lost', id: 'lost' }, two).stored
    const inbox = (await b.store.getStore('notifications'))!
    for (const id of ['n1', 'n2', 'n3']) await inbox.ingest([note(id)])
    const { cursor } = await inbox.listChanges({ resourceId: scope.resourceId, limit: 10 })
    await expect.poll(() => said(b.store, two.threadId)).toEqual(['Lost', 'Yes: Lost'])
    const held = (await a.store.getThread(one))!
    expect(held).toMatchObject({ status: 'running', owner: expect.stringMatching(/./) as string })

    isOver = true
    const failed = performance.now()
    await servers.failOver()
    await expect.poll(() => [a.rewinds().length, b.rewinds().length]).toEqual([1, 1])
    for (const { rewinds } of [a, b]) expect(rewinds()[0]).toMatchObject({ level: 'error', fields: { from: '00000001', to: '00000002', lost: expect.any(Number) as number } })
    expect([a, b].map(({ rewinds }) => Number(rewinds()[0]?.fields.lost) > 0)).toEqual([true, true])
    expect(a.calls[2]?.aborted).toMatchObject({ code: 'store_rewound' })
    expect(await entering.outcome).toMatchObject({ action: 'rejected', code: 'store_rewound' })

    // What the standby has goes on, once: the tool of the first step is not called again.
    await expect.poll(() => said(a.store, one.threadId)).toEqual(['Hello', 'Hello again.', 'Then', 'And then.'])
    await expect.poll(async () => (await a.store.getThread(one))?.status).toBe('idle')
    expect([...a.effects, ...b.effects]).toEqual(['noted'])
    const again = [...a.calls, ...b.calls].filter(({ from }) => from > failed)
    expect(again.map(({ words }) => words)).toEqual(['Hello noted', 'Then'])
    // A process that does not know yet that its lease is lost relies on it for ten seconds.
    expect((again[0]?.from ?? 0) - failed).toBeGreaterThan(9_900)
    expect(again[0]?.from).toBeGreaterThan(a.calls[2]?.to ?? Infinity)
    const now = await owners(servers.standby.port)
    expect(now).toEqual(before.map((owner) => `${owner}~1`))
    expect((await a.store.getThread(one))!.epoch).toBeGreaterThan(2 ** 32)
    await expect.poll(() => chunks.filter(({ reason }) => reason === 'replaced').length).toBe(1)
    expect(await query(servers.standby.port, 'SELECT count(*)::int AS rows, max(seq)::int AS last FROM heed_messages')).toEqual([{ rows: 6, last: 6 }])

    // What was lost is stored when it is sent again, and what was not is a duplicate.
    expect((await b.agent.sendMessage({ contents: 'Lost', id: 'lost' }, two).acceptance).duplicate).toBe(false)
    expect((await b.agent.sendMessage({ contents: 'More', id: 'more' }, one).acceptance).duplicate).toBe(false)
    expect((await b.agent.sendMessage({ contents: 'Hello', id: 'hello' }, one).acceptance).duplicate).toBe(true)
    await expect.poll(() => said(b.store, two.threadId)).toEqual(['Lost', 'Yes: Lost'])
    await expect.poll(() => said(b.store, one.threadId)).toEqual(['Hello', 'Hello again.', 'Then', 'And then.', 'More', 'Yes: More'])
    // A reader of an inbox has seen changes that are lost, and misses none of those that follow.
    for (const id of ['m1', 'm2', 'm3', 'm4']) await inbox.ingest([note(id)])
    const changes: string[] = []
    for (let after = cursor, more = true; more;) {
      const page = await inbox.listChanges({ resourceId: scope.resourceId, after, limit: 3 })
      changes.push(...page.changes.map(({ record }) => record.id))
      ;({ cursor: after, more } = page)
    }
    expect(changes).toEqual(['m1', 'm2', 'm3', 'm4'])
    // Writes of the run that was stopped are void.
    await expect(a.store.commitStep({ threadId: one.threadId, owner: held.owner ?? '', epoch: held.epoch }, { runId: held.runId ?? '', step: 1, rows: [] })).rejects.toMatchObject({ code: 'fenced' })
    subscription.unsubscribe()
  })

  it('[Q2.11] that commits wait for: nothing is lost, and every process goes on with all that was confirmed', async () => {
    const servers = await pair()
    await query(servers.primary.port, `ALTER SYSTEM SET synchronous_standby_names = 'standby'`)
    await query(servers.primary.port, 'SELECT pg_reload_conf()')
    await expect.poll(() => query(servers.primary.port, `SELECT sync_state FROM pg_stat_replication`)).toEqual([{ sync_state: 'sync' }])
    const answer = (words: string) => ({ text: [`Yes: ${words}`] })
    const [a, b] = [await processOn(servers.door.port, answer), await processOn(servers.door.port, answer)]
    const sent = Array.from({ length: 40 }, (_, nth) => ({ contents: `m${nth}`, id: `m${nth}` }))
    const confirmed = new Set<string>()
    const sending = sent.map((message, nth) => (nth % 2 ? a : b).agent.sendMessage(message, { threadId: `t${nth % 5}`, resourceId: 'ada' }).stored.then(() => confirmed.add(message.id), () => {}))
    await expect.poll(() => confirmed.size).toBeGreaterThan(3)
    await servers.failOver()
    await Promise.all(sending)
    await expect.poll(() => [a.rewinds().length, b.rewinds().length]).toEqual([1, 1])
    expect([...a.rewinds(), ...b.rewinds()].map(({ level, fields }) => [level, fields.lost])).toEqual([['warn', 0], ['warn', 0]])
    // Those that were not confirmed are sent again by their sender.
    for (const message of sent) await a.agent.sendMessage(message, { threadId: `t${Number(message.id.slice(1)) % 5}`, resourceId: 'ada' }).stored
    const texts = async () => (await Promise.all([0, 1, 2, 3, 4].map((nth) => said(a.store, `t${nth}`)))).flat()
    await expect.poll(async () => (await texts()).filter((text) => text.startsWith('m')).toSorted()).toEqual(sent.map(({ contents }) => contents).toSorted())
    await expect.poll(async () => (await query(servers.standby.port, `SELECT count(*)::int AS open FROM heed_threads WHERE status <> 'idle' OR due_at IS NOT NULL`))).toEqual([{ open: 0 }])
    expect((await texts()).filter((text) => text.startsWith('Yes')).length).toBeGreaterThan(0)
  })

  it('[Q2.11] with connections that still lead to the first server, and to a replica: they are not used any more, and every write is done', async () => {
    const servers = await pair()
    const store = new PostgresStore({ connectionString: `postgresql://heed@127.0.0.1:${servers.door.port}/postgres`, max: 2 })
    ends.push(() => store.close())
    const rewinds: Rewound[] = []
    await store.onRewound((rewound) => void rewinds.push(rewound))
    const both = (name: string) => Promise.all([0, 1].map((nth) => acceptOne(store, send(`${name}${nth}`, { threadId: `${name}${nth}` }))))
    await both('before')
    await servers.caughtUp()
    // A new connection leads to a server that is still a replica: it is no place for a write.
    servers.door.to = servers.standby.port
    const ofStore = `SELECT pid FROM pg_stat_activity WHERE application_name = 'heed' AND pid <> pg_backend_pid() ORDER BY backend_start`
    const [first] = await query(servers.primary.port, `${ofStore} LIMIT 1`)
    await query(servers.primary.port, `SELECT pg_terminate_backend(${String(first?.pid)})`)
    const [other, ...rest] = await Promise.all(['replica', 'primary'].map((name) => acceptOne(store, send(name, { threadId: name }))))
    expect([other, ...rest].map((accepted) => accepted?.duplicate)).toEqual([false, false])
    // It is promoted, and the first server goes on beside it.
    await servers.caughtUp()
    await query(servers.standby.port, 'SELECT pg_promote()')
    await expect.poll(async () => {
      await Promise.allSettled(Array.from({ length: 4 }, (_, nth) => acceptOne(store, send(`s${nth}`, { threadId: `s${nth}` }))))
      // Ends one connection to the first server, so that the next one leads to the second.
      if (rewinds.length === 0) await query(servers.primary.port, `SELECT pg_terminate_backend(pid) FROM (${ofStore} LIMIT 1) AS found`)
      return rewinds.length
    }).toBe(1)
    for (let round = 0; round < 5; round++) await both(`after${round}`)
    expect(await query(servers.standby.port, `SELECT count(*)::int AS stored FROM heed_threads WHERE id LIKE 'after%'`)).toEqual([{ stored: 10 }])
    expect(rewinds).toMatchObject([{ from: '00000001', to: '00000002' }])
  })

  it('[Q2.11] [Q2.12] behind a pooler that keeps the connections: the next write finds it, and leases of before are void', async () => {
    const servers = await pair()
    const pooler = await transactionPooler({ port: servers.door.port, user: 'heed', database: 'postgres' }, 2)
    ends.push(() => pooler.close())
    const store = new PostgresStore({ connectionString: `postgresql://heed@127.0.0.1:${pooler.port}/postgres`, max: 2 })
    ends.push(() => store.close())
    const rewinds: Rewound[] = []
    await store.onRewound((rewound) => void rewinds.push(rewound))
    const one = await acceptOne(store, { ...send('a'), claim: { owner: 'p1' } })
    await servers.caughtUp()
    servers.lag()
    await store.beginRun(one.fence!, windows(wide))
    await servers.failOver()
    await pooler.renew()
    await expect(store.heartbeat('p1', store.now() + 10_000)).rejects.toMatchObject({ code: 'store_rewound', retryable: true })
    expect(rewinds).toMatchObject([{ lost: 1, floor: 2 ** 32, from: '00000001', to: '00000002' }])
    expect(rewinds[0]?.restMs).toBeGreaterThan(5_000)
    // The claim is there, and its epoch is void.
    await expect(store.beginRun(one.fence!, windows(wide))).rejects.toMatchObject({ code: 'fenced' })
    await store.resign('p1')
    // What is sent is stored, and gets no lease yet.
    const next = await acceptOne(store, { ...send('b', { threadId: 'other' }), claim: { owner: 'p2' } })
    expect([next.route, next.fence, await store.claim('other', 'p2'), await store.claim(threadId, 'p2')]).toEqual(['wake', undefined, null, null])
    await expect.poll(() => store.claim('other', 'p2')).toMatchObject({ fence: { epoch: 2 ** 32 + 2 } })
    expect(await store.lifeOf(threadId)).toBe(2 ** 32)
    expect(await store.claim(threadId, 'p2')).toMatchObject({ fence: { owner: 'p2', epoch: 2 ** 32 + 1 } })
  })
})
