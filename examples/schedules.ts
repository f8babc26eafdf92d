// Schedules: a message that is sent once a second, until the agent has answered it twice.
import { Agent, Heed, InMemoryStore, type ModelConfig } from 'heed'
import { scriptedModel } from 'heed/testing'

const script = () => scriptedModel([{ text: ['No delays.'] }, { text: ['The train at nine', ' is late.'] }])

export async function main(model: ModelConfig = script(), print: (text: string) => void = console.log) {
  const guide = new Agent({ id: 'guide', instructions: 'You watch the trains.', model })
  const heed = new Heed({ agents: { guide }, storage: new InMemoryStore() })
  const thread = { resourceId: 'user-7', threadId: 'trip-1' }

  const subscription = await guide.subscribeToThread(thread)
  // Any process on the storage sends it, each occurrence once.
  await guide.schedule({ ...thread, id: 'delays', message: 'Are there delays?', every: 1_000 })

  let answers = 0
  for await (const chunk of subscription.stream) {
    if (chunk.type === 'text-delta') print(chunk.payload.text)
    if (chunk.type === 'error') throw new Error(chunk.payload.error.message)
    if (chunk.type === 'finish' && ++answers === 2) break
  }
  await guide.schedules.remove({ id: 'delays', resourceId: 'user-7' })
  await heed.close()
  return answers
}

if (import.meta.main) await main(process.env.OPENAI_API_KEY ? 'openai/gpt-5.5' : undefined)
