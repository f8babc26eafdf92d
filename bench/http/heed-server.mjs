import { importHeed } from '../harness/side.mjs'
import { heedAgent } from '../threads/heed.mjs'

/** Heed's server, its agent with its memory as it comes, on a database file of its own. */
export async function heedServer(model) {
  const { agent, memory, heed, file } = await heedAgent(model)
  const { serve } = await importHeed('server')
  const { url } = await serve(heed, { port: 0, handleSignals: false })
  return { agent, memory, file, port: Number(new URL(url).port) }
}
