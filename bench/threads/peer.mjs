import { Agent } from '@mastra/core/agent'
import { LibSQLStore } from '@mastra/libsql'
import { Memory } from '@mastra/memory'
import { newDatabase } from './database.mjs'

/** An agent of the peer with its memory as it comes, on a database file of its own. */
export function peerAgent(model) {
  const url = newDatabase()
  const storage = new LibSQLStore({ id: 'threads', url })
  const memory = new Memory({ storage })
  const agent = new Agent({ id: 'listener', name: 'listener', instructions: 'You answer.', model, memory })
  return { agent, memory, storage, file: url.slice('file:'.length) }
}
