import { after } from 'node:test'
import { Heed, InMemoryStore, silentLogger, type Agent, type HeedConfig } from 'heed'
import { HeedClient } from 'heed/client'
import { serve, type ServeOptions } from 'heed/server'

export const thread = { resourceId: 'user-1', threadId: 'thread-1' }

interface Serving extends ServeOptions {
  /** What the client sends with each request. */
  headers?: Record<string, string>
  heed?: Partial<HeedConfig>
}

/** A server on a free port, closed at the end of the program. */
export async function served(agent: Agent, { headers, heed: config = {}, ...options }: Serving = {}) {
  const heed = new Heed({ agents: { [agent.id]: agent }, storage: new InMemoryStore(), logger: silentLogger, ...config })
  const server = await serve(heed, { port: 0, handleSignals: false, ...options })
  after(() => server.close())
  return { heed, server, client: new HeedClient({ baseUrl: server.url, headers: headers ?? {} }) }
}
