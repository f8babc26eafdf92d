import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** The keys of the principals of a server that is fuzzed. */
export const fuzzKeys = { user: 'key-of-an-end-user-00000', tenant: 'key-of-a-tenant-00000000', operator: 'key-of-an-operator-00000' }

export interface Health {
  /** The longest time for which the event loop was stopped by work of its own, in milliseconds. */
  longestStopMs: number
  /** After a collection. */
  heapUsed: number
}

/** A server with little memory, in a process of its own. */
export class FuzzedServer {
  readonly #child: ChildProcess
  readonly url: string

  private constructor(child: ChildProcess, url: string) {
    this.#child = child
    this.url = url
  }

  static async start(file: string, heapMb: number): Promise<FuzzedServer> {
    const words = [`--max-old-space-size=${heapMb}`, '--expose-gc', join(import.meta.dirname, 'fuzzed-process.ts'), file]
    const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
    const lines = child.stdout
    if (!lines) throw new Error('the server has no output')
    for await (const url of createInterface({ input: lines })) return new FuzzedServer(child, url)
    throw new Error('the server ended before it listened')
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  async health(): Promise<Health> {
    const told = once(this.#child, 'message')
    this.#child.send('health')
    const [health] = (await told) as [Health]
    return health
  }

  async stop(): Promise<void> {
    if (!this.isAlive) return
    const gone = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await gone
  }
}
