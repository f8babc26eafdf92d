import { onTestFinished } from 'vitest'
import { Heed, InMemoryStore, silentLogger, type Agent, type HeedConfig, type Logger, type Storage } from '../../src/index.ts'
import { HeedClient } from '../../src/client/index.ts'
import { serve, type ServeOptions } from '../../src/http/server.ts'

/** A real server on a free port, closed when the test is over. */
export async function served(agents: Record<string, Agent>, options: ServedOptions = {}) {
  const served = await serving(agents, options)
  onTestFinished(() => served.server.close())
  return served
}

/** `heed`: what else the Heed of the server is made with. */
type ServedOptions = ServeOptions & { storage?: Storage; logger?: Logger; heed?: Partial<HeedConfig> }

/** A real server on a free port, which the caller closes: for the tests of a file that share it. */
export async function serving(agents: Record<string, Agent>, options: ServedOptions = {}) {
  const { storage = new InMemoryStore(), logger = silentLogger, heed: more, ...serveOptions } = options
  const heed = new Heed({ agents, storage, logger, ...more })
  const server = await serve(heed, { port: 0, handleSignals: false, ...serveOptions })
  const ask = (path: string, init: RequestInit & { json?: unknown } = {}) => {
    const { json, ...rest } = init
    return fetch(`${server.url}/api${path}`, {
      ...(json === undefined ? {} : { method: 'POST', body: JSON.stringify(json), headers: { 'content-type': 'application/json' } }),
      ...rest,
      ...(json === undefined ? {} : { headers: { 'content-type': 'application/json', ...(rest.headers as Record<string, string>) } }),
    })
  }
  return { heed, server, ask, client: new HeedClient({ baseUrl: server.url }) }
}

export const thread = { resourceId: 'user-1', threadId: 'thread-1' }
