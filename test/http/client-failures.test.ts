import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { HeedClient } from '../../src/client/index.ts'

const thread = { threadId: 't', resourceId: 'r' }

async function answering(listener: RequestListener) {
  const state = { asked: 0 }
  const server = createServer((request, response) => {
    state.asked++
    request.resume()
    listener(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => new Promise<void>((resolve) => {
    server.closeAllConnections()
    server.close(() => resolve())
  }))
  return { state, baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

describe('what the client can not ask', () => {
  it('[H6.6] is reported as what it is, without a request', async () => {
    const { baseUrl, state } = await answering((_request, response) => response.end('{}'))
    const circular: Record<string, unknown> = {}
    circular.self = circular
    const send = (client: HeedClient, metadata = {}) => client.getAgent('guide').sendMessage({ message: { contents: 'x', metadata }, ...thread })
    const mine = new Error('The token store is empty.')
    let calls = 0
    const headers = () => {
      calls++
      throw mine
    }
    await expect(send(new HeedClient({ baseUrl, headers }))).rejects.toBe(mine)
    await expect(new HeedClient({ baseUrl, headers }).getAgent('guide').subscribeToThread(thread)).rejects.toBe(mine)
    expect(calls).toBe(2)
    await expect(send(new HeedClient({ baseUrl }), circular)).rejects.toMatchObject({ code: 'invalid_argument', retryable: false })
    await expect(new HeedClient({ baseUrl: 'not a url' }).health()).rejects.toMatchObject({ code: 'invalid_argument', details: { option: 'baseUrl' } })
    expect(state.asked).toBe(0)
  })

  it('[H6.6] a response of something else than a server is reported as such, after one request', async () => {
    const { baseUrl, state } = await answering((_request, response) => response.end('<html>Sign in</html>'))
    await expect(new HeedClient({ baseUrl }).health()).rejects.toMatchObject({ name: 'HeedError', code: 'unreachable', retryable: false })
    expect(state.asked).toBe(1)
  })

  it('[H6.6] a server with Retry-After is asked again at that time, and not at all when that is long', async () => {
    let seconds = 1
    const times: number[] = []
    const { baseUrl, state } = await answering((_request, response) => {
      times.push(performance.now())
      if (times.length === 2) response.end('{"status":"ok"}')
      else response.writeHead(429, { 'retry-after': String(seconds) }).end('{"error":"Too many.","code":"rate_limited","retryable":true}')
    })
    const client = new HeedClient({ baseUrl })
    expect(await client.health()).toEqual({ status: 'ok' })
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(950)
    seconds = 3_600
    await expect(client.health()).rejects.toMatchObject({ code: 'rate_limited', details: { retryAfterMs: 3_600_000, status: 429 } })
    expect(state.asked).toBe(3)
  })
})

describe('a subscription whose connections open and are cut', () => {
  const cut: RequestListener = (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(': connected\n\n')
    setImmediate(() => response.destroy())
  }

  it('[H6.7] begins its pauses anew each time, and does not count them as failures in a row', async () => {
    const { baseUrl, state } = await answering(cut)
    const watch = new HeedClient({ baseUrl }).getAgent('guide').watchThread(thread)
    let lost = 0
    await watch.processDataStream({
      onChunk: () => {},
      // Twelve pauses that grow from 20 ms would be 40 s.
      reconnect: { delayMs: 20, maxRetries: 2, onLost: () => ++lost === 12 && watch.unsubscribe() },
    })
    expect([lost, state.asked]).toEqual([12, 12])
  })

  it('[H6.7] a server that does not answer is tried a limited number of times', async () => {
    const { baseUrl, state } = await answering((_request, response) => response.destroy())
    const watch = new HeedClient({ baseUrl }).getAgent('guide').watchThread(thread)
    await expect(watch.processDataStream({ onChunk: () => {}, reconnect: { delayMs: 1, maxRetries: 2 } })).rejects.toMatchObject({ code: 'unreachable' })
    expect(state.asked).toBe(3)
  })

  it('[H6.7] a token that can not be had for a while is asked for again', async () => {
    const { baseUrl, state } = await answering(cut)
    let calls = 0
    const headers = () => {
      if (++calls < 4) throw new Error('The token store is away.')
      return {}
    }
    const watch = new HeedClient({ baseUrl, headers }).getAgent('guide').watchThread(thread)
    await watch.processDataStream({ onChunk: () => {}, reconnect: { delayMs: 1, onOpen: () => watch.unsubscribe() } })
    expect([calls, state.asked]).toEqual([4, 1])
  })

  it('[H6.6] what a callback throws ends it', async () => {
    const { baseUrl, state } = await answering(cut)
    const mine = new Error('Mine.')
    const reading = new HeedClient({ baseUrl }).getAgent('guide').watchThread(thread).processDataStream({
      onChunk: () => {},
      reconnect: { delayMs: 1, onOpen: () => { throw mine } },
    })
    await expect(reading).rejects.toBe(mine)
    expect(state.asked).toBe(1)
  })
})
