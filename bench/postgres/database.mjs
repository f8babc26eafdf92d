import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { startServer } from '../../test/postgres/server.ts'

/**
 * A PostgreSQL server of its own, as durable as it comes: every commit is flushed. It makes no checkpoint while it is measured: the first change
 * of a page after one is written whole, which would be counted on the side that happens to be measured then.
 */
export async function newServer() {
  const settings = { fsync: 'on', full_page_writes: 'on', autovacuum: 'on', shared_buffers: '256MB', deadlock_timeout: '1s', checkpoint_timeout: '1h', max_wal_size: '8GB' }
  const server = await startServer(join(tmpdir(), `bench-postgres-${process.pid}`), settings, { trusting: true })
  // Sides end their process when they have reported.
  process.once('exit', () => process.kill(server.pid, 'SIGQUIT'))
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  const one = async (text) => Object.values((await client.query(text)).rows[0])[0]
  return { url: server.url, port: server.port, cpu: () => cpuOf(server.pid), log: async () => Number(await one(`SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')`)) }
}

/** The CPU that a server and its sessions have used, in milliseconds; NaN where the system does not tell. */
function cpuOf(pid) {
  let ticks = existsSync('/proc') ? 0 : NaN
  for (const name of existsSync('/proc') ? readdirSync('/proc') : []) {
    let text = ''
    try {
      if (/^\d+$/.test(name)) text = readFileSync(`/proc/${name}/stat`, 'utf8')
    } catch {
      // It has ended: its server has its time.
    }
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ').map(Number)
    if (Number(name) === pid) ticks += fields[11] + fields[12] + fields[13] + fields[14]
    else if (fields[1] === pid) ticks += fields[11] + fields[12]
  }
  return ticks * 10
}

/**
 * Counts round trips to a port, by all drivers of this process: writes of a socket that follow an answer, or come first. Statements that are sent
 * together are one. Returns the count so far.
 */
export function countTrips(port) {
  let trips = 0
  const waiting = new WeakSet()
  const known = new WeakSet()
  const { write } = Socket.prototype
  Socket.prototype.write = function (...given) {
    if (this.remotePort === port) {
      if (!known.has(this)) {
        known.add(this)
        this.on('data', () => waiting.delete(this))
      }
      if (!waiting.has(this)) trips += 1
      waiting.add(this)
    }
    return write.apply(this, given)
  }
  return () => trips
}

/** What a turn costs the server: after `warm` turns, those of `turns` one after the other. */
export async function costOf({ port, log, cpu }, { warm, turns }, turn) {
  const trips = countTrips(port)
  for (let nth = 0; nth < warm; nth++) await turn(`warm-${nth}`)
  const before = { trips: trips(), bytes: await log(), cpu: cpu() }
  for (let nth = 0; nth < turns; nth++) await turn(`cost-${nth}`)
  return {
    'round trips': (trips() - before.trips) / turns,
    'log bytes': ((await log()) - before.bytes) / turns,
    'server cpu': (cpu() - before.cpu) / turns,
  }
}
