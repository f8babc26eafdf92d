import { checkNames, checkText, checkWhole, refused } from '../../base/arguments.ts'
import { keepSecret } from '../../base/redact.ts'
import type { Bus, BusConnection, BusConnectOptions } from '../contract.ts'
import { RedisHub, type HubOptions } from './hub.ts'
import { clientLike, clientOfUrl, Link, type RedisClient } from './link.ts'

/** The options of `RedisBus`. */
export interface RedisBusOptions {
  /** The server: `redis://user:password@host:6379`, `rediss://` for TLS. Needs the package `redis`. */
  url?: string
  /** In place of `url`: a client of the package `redis`. The bus opens connections like it, with its settings, and leaves it as it is. */
  client?: RedisClient
  /** The first part of all keys. Processes with different prefixes never meet. Defaults to `heed`. */
  keyPrefix?: string
  /** How many batches of messages are kept for a process that reads slowly; beyond that the oldest are lost. Defaults to 4,096. */
  maxEntries?: number
}

/**
 * Connects processes on several machines through Redis Streams: each process has one stream, from which it alone reads. Nothing depends on
 * what is in Redis: a storage that all processes share decides what is true, and sweeps of it find what no message announced.
 */
export class RedisBus implements Bus {
  readonly #options: HubOptions
  #hub: RedisHub | undefined

  constructor(options: RedisBusOptions) {
    checkNames('new RedisBus()', options, ['url', 'client', 'keyPrefix', 'maxEntries'])
    const { url, client, keyPrefix = 'heed', maxEntries = 4_096 } = options
    if ((url === undefined) === (client === undefined)) throw refused('url', 'given, or client in its place')
    checkText('keyPrefix', keyPrefix)
    if (/[{}]/.test(keyPrefix)) throw refused('keyPrefix', 'a text without braces')
    checkWhole('maxEntries', maxEntries, 1)
    if (client !== undefined && !isClient(client)) throw refused('client', 'a client of the package redis: createClient()')
    if (url !== undefined) checkUrl(url)
    this.#options = { client: client ? clientLike(client) : clientOfUrl(url ?? ''), keyPrefix, maxEntries }
  }

  async connect({ namespace, id, handler }: BusConnectOptions): Promise<BusConnection> {
    const hub = (this.#hub ??= new RedisHub(this.#options))
    await hub.add(namespace, id, handler)
    let closing: Promise<void> | undefined
    return {
      get hasPeers() {
        return hub.hasPeers(namespace)
      },
      get disconnected() {
        return hub.disconnected
      },
      ready: () => hub.ready(namespace, id),
      send: (message, to) => hub.send(namespace, id, message, to),
      flush: () => hub.flush(),
      poll: () => hub.poll(),
      close: () => (closing ??= this.#close(hub, namespace, id)),
    }
  }

  /** @internal What the server says about itself: the fields of INFO. */
  async facts(): Promise<Record<string, string>> {
    const link = await Link.open(this.#options.client)
    try {
      const text = String(await link.send(['INFO']))
      // Not CONFIG GET: some providers do not let programs read settings.
      return Object.fromEntries([...text.matchAll(/^([^#:\r\n]+):(.*?)\r?$/gm)].map(([, name = '', value = '']) => [name, value]))
    } finally {
      link.end()
    }
  }

  async #close(hub: RedisHub, namespace: string, id: string): Promise<void> {
    const closed = hub.remove(namespace, id)
    // A connection that is made from here on gets a hub of its own.
    if (hub.isEmpty && this.#hub === hub) this.#hub = undefined
    await closed
  }
}

function isClient(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'duplicate' in value && 'sendCommand' in value
}

/** An error must not repeat the url: it may have a password. */
function checkUrl(url: unknown): void {
  const parsed = typeof url === 'string' ? URL.parse(url) : null
  if (!parsed || !['redis:', 'rediss:'].includes(parsed.protocol)) throw refused('url', 'a url such as redis://localhost:6379')
  keepSecret(parsed.password)
  try {
    keepSecret(decodeURIComponent(parsed.password))
  } catch {
    throw refused('url', 'a url whose password is percent-encoded')
  }
}
