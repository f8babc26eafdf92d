import { connect } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Agent } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

/** What a server says to these bytes until it closes, or until it has said so many answers. */
async function said(url: string, bytes: string | Buffer, answers = 1): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  return new Promise((resolve) => {
    let heard = ''
    socket.on('error', () => resolve(heard))
    socket.on('close', () => resolve(heard))
    socket.on('data', (data) => {
      heard += data.toString('latin1')
      const whole = [...heard.matchAll(/HTTP\/1\.1 (?!100)[^]*?\r\ncontent-length: (\d+)\r\n[^]*?\r\n\r\n/gi)].filter(({ index, 0: head, 1: length }) => heard.length >= index + head.length + Number(length))
      if (whole.length >= answers) resolve(heard)
    })
    socket.write(bytes)
  })
}

const statuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status))
const agent = () => new Agent({ id: 'guide', model: scriptedModel(['Hello.'], { loop: true }) })
const body = JSON.stringify({ message: 'Hi', ...thread })
const post = (path: string, headers = '', words: string | Buffer = body) =>
  Buffer.concat([Buffer.from(`POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(words)}\r\n${headers}\r\n`), Buffer.from(words)])

describe('requests that are odd and still HTTP', () => {
  const odd: Array<[string, string | Buffer, number]> = [
    ['a whole address', 'GET http://localhost/api/health HTTP/1.1\r\nHost: localhost\r\n\r\n', 200],
    ['a whole address without a path', 'GET http://localhost HTTP/1.1\r\nHost: localhost\r\n\r\n', 404],
    ['a star for a path', 'OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n', 404],
    ['an escape that is none', 'GET /api/agents/100%/suspended-runs HTTP/1.1\r\nHost: localhost\r\n\r\n', 404],
    ['an escape of no character', 'GET /api/agents/%FF%FE HTTP/1.1\r\nHost: localhost\r\n\r\n', 404],
    ['two slashes', 'GET //api//health HTTP/1.1\r\nHost: localhost\r\n\r\n', 404],
    ['dots', 'GET /api/../api/health HTTP/1.1\r\nHost: localhost\r\n\r\n', 404],
    ['a query that is none', 'GET /api/memory/threads?%%%=&=&&a[b=1 HTTP/1.1\r\nHost: localhost\r\n\r\n', 400],
    ['an unknown method', 'PROPFIND /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n', 405],
    ['a name that is nobody\'s', 'GET /api/agents HTTP/1.1\r\nHost: evil.example\r\n\r\n', 401],
    ['a name that begins like ours', 'GET /api/agents HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n', 401],
    ['a name with a user before it', 'GET /api/agents HTTP/1.1\r\nHost: localhost@evil.example\r\n\r\n', 401],
    ['a name in capitals, with a port', 'GET /api/agents HTTP/1.1\r\nHost: LOCALHOST:80\r\n\r\n', 200],
    ['the name of the other protocol', 'GET /api/agents HTTP/1.1\r\nHost: [::1]:80\r\n\r\n', 200],
    ['words that are no UTF-8', post('/api/agents/guide/send-message', '', Buffer.concat([Buffer.from('{"message":"'), Buffer.from([0xff, 0xfe]), Buffer.from(`",${JSON.stringify(thread).slice(1)}`)])), 200],
    ['a body where none is wanted', 'GET /api/health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc', 200],
    ['a source that is not there, of no name', 'POST /api/webhooks/none HTTP/1.1\r\nHost: ^^\r\nContent-Length: 0\r\n\r\n', 404],
  ]
  it.each(odd)('[H4.1] %s', async (_what, bytes, status) => {
    const { server, ask } = await served({ guide: agent() })
    const answer = await said(server.url, bytes)
    expect(statuses(answer)).toEqual([status])
    if (status >= 400) expect(answer).toMatch(/"code":"\w+"/)
    expect((await ask('/health')).status).toBe(200)
  })

  it('[H4.1] several requests on one connection are answered in their order, one whose end is waited for with it', async () => {
    const { server } = await served({ guide: agent() })
    const several = Buffer.concat([post('/api/agents/guide/send-message'), Buffer.from('GET /api/nothing HTTP/1.1\r\nHost: localhost\r\n\r\n'), Buffer.from('GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n')])
    expect(statuses(await said(server.url, several, 3))).toEqual([200, 404, 200])
    expect(statuses(await said(server.url, post('/api/agents/guide/send-message', 'Expect: 100-continue\r\n')))).toEqual([100, 200])
  })

  it('[H4.1] a caller that goes amid its request leaves nothing behind', async () => {
    const { server, ask } = await served({ guide: agent() })
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    await new Promise<void>((resolve) => socket.write(post('/api/agents/guide/send-message').subarray(0, -10), () => resolve()))
    await new Promise<void>((resolve) => socket.once('close', () => resolve()).resetAndDestroy())
    expect((await ask(`/memory/threads/${thread.threadId}?resourceId=${thread.resourceId}`)).status).toBe(404)
  })

  it('[H4.1] functions of the owner that fail are not told, and take nothing down', async () => {
    const fails = () => {
      throw new Error('Secret')
    }
    const { ask } = await served({ guide: agent() }, { cors: { origin: fails } })
    const answer = await ask('/agents', { headers: { origin: 'https://app.example' } })
    expect([answer.status, await answer.json()]).toEqual([500, { error: expect.not.stringContaining('Secret') as string, code: 'internal_error', retryable: false, details: { errorId: expect.any(String) as string } }])
    expect((await ask('/health')).status).toBe(200)
    const { ask: asked } = await served({ guide: agent() }, { auth: fails })
    expect([(await asked('/agents')).status, (await asked('/health')).status]).toEqual([401, 200])
  })
})
