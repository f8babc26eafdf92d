// Server: an agent behind HTTP, and a client that prints the answer as it arrives.
import { Agent, Heed, InMemoryStore, type ModelConfig } from 'heed'
import { HeedClient } from 'heed/client'
import { apiKeys, serve } from 'heed/server'
import { scriptedModel } from 'heed/testing'

const script = () => scriptedModel([{ text: ['Take the train', ' at nine.'] }])

export async function main(model: ModelConfig = script(), print: (text: string) => void = console.log) {
  const guide = new Agent({ id: 'guide', instructions: 'You plan trips.', model })
  const heed = new Heed({ agents: { guide }, storage: new InMemoryStore() })
  // A key has at least 16 characters; its principal may access the threads of its resources alone.
  const key = 'a-long-random-key-of-user-7'
  const server = await serve(heed, { port: 0, auth: apiKeys({ [key]: { id: 'user-7', resources: ['user-7'] } }) })

  const client = new HeedClient({ baseUrl: server.url, headers: { authorization: `Bearer ${key}` } })
  const thread = { resourceId: 'user-7', threadId: 'trip-1' }
  const subscription = await client.getAgent('guide').subscribeToThread(thread)
  await client.getAgent('guide').sendMessage({ message: 'How do I get to Bern?', ...thread })

  for await (const chunk of subscription.chunks()) {
    if (chunk.type === 'text-delta') print(chunk.payload.text)
    if (chunk.type === 'error') throw new Error(chunk.payload.error.message)
    if (chunk.type === 'finish') break
  }
  subscription.unsubscribe()
  await server.close()
}

if (import.meta.main) await main(process.env.OPENAI_API_KEY ? 'openai/gpt-5.5' : undefined)
