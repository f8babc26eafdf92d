// Quickstart: watch a thread, send it a message, and see the answer arrive.
import { Agent, Heed, InMemoryStore, type ModelConfig } from 'heed'
import { scriptedModel } from 'heed/testing'

const script = () => scriptedModel(['A thread is a place where an agent lives, and where you can reach it at any time.'])

export async function main(model: ModelConfig = script()) {
  const guide = new Agent({ id: 'guide', instructions: 'Answer in one sentence.', model })
  // Without `storage`, threads are kept in the file ./heed.db.
  const heed = new Heed({ agents: { guide }, storage: new InMemoryStore() })
  const thread = { resourceId: 'user-1', threadId: 'first-steps' }

  const subscription = await guide.subscribeToThread(thread)
  guide.sendMessage('What is a thread?', thread)

  let answer = ''
  for await (const chunk of subscription.stream) {
    if (chunk.type === 'text-delta') answer += chunk.payload.text
    if (chunk.type === 'error') throw new Error(chunk.payload.error.message)
    if (chunk.type === 'finish') subscription.unsubscribe()
  }
  await heed.close()
  return answer
}

if (import.meta.main) console.log(await main(process.env.OPENAI_API_KEY ? 'openai/gpt-5.5' : undefined))
