import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** Passes connections to a server, and cuts all of them when asked. It ends with the test. */
export async function cuttingProxy(target: string): Promise<{ url: string; cut: () => void; cuts: number }> {
  const { port, hostname } = new URL(target)
  const open = new Set<Socket>()
  const proxy = createServer((socket) => {
    const inner = connect(Number(port), hostname)
    for (const one of [socket, inner]) {
      open.add(one)
      one.on('error', () => {}).once('close', () => {
        open.delete(one)
        socket.destroy()
        inner.destroy()
      })
    }
    socket.pipe(inner).pipe(socket)
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  onTestFinished(() => {
    for (const socket of open) socket.destroy()
    proxy.close()
  })
  const made = {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    cuts: 0,
    cut() {
      made.cuts++
      for (const socket of open) socket.resetAndDestroy()
    },
  }
  return made
}
