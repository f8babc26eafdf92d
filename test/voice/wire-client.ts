import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { expect, onTestFinished } from 'vitest'
import { voiceProtocol, type VoiceServerMessage } from '../../src/voice/wire.ts'
import { thread } from './calling.ts'

/** A client that says what a test wants, and acknowledges nothing by itself. */
export async function dialled(serverUrl: string, options: { headers?: Record<string, string>; protocols?: string[]; path?: string } = {}) {
  const { headers = {}, protocols = [voiceProtocol], path = `/api/agents/guide/threads/${thread.threadId}/voice?resourceId=${thread.resourceId}` } = options
  // Node's own client can send headers, which pages can't.
  const socket = new WebSocket(serverUrl.replace('http', 'ws') + path, { protocols, headers } as unknown as string[])
  socket.binaryType = 'arraybuffer'
  const messages: VoiceServerMessage[] = []
  const sound: Uint8Array[] = []
  const closed = Promise.withResolvers<{ code: number; reason: string }>()
  socket.addEventListener('message', ({ data }: MessageEvent<string | ArrayBuffer>) => {
    if (typeof data === 'string') messages.push(JSON.parse(data) as VoiceServerMessage)
    else sound.push(new Uint8Array(data))
  })
  socket.addEventListener('close', ({ code, reason }) => closed.resolve({ code, reason }))
  const opened = new Promise<boolean>((resolve) => {
    socket.addEventListener('open', () => resolve(true), { once: true })
    socket.addEventListener('error', () => resolve(false), { once: true })
  })
  onTestFinished(() => socket.close())
  const isOpen = await opened
  const say = (message: object) => socket.send(JSON.stringify(message))
  return {
    socket, messages, sound, say, isOpen, closed: closed.promise,
    of: (type: string) => messages.filter((message) => message.type === type) as Array<Record<string, unknown>>,
    /** Opens a session; resolves with what the server says. */
    start: async (more: object = {}) => {
      const before = messages.length
      say({ type: 'start', ...more })
      await expect.poll(() => messages.length > before || socket.readyState === WebSocket.CLOSED).toBe(true)
      return messages[before] as Record<string, unknown> | undefined
    },
  }
}

/** A network between a client and a server, which can be cut. */
export async function network(serverUrl: string) {
  const { port } = new URL(serverUrl)
  const open = new Set<Socket>()
  let isUp = true
  const server = createServer((client) => {
    if (!isUp) return void client.resetAndDestroy()
    const upstream = connect(Number(port), '127.0.0.1')
    for (const [one, other] of [[client, upstream], [upstream, client]] as const) {
      open.add(one)
      one.on('error', () => {})
      one.on('close', () => {
        open.delete(one)
        other.destroy()
      })
      one.pipe(other)
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = () => {
    isUp = false
    for (const socket of open) socket.resetAndDestroy()
  }
  onTestFinished(() => {
    cut()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, cut, mend: () => (isUp = true) }
}
