import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'

/** What a network does with bytes: `hang` carries nothing, `no answers` nothing of the server, `slow` a kilobyte a second. */
export type Weather =
  | { kind: 'fair' }
  | { kind: 'hang' }
  | { kind: 'no answers' }
  | { kind: 'no requests' }
  | { kind: 'delay'; ms: number }
  | { kind: 'slow' }
  /** New connections are closed, and the others carry on. */
  | { kind: 'refuse' }

const slowBytes = 1_000

interface Line {
  client: Socket
  upstream: Socket
  /** Cuts itself when the client has sent so many bytes more. */
  fuse: number
}

/** The network between one process and one server of this machine. Nothing is lost within a connection: what hangs is carried later. */
export class Network {
  weather: Weather = { kind: 'fair' }
  readonly #server: Server
  readonly #lines = new Set<Line>()

  static async to(port: number): Promise<Network> {
    const network = new Network(port)
    network.#server.listen(0, '127.0.0.1')
    await once(network.#server, 'listening')
    return network
  }

  private constructor(port: number) {
    this.#server = createServer((client) => {
      if (this.weather.kind === 'refuse') return void client.destroy()
      const line: Line = { client, upstream: connect(port, '127.0.0.1'), fuse: Infinity }
      this.#lines.add(line)
      for (const socket of [client, line.upstream]) socket.on('error', () => {})
      void this.#carry(client, line.upstream, 'no requests', line)
      void this.#carry(line.upstream, client, 'no answers')
      const end = () => {
        this.#lines.delete(line)
        client.destroy()
        line.upstream.destroy()
      }
      client.on('close', end)
      line.upstream.on('close', end)
    })
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  async #carry(from: Socket, to: Socket, blocked: 'no requests' | 'no answers', line?: Line): Promise<void> {
    try {
      for await (const bytes of from as AsyncIterable<Buffer>) {
        while (!to.destroyed && (this.weather.kind === 'hang' || this.weather.kind === blocked)) await wait(20)
        if (this.weather.kind === 'delay') await wait(this.weather.ms * (0.5 + Math.random()))
        if (this.weather.kind === 'slow') await wait((1_000 * bytes.length) / slowBytes)
        if (line && (line.fuse -= bytes.length) < 0) {
          to.write(bytes.subarray(0, bytes.length + line.fuse))
          return this.#cut(line)
        }
        if (!to.write(bytes)) await once(to, 'drain').catch(() => {})
      }
    } catch {
      // The connection is gone.
    }
    to.destroy()
  }

  /** Closes all connections at once; `rudely` without a packet to the server, which notices much later that the client is gone. */
  cut(): void {
    for (const line of this.#lines) this.#cut(line)
  }

  /** Closes each connection after some more bytes of its client: in the middle of what is sent next. */
  cutWithin(bytes: () => number): void {
    for (const line of this.#lines) line.fuse = bytes()
  }

  #cut({ client, upstream }: Line): void {
    client.resetAndDestroy()
    // The server reads what it was sent, and then that the client is gone.
    upstream.end()
  }

  close(): void {
    this.#server.close()
    for (const { client, upstream } of this.#lines) {
      client.destroy()
      upstream.destroy()
    }
  }
}
