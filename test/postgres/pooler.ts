import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** A connection to the server. It serves one client until its transaction ends. */
interface Backend {
  socket: Socket
  client: Client | undefined
  received: Buffer
}

interface Client {
  socket: Socket
  backend: Backend | undefined
  /** What arrived while no backend was free. */
  waiting: Buffer[]
  received: Buffer
  isStarted: boolean
  /** How many Syncs and queries the server has not answered. */
  asked: number
}

const header = (type: string, length: number): Buffer => {
  const bytes = Buffer.alloc(5)
  bytes.write(type)
  bytes.writeInt32BE(length + 4, 1)
  return bytes
}
const message = (type: string, body: Buffer): Buffer => Buffer.concat([header(type, body.length), body])
const idle = message('Z', Buffer.from('I'))

/** The whole messages at the beginning of what was received, and the rest. */
function split(received: Buffer): { messages: Buffer[]; rest: Buffer } {
  const messages: Buffer[] = []
  let at = 0
  while (received.length - at >= 5) {
    const end = at + 1 + received.readInt32BE(at + 1)
    if (end > received.length) break
    messages.push(received.subarray(at, end))
    at = end
  }
  return { messages, rest: received.subarray(at) }
}

/** A pooler in transaction mode, as PgBouncer without prepared statements: clients share a few connections, and each transaction may have another. */
export async function transactionPooler(server: { port: number; user: string; database: string }, size: number): Promise<{ port: number; renew(): Promise<void>; close(): void }> {
  const backends = await Promise.all(Array.from({ length: size }, () => openBackend(server)))
  const clients = new Set<Client>()

  const lend = () => {
    for (const client of clients) {
      if (client.backend || client.waiting.length === 0) continue
      // The one that was used longest ago: a client rarely meets the same again.
      const index = backends.findIndex((backend) => !backend.client)
      const [backend] = index === -1 ? [] : backends.splice(index, 1)
      if (!backend) return
      backends.push(backend)
      client.backend = backend
      backend.client = client
      for (const bytes of client.waiting.splice(0)) backend.socket.write(bytes)
    }
  }
  const answer = (backend: Backend, bytes: Buffer) => {
    const { messages, rest } = split(Buffer.concat([backend.received, bytes]))
    backend.received = rest
    for (const one of messages) {
      const { client } = backend
      // A notification for a client that has no transaction is lost.
      if (!client) continue
      client.socket.write(one)
      if (one[0] !== 0x5a) continue
      client.asked -= 1
      if (client.asked > 0 || one[5] !== 0x49) continue
      client.backend = undefined
      backend.client = undefined
    }
    lend()
  }
  const add = async () => {
    const backend = await openBackend(server)
    backends.push(backend)
    backend.socket.on('data', (bytes: Buffer) => answer(backend, bytes))
    lend()
  }
  for (const backend of backends) backend.socket.on('data', (bytes: Buffer) => answer(backend, bytes))

  const listening = createServer({ noDelay: true }, (socket) => {
    const client: Client = { socket, backend: undefined, waiting: [], received: Buffer.alloc(0), isStarted: false, asked: 0 }
    clients.add(client)
    socket.on('error', () => {})
    socket.on('close', () => {
      clients.delete(client)
      // Its transaction ends with the connection.
      if (client.backend) {
        client.backend.socket.destroy()
        backends.splice(backends.indexOf(client.backend), 1)
        // The server may be gone.
        add().catch(() => {})
      }
    })
    socket.on('data', (bytes: Buffer) => {
      client.received = Buffer.concat([client.received, bytes])
      if (!client.isStarted) {
        const length = client.received.readInt32BE(0)
        client.received = client.received.subarray(length)
        client.isStarted = true
        socket.write(Buffer.concat([message('R', Buffer.alloc(4)), message('K', Buffer.alloc(8)), idle]))
      }
      const { messages, rest } = split(client.received)
      client.received = rest
      for (const one of messages) {
        if (one[0] === 0x58) return void socket.end()
        if (one[0] === 0x53 || one[0] === 0x51) client.asked += 1
        if (client.backend) client.backend.socket.write(one)
        else client.waiting.push(one)
      }
      lend()
    })
  }).listen(0, '127.0.0.1')
  await once(listening, 'listening')
  return {
    port: (listening.address() as AddressInfo).port,
    /** All connections to the server are made again. Its clients have no transaction, and notice nothing. */
    async renew() {
      const former = backends.splice(0)
      for (const { socket } of former) socket.destroy()
      await Promise.all(former.map(add))
    },
    close() {
      listening.close()
      for (const { socket } of [...backends, ...clients]) socket.destroy()
    },
  }
}

/** A connection that has logged in to a server that asks for no password. */
async function openBackend({ port, user, database }: { port: number; user: string; database: string }): Promise<Backend> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  socket.on('error', () => {})
  await once(socket, 'connect')
  const body = Buffer.concat([Buffer.from([0, 3, 0, 0]), Buffer.from(`user\0${user}\0database\0${database}\0\0`)])
  const length = Buffer.alloc(4)
  length.writeInt32BE(body.length + 4)
  socket.write(Buffer.concat([length, body]))
  let received = Buffer.alloc(0)
  for (;;) {
    const [bytes] = (await once(socket, 'data')) as [Buffer]
    received = Buffer.concat([received, bytes])
    if (split(received).messages.some((one) => one[0] === 0x5a)) return { socket, client: undefined, received: Buffer.alloc(0) }
  }
}
