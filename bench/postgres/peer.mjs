import { Agent } from '@mastra/core/agent'
import { Memory } from '@mastra/memory'
import { PostgresStore } from '@mastra/pg'
import { newServer } from './database.mjs'

/** An agent of the peer with its memory as it comes, on a PostgreSQL server of its own. */
export async function peerOnPostgres(model, more = {}) {
  const server = await newServer()
  const storage = new PostgresStore({ id: 'threads', connectionString: server.url, max: 8 })
  await storage.init()
  const memory = new Memory({ storage })
  const agent = new Agent({ id: 'listener', name: 'listener', instructions: 'You answer.', model, memory, ...more })
  return { agent, memory, storage, server }
}
