import { systemClock } from '../../base/clock.ts'
import { HeedError, packageError } from '../../base/errors.ts'

/** The part of a client of the package `redis` that the bus uses. */
export interface RedisClient {
  readonly options?: { socket?: object } | undefined
  duplicate(overrides?: object): RedisClient
  connect(): Promise<unknown>
  sendCommand(args: string[]): Promise<unknown>
  destroy(): void
  unref(): void
  on(event: 'error', listener: (error: Error) => void): unknown
}

/** Makes a client that is not connected yet. */
export type MakeClient = () => Promise<RedisClient>

/**
 * Settings of every connection. The bus connects again by itself: a client that did it would send a command again whose answer was lost,
 * and keep commands while it is not connected.
 */
const settings = {
  RESP: 2, disableOfflineQueue: true, maintNotifications: 'disabled', clientSideCache: undefined, emitInvalidate: false,
} as const
const socket = { reconnectStrategy: false, connectTimeout: 5_000 } as const

/** Connections to the server of a url. */
export function clientOfUrl(url: string): MakeClient {
  return async () => {
    const { createClient } = await import('redis').catch((cause: unknown) => {
      throw packageError('redis', "RedisBus needs the package 'redis'. Install it: npm install redis", cause)
    })
    return createClient({ url, ...settings, socket })
  }
}

/** Connections like that of a given client, which is not used itself: a command that waits for messages would hold up the program's own. */
export function clientLike(client: RedisClient): MakeClient {
  return () => Promise.resolve(client.duplicate({ ...settings, socket: { ...client.options?.socket, ...socket } }))
}

/** How long a command, or the start of a connection, may take. Runs wait for some commands. */
const commandMs = 2_000

/** One connection to Redis. It is never repaired: after a failure another one is opened. */
export class Link {
  readonly #client: RedisClient
  #ended = false

  private constructor(client: RedisClient) {
    this.#client = client
  }

  static async open(make: MakeClient): Promise<Link> {
    const client = await make()
    // Failures reject the commands that wait. Without a listener, the error would end the process.
    client.on('error', () => {})
    const link = new Link(client)
    await link.#withDeadline(client.connect(), commandMs)
    // A program that has nothing else to do ends.
    client.unref()
    return link
  }

  /** Rejects when the server refuses the command, or does not answer in time; then the connection is ended. */
  send(args: readonly (string | number)[]): Promise<unknown> {
    return this.#withDeadline(this.#client.sendCommand(args.map(String)), commandMs)
  }

  /** The same for a command that may wait for so long. It does not keep the process alive. */
  read(args: readonly (string | number)[], ms = 0): Promise<unknown> {
    return this.#withDeadline(this.#client.sendCommand(args.map(String)), ms + commandMs, { background: true })
  }

  /** Calls a script of the server, which has it after the first call. */
  async call({ text, sha }: Script, key: string, args: readonly (string | number)[]): Promise<unknown> {
    try {
      return await this.send(['EVALSHA', sha, 1, key, ...args])
    } catch (error) {
      if (this.#ended || !(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
      return this.send(['EVAL', text, 1, key, ...args])
    }
  }

  end(): void {
    if (this.#ended) return
    this.#ended = true
    try {
      this.#client.destroy()
    } catch {
      // It was closed before.
    }
  }

  async #withDeadline<T>(work: Promise<T>, ms: number, timing?: { background: boolean }): Promise<T> {
    const { promise: late, reject } = Promise.withResolvers<never>()
    const timer = systemClock.after(ms, () => reject(new HeedError('bus_failed', `Redis did not answer within ${ms} ms.`)), timing)
    try {
      return await Promise.race([work, late])
    } catch (error) {
      // The command that was refused is rejected with what the server said; a connection that no longer answers is useless.
      if (!isRefusal(error)) this.end()
      work.catch(() => {})
      throw error
    } finally {
      timer.cancel()
    }
  }
}

export interface Script {
  text: string
  sha: string
}

/** An answer of the server, as opposed to a failure of the connection. */
function isRefusal(error: unknown): boolean {
  return error instanceof Error && /^[A-Z]{3,} /.test(error.message)
}
