import { stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { systemClock } from '../../base/clock.ts'
import { newId } from '../../base/ids.ts'
import { namespaceOf } from '../../store/contract/storage.ts'
import type { ThreadStore } from '../../store/contract/threads.ts'
import { checkPostgres, isOnPostgres } from './postgres.ts'
import { fail, ok, reasonOf, warn, type Finding } from './finding.ts'

/** How long a database may take to answer. */
const answerMs = 10_000
/** How many threads without a runner are counted. */
const orphanPage = 1_000

const megabyte = 1024 * 1024
const [littleSpace, noSpace] = [1024 * megabyte, 100 * megabyte]
const largeLog = 256 * megabyte

/** By how much clocks may differ without an effect that users notice. */
const skewMs = 2_000

/** Checks the database of the threads. Nothing is created or migrated: where that is due, the database is not opened. */
export async function checkStorage(store: ThreadStore): Promise<Finding[]> {
  const name = namespaceOf(store)
  if (isOnPostgres(store)) {
    const server = await checkPostgres(store, name)
    if (server.some(({ status, check }) => status === 'fail' || check === 'schema')) return server
    return [...server, ...(await checkOpened(store, name))]
  }
  const path = name.startsWith('file:') ? name.slice('file:'.length) : undefined
  if (path === undefined) return checkOpened(store, name)
  const file = await checkFile(path)
  if (file.some(({ status }) => status === 'fail') || file.some(({ check }) => check === 'schema')) return file
  return [...file, ...(await checkOpened(store, name, path))]
}

async function checkFile(path: string): Promise<Finding[]> {
  const found: Finding[] = []
  const size = await stat(path).then((about) => about.size, () => undefined)
  const { bavail, bsize } = await statfs(dirname(path)).catch(() => ({ bavail: Infinity, bsize: 1 }))
  const free = bavail * bsize
  const space = `${Math.round(free / megabyte)} MB are free on the disk of ${path}.`
  const remedy = 'Free space, or move the database: without space no message is accepted.'
  if (free < noSpace) found.push(fail('disk', space, remedy))
  else if (free < littleSpace) found.push(warn('disk', space, remedy))
  else found.push(ok('disk', 'The disk has enough space.'))
  if (size === undefined) {
    return [...found, warn('schema', `${path} does not exist.`, 'The first process creates it. If there should be one, correct the url.')]
  }
  const log = await stat(`${path}-wal`).then((about) => about.size, () => 0)
  if (log > largeLog) {
    found.push(warn(
      'log', `The log of ${path} has ${Math.round(log / megabyte)} MB.`,
      'A reader holds it: end programs that keep a read open, such as a shell or a backup.',
    ))
  }
  return [...found, ...(await checkSchema(path))]
}

/** Only a problem: a schema that is as it should be is reported when the database was opened. */
async function checkSchema(path: string): Promise<Finding[]> {
  const { DatabaseSync } = await import('node:sqlite')
  const { migrations } = await import('../../store/sqlite/migrations.ts')
  try {
    const database = new DatabaseSync(path, { readOnly: true, timeout: answerMs })
    try {
      const version = Number(database.prepare('PRAGMA user_version').get()?.user_version)
      if (version === migrations.length) return []
      if (version > migrations.length) {
        return [fail(
          'schema', `${path} has schema ${version}, and this Heed knows ${migrations.length}.`,
          'Run the newer Heed that wrote it.',
        )]
      }
      return [warn(
        'schema', `${path} has schema ${version} of ${migrations.length}.`,
        'The next process that opens it migrates it: make a backup first.',
      )]
    } finally {
      database.close()
    }
  } catch (error) {
    return [fail('schema', `${path} can not be read: ${reasonOf(error)}`, 'Check that it is a database of Heed, and who may read it.')]
  }
}

async function checkOpened(store: ThreadStore, name: string, path?: string): Promise<Finding[]> {
  const found: Finding[] = []
  try {
    await withinTime(store.open())
    found.push(ok('storage', `${name} opens, and its schema is up to date.`))
  } catch (error) {
    return [fail('storage', `${name} can not be opened: ${reasonOf(error)}`, 'Check the url, the credentials and the network.')]
  }
  try {
    found.push(await checkWrite(store, name))
    found.push(...checkClock(store))
    if (path !== undefined) found.push(await checkProcesses(path))
    found.push(await checkOrphans(store), await checkParked(store))
  } catch (error) {
    found.push(fail('storage', `${name} failed: ${reasonOf(error)}`, 'Look into its log.'))
  } finally {
    await store.close().catch(() => {})
  }
  return found
}

async function checkWrite(store: ThreadStore, name: string): Promise<Finding> {
  const owner = `doctor-${newId()}`
  const since = performance.now()
  try {
    await withinTime(store.heartbeat(owner, (store.now?.() ?? Date.now()) + 1_000))
    await store.flush()
    const ms = performance.now() - since
    await store.resign(owner)
    if (ms > 1_000) return warn(
      'write', `A write to ${name} took ${Math.round(ms)} ms.`,
      'Each message takes at least two: find out what holds the database up.',
    )
    return ok('write', 'The database can be written.')
  } catch (error) {
    return fail('write', `${name} can not be written: ${reasonOf(error)}`, 'Check who may write it, and that it is no read-only copy.')
  }
}

function checkClock(store: ThreadStore): Finding[] {
  if (!store.now) return []
  const skew = Math.round(store.now() - Date.now())
  if (Math.abs(skew) <= skewMs) return [ok('clock', 'The clocks of the database and of this machine agree.')]
  const which = skew > 0 ? 'ahead of' : 'behind'
  return [warn(
    'clock', `The clock of the database is ${Math.abs(skew)} ms ${which} that of this machine.`,
    'Run a time service on both: schedules are sent by the clock of the machine.',
  )]
}

async function checkProcesses(path: string): Promise<Finding> {
  const { DatabaseSync } = await import('node:sqlite')
  const database = new DatabaseSync(path, { readOnly: true, timeout: answerMs })
  try {
    const open = 'SELECT count(*) AS count FROM heed_processes WHERE until >= ? AND closed_at IS NULL'
    const count = Number(database.prepare(open).get(Date.now())?.count)
    if (count === 0) return warn('processes', 'No process has this database open.', 'Start one: until then messages wait.')
    return ok('processes', `${count} ${count === 1 ? 'process has' : 'processes have'} this database open.`)
  } finally {
    database.close()
  }
}

async function checkOrphans(store: ThreadStore): Promise<Finding> {
  const orphans = await store.listOrphans(store.now?.() ?? Date.now(), orphanPage)
  if (orphans.length === 0) return ok('orphans', 'Every thread with work has a runner.')
  const threads = orphans.length === 1 ? '1 thread needs' : `${orphans.length} threads need`
  const count = orphans.length === orphanPage ? `At least ${threads}` : threads
  const agents = [...new Set(orphans.map(({ agentId }) => agentId))].toSorted().slice(0, 10).join(', ')
  return warn('orphans', `${count} a runner.`, `Start a process that has the agents ${agents}, or wait for the limit of runs.`)
}

async function checkParked(store: ThreadStore): Promise<Finding> {
  const count = await store.countRuns({ status: ['parked'] })
  if (count === 0) return ok('parked', 'No run is parked.')
  return warn(
    'parked', `${count} ${count === 1 ? 'run is' : 'runs are'} parked: they began ten times without ending.`,
    'Read why in the log, then continue them with agent.retryParked().',
  )
}

async function withinTime<T>(work: Promise<T>): Promise<T> {
  work.catch(() => {})
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = systemClock.after(answerMs, () => reject(new Error(`no answer within ${answerMs} ms`)))
  return Promise.race([work, late]).finally(() => timer.cancel())
}
