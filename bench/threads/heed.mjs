import { importHeed } from '../harness/side.mjs'
import { newDatabase } from './database.mjs'

/** An agent of Heed with its memory as it comes, on a database file of its own. */
export async function heedAgent(model) {
  const { Agent, Heed } = await importHeed()
  const { LibSQLStore } = await importHeed('libsql')
  const url = newDatabase()
  const agent = new Agent({ id: 'listener', instructions: 'You answer.', model })
  const heed = new Heed({ agents: { agent }, storage: new LibSQLStore({ url }) })
  await heed.start()
  return { agent, memory: await agent.getMemory(), heed, file: url.slice('file:'.length) }
}
