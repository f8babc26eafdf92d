import { spawn, type ChildProcess } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/**
 * A server that is killed and started again on the same port and file. Its clock is five times as fast as the system's: the next process
 * waits for two seconds until the lease of a killed one has expired.
 */
export class ServerProcess {
  readonly #file: string
  readonly #origin: string | undefined
  #child: ChildProcess | undefined
  #port: Promise<string> | undefined
  /** When its clock showed the time of the system. The same in each process, so that leases are in one time. */
  readonly #clockStart = Date.now()

  constructor(file: string, origin?: string) {
    this.#file = file
    this.#origin = origin
  }

  async start({ hangs = false, heapMb }: { hangs?: boolean | string; heapMb?: number } = {}): Promise<string> {
    const port = await (this.#port ??= ownPort())
    const words = [...(heapMb === undefined ? [] : [`--max-old-space-size=${heapMb}`]), join(import.meta.dirname, 'server-process.ts'), this.#file, port, ...(this.#origin === undefined ? [] : [this.#origin])]
    const env = { ...process.env, HEED_TEST_HANGS: hangs === true ? 'Once upon a time' : hangs || '', HEED_TEST_CLOCK_START: String(this.#clockStart) }
    const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'], env })
    this.#child = child
    for await (const url of createInterface({ input: child.stdout })) return url
    throw new Error('the server ended before it listened')
  }

  /** SIGTERM lets it hand over; SIGKILL doesn't. Answers how it ended. */
  async kill(signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<unknown[]> {
    const child = this.#child
    if (!child || child.exitCode !== null || child.signalCode !== null) return []
    const gone = once(child, 'exit')
    child.kill(signal)
    return gone
  }
}

/** A free port below those that the system gives to servers and clients, one of which may be in another test while this server is down. */
async function ownPort(): Promise<string> {
  for (;;) {
    const port = randomInt(16_384, 32_768)
    const probe = createServer().listen(port, '127.0.0.1')
    try {
      await once(probe, 'listening')
    } catch {
      continue
    }
    probe.close()
    await once(probe, 'close')
    return String(port)
  }
}
