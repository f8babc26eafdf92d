import { createServer, request as ask } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { HeedClient } from '../../src/client/index.ts'
import { WatchedThread } from '../../src/client/react/index.ts'
import { Agent } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

/** The server as it was before the message routes: those answer as what is not there, everything else is passed on. */
async function older(url: string, status: number, body: string) {
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(request.url?.replace(/\?.*/, '') ?? '')
    if (/\/(send|queue)-message/.test(request.url ?? '')) {
      request.resume()
      return void response.writeHead(status, { 'content-type': body.startsWith('{') ? 'application/json' : 'text/html' }).end(body)
    }
    const passed = ask(new URL(request.url ?? '/', url), { method: request.method, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    passed.on('error', () => response.destroy())
    response.on('close', () => passed.destroy())
    request.pipe(passed)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { asked, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const textOf = (thread: WatchedThread) => thread.getSnapshot().messages.map(({ role, parts }) => `${role}: ${parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')}`)

describe('an older server', () => {
  it.each([
    [404, 'Not Found'],
    [404, '{"error":"Not Found"}'],
    [404, '{"error":"Not Found","code":"NOT_FOUND"}'],
    [405, '{"code":"METHOD_NOT_ALLOWED"}'],
    [501, '{"error":"Not yet","code":"not_implemented"}'],
    [405, 'Method Not Allowed'],
    [501, '{"error":"Not implemented"}'],
  ])('[U1.5] that answers %i %s to the message routes is sent signals, each once, and nothing is queued', async (status, body) => {
    const model = scriptedModel(({ index }) => `Answer ${index}.`)
    const { server } = await served({ guide: new Agent({ id: 'guide', model }) })
    const { url, asked } = await older(server.url, status, body)
    const watched = new WatchedThread(new HeedClient({ baseUrl: url }).getAgent('guide'), thread)
    onTestFinished(watched.subscribe(() => {}))
    await expect.poll(() => watched.getSnapshot().connection).toBe('live')
    await watched.send('One.')
    await expect.poll(() => textOf(watched)).toEqual(['user: One.', 'assistant: Answer 0.'])
    await expect.poll(() => watched.getSnapshot()).toMatchObject({ sendError: null, status: 'idle' })
    // As a signal it would enter the active run.
    await expect(watched.queue('Two.')).rejects.toMatchObject({ code: 'unsupported_option', message: expect.stringContaining('sendMessage()') })
    expect(watched.getSnapshot()).toMatchObject({ sendError: expect.stringContaining('no queue'), status: 'idle' })
    expect(textOf(watched)).toEqual(['user: One.', 'assistant: Answer 0.'])
    const sends = asked.filter((path) => /message|signals/.test(path)).map((path) => path.split('/').at(-1))
    expect(sends).toEqual(['send-message', 'signals', 'queue-message'])
    expect(model.callCount).toBe(1)
  })

  it('[U1.5] a refusal of a server that has the routes is no reason to go another way', async () => {
    const { server } = await served({ guide: new Agent({ id: 'guide', model: scriptedModel(['Hi.']) }) })
    const agent = new HeedClient({ baseUrl: server.url }).getAgent('guide')
    await agent.sendMessage({ message: 'Mine.', ...thread })
    await expect(agent.sendMessage({ message: 'Not mine.', ...thread, resourceId: 'user-2' })).rejects.toMatchObject({ code: 'thread_forbidden' })
    await expect(new HeedClient({ baseUrl: server.url }).getAgent('nobody').sendMessage({ message: 'Hello?', ...thread })).rejects.toMatchObject({ code: 'unknown_agent' })
  })
})
