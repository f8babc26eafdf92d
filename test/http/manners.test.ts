import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent, createTool, Heed, InMemoryStore, silentLogger } from '../../src/index.ts'
import { apiKeys, createHandler } from '../../src/http/server.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

/** An agent whose tool waits until the run is aborted. */
function waiting() {
  const begun = Promise.withResolvers<void>()
  const stopped = Promise.withResolvers<string>()
  const wait = createTool({
    id: 'wait',
    inputSchema: z.object({}),
    execute: (_input, { abortSignal }) => {
      begun.resolve()
      abortSignal?.addEventListener('abort', () => stopped.resolve('stopped'))
      return stopped.promise
    },
  })
  const agent = new Agent({ id: 'guide', model: scriptedModel([{ toolCalls: [{ toolName: 'wait', input: {} }] }, 'Done.']), tools: { wait } })
  return { agent, begun: begun.promise, stopped }
}

describe('a caller that goes', () => {
  it.each(['generate', 'stream'])('[H6.9] %s: what was asked without a thread ends', async (path) => {
    const { agent, begun, stopped } = waiting()
    const { ask } = await served({ guide: agent })
    const caller = new AbortController()
    const asking = ask(`/agents/guide/${path}`, { json: { messages: 'Go.' }, signal: caller.signal }).then((response) => response.text())
    await begun
    caller.abort()
    await expect(asking).rejects.toMatchObject({ name: 'AbortError' })
    expect(await stopped.promise).toBe('stopped')
  })

  it('[H6.9] the client ends what it asks, and its streams, by its signal', async () => {
    const { agent, begun, stopped } = waiting()
    const { client } = await served({ guide: agent })
    const caller = new AbortController()
    const own = client.withSignal(caller.signal).getAgent('guide')
    const opened = Promise.withResolvers<void>()
    const watching = own.watchThread(thread).processDataStream({ onChunk: () => {}, reconnect: { delayMs: 1, onOpen: () => opened.resolve() } })
    const asking = own.generate('Go.')
    await Promise.all([opened.promise, begun])
    const reason = new Error('Enough.')
    caller.abort(reason)
    await expect(asking).rejects.toBe(reason)
    await expect(watching).rejects.toBe(reason)
    expect(await stopped.promise).toBe('stopped')
    await expect(own.details()).rejects.toBe(reason)
    expect(await client.getAgent('guide').details()).toMatchObject({ id: 'guide' })
  })
})

describe('answers that refuse', () => {
  it('[H6.8] name the methods that are there, and how to say who one is', async () => {
    const { ask } = await served({ guide: waiting().agent }, { auth: apiKeys({ 'a-long-random-key-1': { id: 'one', resources: ['user-1'] } }) })
    const put = await ask('/memory/threads/t', { method: 'PUT' })
    expect([put.status, put.headers.get('allow')]).toEqual([405, 'GET, HEAD, PATCH, DELETE'])
    expect((await ask('/agents/guide/send-message')).headers.get('allow')).toBe('POST')
    const unknown = await ask('/agents')
    expect([unknown.status, unknown.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
  })

  it('[H6.8] come also where auth never does', async () => {
    const clock = virtualClock()
    const heed = new Heed({ agents: { guide: waiting().agent }, storage: new InMemoryStore(), logger: silentLogger, clock })
    const asked = Promise.withResolvers<void>()
    const handler = createHandler(heed, {
      auth: () => {
        asked.resolve()
        return new Promise(() => {})
      },
    })
    const answer = handler(new Request('http://localhost/api/agents'))
    await asked.promise
    await clock.advance(30_000)
    const response = await answer
    expect([response.status, await response.json()]).toMatchObject([401, { code: 'unauthorized', retryable: true }])
    await heed.close()
  })

  it('[H3.6] a page may send the headers that it is allowed', async () => {
    const { ask } = await served({ guide: waiting().agent }, { cors: { origin: 'https://app.example', allowHeaders: ['x-tenant'] } })
    const response = await ask('/agents', { method: 'OPTIONS', headers: { origin: 'https://app.example', 'access-control-request-method': 'GET', 'access-control-request-headers': 'x-tenant' } })
    expect(response.headers.get('access-control-allow-headers')).toMatch(/^content-type, .*, x-tenant$/)
  })
})
