import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { createClient } from 'redis'
import { findProgram } from '../../scripts/programs.ts'

/** The shell ends the server when the test process is gone, however that ended. It prints the id of the server first. */
const owner = '"$@" & echo $!; cat > /dev/null; kill -9 $! 2> /dev/null; wait'

/** A server of its own, on a port and in a folder of its own. */
export class RedisServer {
  readonly port: number
  readonly #path: string
  readonly #args: readonly string[]
  readonly #folder = mkdtempSync(join(tmpdir(), 'heed-redis-'))
  #shell: ChildProcess | undefined
  #pid = 0

  private constructor(path: string, port: number, args: readonly string[]) {
    this.#path = path
    this.port = port
    this.#args = args
  }

  static async start(...args: string[]): Promise<RedisServer> {
    const found = await findProgram('redis')
    if ('missing' in found) throw new Error(found.missing)
    // Another process may take the port between the two.
    for (let attempt = 1; ; attempt++) {
      const server = new RedisServer(found.path, await freePort(), args)
      try {
        await server.run()
        return server
      } catch (error) {
        await server.end()
        if (attempt === 5) throw error
      }
    }
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  /** Starts it, also again after a kill. It has no data then. */
  async run(): Promise<void> {
    const settings = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.#folder, '--save', '', '--enable-debug-command', 'local', ...this.#args]
    const shell = spawn('sh', ['-c', owner, 'sh', this.#path, ...settings], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#shell = shell
    const lines = createInterface({ input: shell.stdout })
    for await (const line of lines) {
      if (this.#pid === 0 || /^\d+$/.test(line)) this.#pid = Number(line)
      if (line.includes('Ready to accept connections')) break
      if (/Could not create server|Failed listening/.test(line)) throw new Error(line)
    }
    shell.stdout.resume()
  }

  async kill(): Promise<void> {
    process.kill(this.#pid, 'SIGKILL')
    await this.#endShell()
  }

  suspend(): void {
    process.kill(this.#pid, 'SIGSTOP')
  }

  resume(): void {
    process.kill(this.#pid, 'SIGCONT')
  }

  async end(): Promise<void> {
    await this.#endShell()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #endShell(): Promise<void> {
    const shell = this.#shell
    this.#shell = undefined
    if (!shell || shell.exitCode !== null) return
    const ended = once(shell, 'exit')
    shell.stdin?.end()
    await ended
  }

  /** Sends one command, on a connection of its own. */
  async command(...args: string[]): Promise<unknown> {
    const client = createClient({ url: this.url, RESP: 2, socket: { reconnectStrategy: false } })
    client.on('error', () => {})
    await client.connect()
    try {
      return await client.sendCommand(args)
    } finally {
      client.destroy()
    }
  }

  async keys(): Promise<string[]> {
    return (await this.command('KEYS', '*')) as string[]
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
