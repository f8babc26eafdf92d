import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/index.ts'
import type { ServeOptions } from '../../src/http/server.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

async function server(options: ServeOptions = {}) {
  const made = await served({ guide: new Agent({ id: 'guide', model: scriptedModel(['Yes.'], { loop: true }) }) }, options)
  const { port } = new URL(made.server.url)
  const connected = async (): Promise<Socket> => {
    const socket = connect({ port: Number(port), host: '127.0.0.1' })
    await once(socket, 'connect')
    return socket
  }
  return { ...made, connected }
}

function head(path: string, length: number): string {
  return `POST /api/agents/guide/${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`
}

// Each would last until connections are cut, long after a test has failed, if the server waited for its connection.
describe('a server that is closed', () => {
  it('[H1.9] waits for no connection on which nothing was asked yet', async () => {
    const { server: running, connected, ask } = await server()
    const socket = await connected()
    // Taken after the first, which it has then.
    expect((await ask('/health')).status).toBe(200)
    const [told] = await Promise.all([text(socket), running.close()])
    expect(told).toBe('')
  })

  it('[H1.9] waits for no connection that a client keeps for later', async () => {
    const { server: running, ask } = await server()
    for (const answer of await Promise.all([ask('/health'), ask('/health'), ask('/agents/guide/stream', { json: { messages: 'Go.' } })])) await answer.text()
    await running.close()
  })

  it('[H1.9] answers what it is being asked, and keeps no connection for more', async () => {
    const { server: running, connected, ask } = await server()
    const body = JSON.stringify({ message: 'Go.', ...thread })
    const socket = await connected()
    socket.write(head('send-message', body.length) + body.slice(0, 5))
    expect((await ask('/health')).status).toBe(200)
    const closing = running.close()
    socket.write(body.slice(5))
    const told = await text(socket)
    expect(told).toMatch(/^HTTP\/1.1 503 /)
    expect(told.toLowerCase()).toContain('connection: close')
    expect(told).toContain('"code":"closed"')
    await closing
  })

  it('[H1.9] ends its streams', async () => {
    const { server: running, connected } = await server()
    const body = JSON.stringify(thread)
    const socket = await connected()
    socket.write(head('threads/subscribe', body.length) + body)
    await once(socket, 'readable')
    const [told] = await Promise.all([text(socket), running.close()])
    expect(told).toContain(': connected')
    expect(told.endsWith('0\r\n\r\n')).toBe(true)
  })

  it('[H1.9] waits for no auth hook, and answers those that it was asked about', async () => {
    const asked = Promise.withResolvers<void>()
    const { server: running, ask } = await server({
      auth: () => {
        asked.resolve()
        return new Promise(() => {})
      },
    })
    const answer = ask('/agents/guide/send-message', { json: { message: 'Go.', ...thread } })
    await asked.promise
    const [told] = await Promise.all([answer, running.close()])
    expect([told.status, told.headers.get('connection'), told.headers.get('retry-after')]).toEqual([503, 'close', '1'])
    expect(await told.json()).toMatchObject({ code: 'closed', retryable: true })
  })
})
