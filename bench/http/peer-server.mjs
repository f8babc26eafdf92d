import { createAdaptorServer } from '@hono/node-server'
import { Mastra } from '@mastra/core'
import { MastraServer } from '@mastra/hono'
import { Hono } from 'hono'
import { peerAgent } from '../threads/peer.mjs'

/** The peer's server, its agent with its memory as it comes, on a database file of its own. */
export async function peerServer(model) {
  const { agent, memory, storage, file } = peerAgent(model)
  const app = new Hono()
  await new MastraServer({ app, mastra: new Mastra({ agents: { listener: agent }, storage, logger: false }) }).init()
  const server = createAdaptorServer({ fetch: app.fetch })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { agent, memory, file, port: server.address().port }
}
