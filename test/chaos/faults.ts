import { execFileSync } from 'node:child_process'
import type { Chance } from '../../src/store/conformance/fixture.ts'
import { pause } from '../crash/restless-model.ts'
import type { Cluster } from './cluster.ts'
import type { Network, Weather } from './network.ts'

/** Where a fault falls: on a node and its network, on the database, or on Redis. Those of one place come one after the other. */
export type Place = 'node' | 'database' | 'redis'

interface Fault {
  name: string
  place: Place
  /** How often it is drawn among those of its place. */
  share: number
  /** Ends when the harm is over. False if it could not be done. */
  act(cluster: Cluster, chance: Chance, slot: number): Promise<boolean>
}

/** A lease is ten seconds: one pause of four is longer. */
function pauseLength(chance: Chance): number {
  return chance.below(4) === 0 ? 10_500 + chance.below(3_000) : 500 + chance.below(3_000)
}

const nodeFaults: Fault[] = [
  {
    name: 'node killed', place: 'node', share: 15,
    async act(cluster, chance, slot) {
      await cluster.end(slot, 'SIGKILL')
      await pause(chance.below(1_500))
      cluster.start(slot)
      return true
    },
  },
  {
    name: 'node paused', place: 'node', share: 10,
    async act(cluster, chance, slot) {
      cluster.signal(slot, 'SIGSTOP')
      await pause(pauseLength(chance))
      cluster.signal(slot, 'SIGCONT')
      return true
    },
  },
  {
    name: 'node drained', place: 'node', share: 6,
    async act(cluster, _, slot) {
      await cluster.end(slot, 'SIGTERM')
      cluster.start(slot)
      return true
    },
  },
  { name: 'clock jumps', place: 'node', share: 4, act: async (cluster, chance, slot) => cluster.tell(slot, { jump: (chance.below(2) * 2 - 1) * chance.below(30_000) }) },
  ...weathers('connections cut', 12, (network) => network.cut()),
  ...weathers('cut within a batch', 14, (network, chance) => network.cutWithin(() => chance.below(4_000))),
  ...weathers('network hangs', 8, () => ({ kind: 'hang' })),
  ...weathers('answers lost', 8, () => ({ kind: 'no answers' })),
  ...weathers('requests held up', 6, () => ({ kind: 'no requests' })),
  ...weathers('network late', 6, (_, chance) => ({ kind: 'delay', ms: 5 + chance.below(80) })),
  ...weathers('network slow', 4, () => ({ kind: 'slow' })),
  ...weathers('connections refused', 6, (network) => {
    network.cut()
    return { kind: 'refuse' }
  }),
]

/** A weather of the network of a node: that to the database or, where there is one, to Redis. */
function weathers(name: string, share: number, weather: (network: Network, chance: Chance) => Weather | void): Fault[] {
  return [{
    name, place: 'node', share,
    async act(cluster, chance, slot) {
      const network = chance.pick(cluster.networksOf(slot))
      const changed = weather(network, chance)
      if (!changed) return true
      network.weather = changed
      await pause(200 + chance.below(3_000))
      network.weather = { kind: 'fair' }
      // Half of the connections do not survive the end of it.
      if (chance.below(2) === 0) network.cut()
      return true
    },
  }]
}

const databaseFaults: Fault[] = [
  { name: 'backend ended', place: 'database', share: 30, act: (cluster, chance) => terminate(cluster, 'TRUE', `ORDER BY md5(pid::text || '${chance.below(1_000)}') LIMIT ${1 + chance.below(3)}`) },
  { name: 'listener ended', place: 'database', share: 12, act: (cluster) => terminate(cluster, `query LIKE 'LISTEN%' OR query LIKE '%pg_advisory_lock_shared%'`) },
  { name: 'waiting backend ended', place: 'database', share: 8, act: (cluster) => lockThreads(cluster, 600, () => terminate(cluster, `wait_event_type = 'Lock'`)) },
  { name: 'rows locked', place: 'database', share: 10, act: (cluster, chance) => lockThreads(cluster, 500 + chance.below(6_000)) },
  {
    name: 'server restarted', place: 'database', share: 8,
    async act({ server }) {
      await server.restart()
      return true
    },
  },
  {
    name: 'backend killed', place: 'database', share: 6,
    async act(cluster) {
      const { rows } = await cluster.query(`SELECT pid FROM pg_stat_activity WHERE application_name = 'heed' LIMIT 1`)
      const pid = Number(rows[0]?.pid ?? 0)
      // All other backends end with it, and the server recovers.
      if (pid > 0) process.kill(pid, 'SIGKILL')
      await pause(500)
      return pid > 0
    },
  },
  {
    name: 'server paused', place: 'database', share: 8,
    async act({ server }, chance) {
      const all = [server.pid, ...childrenOf(server.pid)]
      for (const pid of all) signal(pid, 'SIGSTOP')
      await pause(500 + chance.below(4_000))
      for (const pid of all) signal(pid, 'SIGCONT')
      return true
    },
  },
  {
    name: 'no connection free', place: 'database', share: 8,
    async act(cluster, chance) {
      await terminate(cluster, 'TRUE')
      return cluster.occupy(200 + chance.below(2_000))
    },
  },
]

const redisFaults: Fault[] = [
  {
    name: 'redis killed', place: 'redis', share: 4,
    async act({ redis }, chance) {
      await redis?.kill()
      await pause(chance.below(1_500))
      await redis?.run()
      return redis !== undefined
    },
  },
  ...[['FLUSHALL'], ['CLIENT', 'KILL', 'TYPE', 'normal'], ['CLIENT', 'PAUSE', '1500'], ['DEBUG', 'SLEEP', '2']].map((command): Fault => ({
    name: `redis ${command.join(' ').toLowerCase()}`, place: 'redis', share: 2,
    act: async ({ redis }) => redis !== undefined && redis.command(...command).then(() => true, () => false),
  })),
]

const faults: readonly Fault[] = [...nodeFaults, ...databaseFaults, ...redisFaults]

export function drawFault(chance: Chance, place: Place): Fault {
  const among = faults.filter((fault) => fault.place === place)
  let nth = chance.below(among.reduce((sum, { share }) => sum + share, 0))
  for (const fault of among) if ((nth -= fault.share) < 0) return fault
  throw new Error(`there is no fault for ${place}`)
}

async function terminate(cluster: Cluster, where: string, which = ''): Promise<boolean> {
  const { rows } = await cluster.query(`
    SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE application_name = 'heed' AND (${where}) ${which}) chosen`)
  return rows.length > 0
}

/** Another client locks the rows of all threads. */
function lockThreads({ query, schema }: Cluster, ms: number, meanwhile: () => Promise<boolean> = async () => true): Promise<boolean> {
  return query(`SELECT 1 FROM "${schema}".heed_threads ORDER BY id FOR UPDATE`, async () => {
    await pause(ms)
    return meanwhile()
  })
}

function childrenOf(pid: number): number[] {
  try {
    return execFileSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' }).trim().split('\n').map(Number)
  } catch {
    return []
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It has ended.
  }
}
