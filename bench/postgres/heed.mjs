import { importHeed } from '../harness/side.mjs'
import { newServer } from './database.mjs'

/** An agent of Heed with its memory as it comes, on a PostgreSQL server of its own. */
export async function heedOnPostgres(model, { agent: more = {}, heed: options = {} } = {}) {
  const server = await newServer()
  const { Agent, Heed } = await importHeed()
  const { PostgresStore } = await importHeed('pg')
  const agent = new Agent({ id: 'listener', instructions: 'You answer.', model, ...more })
  const heed = new Heed({ agents: { agent }, storage: new PostgresStore({ connectionString: server.url, max: 8 }), ...options })
  await heed.start()
  return { agent, memory: await agent.getMemory(), heed, server }
}
