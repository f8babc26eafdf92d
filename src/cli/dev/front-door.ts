import { createServer, connect, type Server, type Socket, type AddressInfo } from 'node:net'
import { once } from 'node:events'

/**
 * Holds the port of `heed dev` from its start to its end, and passes each connection to the process that has the user's code at that time.
 * `node:cluster` would give connections to the old and the new process in turn, and close the port with the last of them.
 */
export class FrontDoor {
  readonly #server: Server
  readonly #open = new Set<Socket>()
  /** Connections that arrived while the first code was being loaded. */
  readonly #waiting = new Set<Socket>()
  #target: number | undefined
  #isLoading = true

  constructor() {
    this.#server = createServer({ noDelay: true }, (socket) => {
      this.#open.add(socket)
      socket.on('error', () => socket.destroy()).once('close', () => {
        this.#open.delete(socket)
        this.#waiting.delete(socket)
      })
      if (this.#target === undefined && this.#isLoading) this.#waiting.add(socket)
      else this.#pass(socket)
    })
  }

  /** Listens on the port, or on the first free one after it. Returns the port. */
  async listen(host: string, port: number, isFixed: boolean): Promise<number> {
    for (let candidate = port; ; candidate++) {
      try {
        this.#server.listen(candidate, host)
        await once(this.#server, 'listening')
        return (this.#server.address() as AddressInfo).port
      } catch (error) {
        const isTaken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
        if (!isTaken || isFixed || candidate >= port + 100) throw error
      }
    }
  }

  /** Passes new connections to this port of this machine. Open connections stay where they are. */
  pointTo(port: number): void {
    this.#target = port
    this.#release()
  }

  /** No process has the user's code: requests are answered with 503 until one has. */
  pointNowhere(): void {
    this.#target = undefined
    this.#release()
  }

  #release(): void {
    this.#isLoading = false
    for (const socket of this.#waiting) this.#pass(socket)
    this.#waiting.clear()
  }

  #pass(socket: Socket): void {
    const port = this.#target
    if (port === undefined) return refuse(socket)
    const inner = connect({ port, host: '127.0.0.1', noDelay: true })
    const cut = () => {
      inner.destroy()
      socket.destroy()
    }
    inner.once('connect', () => {
      inner.off('error', onRefused).on('error', cut)
      socket.pipe(inner).pipe(socket)
      socket.once('close', () => inner.destroy())
      inner.once('close', () => socket.destroySoon())
    })
    // A process that has just ended refuses the connection: another may have taken its place.
    const onRefused = () => (this.#target !== undefined && this.#target !== port ? this.#pass(socket) : refuse(socket))
    inner.once('error', onRefused)
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const socket of this.#open) socket.destroy()
    await closed
  }
}

const refusal = JSON.stringify({ error: 'heed dev has no code that loads. Its terminal shows why.', code: 'closed', retryable: true })

function refuse(socket: Socket): void {
  socket.resume()
  const head = [
    'HTTP/1.1 503 Service Unavailable', 'content-type: application/json', 'retry-after: 1', 'connection: close',
    `content-length: ${refusal.length}`,
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${refusal}`)
}
