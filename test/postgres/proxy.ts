import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** What a proxy does with bytes of a client: passes them on, or cuts the connection before or after it has passed them on. */
export type Harm = (bytes: Buffer) => 'pass' | 'cut before' | 'cut after'

interface Proxy {
  readonly port: number
  harm: Harm
  /** New connections are closed at once. */
  refusing: boolean
  /** The port of the server that new connections reach. */
  to: number
  /** Cuts the connections that there are. */
  cut(): void
  close(): void
}

/** A proxy to a server on this machine. */
export async function proxyTo(to: number): Promise<Proxy> {
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, (client) => {
    if (proxy.refusing) return void client.destroy()
    const upstream = connect({ port: proxy.to, host: '127.0.0.1', noDelay: true })
    let cut = false
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => sockets.delete(socket))
    }
    client.on('data', (bytes) => {
      const harm = cut ? 'cut before' : proxy.harm(bytes)
      if (harm !== 'cut before') upstream.write(bytes)
      if (harm === 'pass') return
      cut = true
      client.destroy()
      // The server reads what it was sent, and then that the client is gone.
      upstream.end()
    })
    upstream.on('data', (bytes) => cut || client.write(bytes))
    upstream.on('close', () => client.destroy())
    client.on('close', () => upstream.end())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const proxy: Proxy = {
    port: (server.address() as AddressInfo).port,
    harm: () => 'pass',
    refusing: false,
    to,
    cut() {
      for (const socket of sockets) socket.destroy()
    },
    close() {
      server.close()
      proxy.cut()
    },
  }
  return proxy
}
