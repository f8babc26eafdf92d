import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { Agent, createTool, Memory, type Heed } from '../../src/index.ts'
import type { ThreadStore } from '../../src/store/contract/threads.ts'
import { PostgresStore } from '../../src/store/postgres/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { gate, idle, soon } from '../thread/said.ts'
import { mortal, openHeed } from '../thread/places.ts'
import { newSchema, noPostgres, password, sharedServer, whyNoPostgres } from './server.ts'
import { inDatabase } from './stores.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }
const hour = 3_600_000
/** Longer than a heartbeat counts, and longer than the time between two sweeps. */
const lease = 10_000
const sweep = 7_000

/**
 * A database whose clock can be set. All statements of its role find another `clock_timestamp()` before that of PostgreSQL, so that the texts
 * under test are those that run everywhere.
 */
async function databaseWithClock(): Promise<{ open(): PostgresStore; jump(ms: number): Promise<void> }> {
  const name = newSchema()
  const server = new URL(await sharedServer())
  await inDatabase((query) => query(`
    CREATE SCHEMA ${name}_clock;
    CREATE TABLE ${name}_clock.jumps (ms bigint);
    CREATE FUNCTION ${name}_clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
      $$ SELECT pg_catalog.clock_timestamp() + (SELECT coalesce(sum(ms), 0) FROM ${name}_clock.jumps) * interval '1 millisecond' $$;
    CREATE ROLE ${name} LOGIN SUPERUSER PASSWORD '${password}';
    ALTER ROLE ${name} SET search_path = ${name}_clock, pg_catalog`))
  onTestFinished(() => inDatabase((query) => query(`DROP SCHEMA ${name}, ${name}_clock CASCADE; DROP ROLE ${name}`)).then(() => {}))
  server.username = name
  return {
    open: () => new PostgresStore({ connectionString: server.href, schemaName: name, max: 4 }),
    jump: (ms) => inDatabase((query) => query(`INSERT INTO ${name}_clock.jumps VALUES (${ms})`)).then(() => {}),
  }
}

/** An agent whose tool waits until it is let go, on a Heed whose sweeps and heartbeats come when the test says so. */
async function processOn(store: ThreadStore) {
  const hold = gate()
  const count = { starts: 0, sweeps: 0, beats: 0 }
  const model = scriptedModel((call) => (call.prompt.at(-1)?.role === 'tool' ? { text: 'Done.' } : { toolCalls: [{ toolName: 'work', input: {} }] }), { loop: true })
  const work = createTool({
    id: 'work',
    async execute() {
      count.starts += 1
      await hold.promise
      return 'worked'
    },
  })
  const agent: Agent = new Agent({ id: 'guide', model, tools: { work }, memory: new Memory({ semanticRecall: false }) })
  const clock = virtualClock()
  const counted = new Proxy(store, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key)
      if (typeof value !== 'function') return value
      return (...given: unknown[]): unknown => {
        const result: unknown = Reflect.apply(value, target, given)
        const done = key === 'listOrphans' ? 'sweeps' : key === 'heartbeat' ? 'beats' : undefined
        if (done && result instanceof Promise) result.then(() => (count[done] += 1), () => {})
        return result
      }
    },
  })
  const heed: Heed<{ agent: Agent }> = openHeed({ agent }, counted, { clock })
  await heed.start()
  return {
    agent, heed, count, hold,
    /** Moves the time of this process until it has swept and written its heartbeat once more, and all that follows has happened. */
    async sweep() {
      const before = { ...count }
      await clock.advance(sweep)
      await soon(() => count.sweeps > before.sweeps && count.beats > before.beats).toBe(true)
    },
  }
}

describe.skipIf(noPostgres)(`the clock of the database jumps${whyNoPostgres}`, () => {
  it.each([hour, -hour])('[R1.11] by %i ms: a live process keeps its run, and that of a dead one goes on after a lease time', async (jump) => {
    const database = await databaseWithClock()
    let passed = 0
    const real = performance.now.bind(performance)
    const watch = vi.spyOn(performance, 'now').mockImplementation(() => real() + passed)
    onTestFinished(() => watch.mockRestore())

    const dying = mortal(database.open())
    const first = await processOn(dying.store)
    await first.agent.sendMessage('Work.', thread).outcome
    await soon(() => first.count.starts).toBe(1)
    const second = await processOn(database.open())
    const store = database.open()
    onTestFinished(() => store.close())
    const { owner, epoch } = (await store.getThread(thread))!

    await database.jump(jump)
    // Every heartbeat seems to have expired now. The first process writes its next one after the second has looked for such.
    await second.sweep()
    await first.sweep()
    passed += sweep
    await second.sweep()
    await first.sweep()
    expect(await store.getThread(thread)).toMatchObject({ status: 'running', owner, epoch })

    dying.die()
    await first.heed.close()
    await second.sweep()
    expect(second.count.starts).toBe(0)
    passed += 2 * lease
    await database.jump(lease)
    await second.sweep()
    second.hold.open()
    await idle(second.agent, thread)
    // The call of the dead process was started: it counts as interrupted, and is not repeated.
    expect([first.count.starts, (await store.getThread(thread))!.epoch]).toEqual([1, epoch + 1])
  })
})
