import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** A request that a provider received. */
export interface SentRequest {
  path: string
  headers: Record<string, string | string[] | undefined>
  body: string
}

export interface LocalAnswer {
  status: number
  body: unknown
  headers?: Record<string, string>
}

/** A server on this machine in the place of a provider. `answer` 'break' ends the connection without one, 'silence' leaves it open. */
export async function localProvider(answer: (request: SentRequest) => LocalAnswer | 'break' | 'silence'): Promise<{ url: string; requests: SentRequest[] }> {
  const requests: SentRequest[] = []
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const sent = { path: request.url ?? '', headers: request.headers, body: Buffer.concat(parts).toString() }
      requests.push(sent)
      const given = answer(sent)
      if (given === 'silence') return
      if (given === 'break') return void request.socket.destroy()
      response.writeHead(given.status, { 'content-type': 'application/json', ...given.headers })
      response.end(typeof given.body === 'string' ? given.body : JSON.stringify(given.body))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}

/** The request of a channel. */
export function requestOf(body: string, headers: Record<string, string>): { headers: Headers; body: string } {
  return { headers: new Headers(headers), body }
}

/** The code of the error that this throws. */
export function codeOf(act: () => unknown): unknown {
  try {
    act()
  } catch (error) {
    return (error as { code?: unknown }).code
  }
  return 'accepted'
}
