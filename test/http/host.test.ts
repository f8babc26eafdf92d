import { connect } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Agent } from '../../src/index.ts'
import { parseHost, isLoopback } from '../../src/http/request/exchange.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served } from './serving.ts'

const guide = () => new Agent({ id: 'guide', model: scriptedModel(['Hello.'], { loop: true }) })

/** The status of what a server answers to these bytes, once it closed the connection. */
async function status(url: string, bytes: string): Promise<number> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  let heard = ''
  socket.on('data', (data) => (heard += data.toString('latin1')))
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.write(bytes)
  await closed
  return Number(/^HTTP\/1\.1 (\d+)/.exec(heard)?.[1])
}

const get = (target: string, host: string) => `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`

describe('the name under which a server is asked', () => {
  const hosts = ['x/api/agents?', 'localhost/api/health?x=', 'x#', 'x?', 'a@b', 'a:b@c.localhost', 'a@c.localhost', 'x\\', 'x y', '', 'x:99999', '[::1', '[zz]', '%2f', '-x', 'a..b', 'localhost:80']
  it.each(hosts)('[H3.7] hooks see the path and query that were asked for, whatever Host says: %j', async (host) => {
    const seen: string[] = []
    const { server } = await served({ guide: guide() }, {
      auth: ({ url }) => {
        const { pathname, search, username } = new URL(url)
        seen.push(username + pathname + search)
        return { id: 'one', resources: ['user-1'] }
      },
    })
    expect(await status(server.url, get('/api/memory/threads?resourceId=user-1', host))).toBe(200)
    expect(seen).toEqual(['/api/memory/threads?resourceId=user-1'])
  })

  it('[H3.7] nor does what is asked for: hooks are asked about the route that answers, or not at all', async () => {
    const seen: string[] = []
    const { server } = await served({ guide: guide() }, { auth: ({ url }) => (seen.push(new URL(url).pathname), { id: 'one', resources: ['user-1'] }) })
    const targets = ['/api/memory/threads/..', '/api/memory/threads/%2E%2e/messages', '/api/agents/guide/threads/a\\..\\b/queue', '/api/memory/threads/.?resourceId=user-1']
    for (const target of targets) expect(await status(server.url, get(target, 'x'))).toBe(404)
    expect(seen).toEqual([])
    expect(await status(server.url, get('/api/agents#/api/health', 'x'))).toBe(200)
    expect(await status(server.url, get('http://x?y=/api/agents', 'x'))).toBe(404)
    expect(await status(server.url, get('http://x/api/agents?resourceId=a/../b\\', 'x'))).toBe(200)
    expect(await status(server.url, 'GET /api/agents HTTP/1.0\r\n\r\n')).toBe(200)
    expect(seen).toEqual(['/api/agents', '/api/agents', '/api/agents'])
  })

  it('[H3.1] a server for this machine is asked by a name of this machine, and by nothing that looks like one', async () => {
    const { server } = await served({ guide: guide() }, { requestContext: () => ({}) })
    for (const host of ['localhost', 'app.localhost:80', '127.8.9.255', '[::1]:4111']) expect([host, await status(server.url, get('/api/agents', host))]).toEqual([host, 200])
    for (const host of ['a@c.localhost', 'a:b@c.localhost', 'evil.com/.localhost', 'x y.localhost', '.localhost', '-.localhost', '127.0.0.256', '127.0.0.1.evil.example', '']) {
      expect([host, await status(server.url, get('/api/agents', host))]).toEqual([host, 401])
    }
    expect(['localhost', '::1', '127.0.0.1'].every(isLoopback)).toBe(true)
    expect(['0.0.0.0', '::', '128.0.0.1', 'localhost.evil.example', 'evil.com/.localhost', '..localhost'].some(isLoopback)).toBe(false)
    expect(parseHost(null)).toEqual({ hostname: '', origin: 'http://unnamed.invalid' })
  })
})
