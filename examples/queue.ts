// Queueing: each message gets a run of its own, in order, after the one that is active.
import { Agent, Heed, InMemoryStore, type ModelConfig } from 'heed'
import { scriptedModel } from 'heed/testing'

const script = () => scriptedModel(['The tests pass.', 'The changelog is complete.', 'Tagged as 2.1.0.'])

export async function main(model: ModelConfig = script()) {
  const releaser = new Agent({ id: 'releaser', instructions: 'Do one thing at a time.', model })
  const heed = new Heed({ agents: { releaser }, storage: new InMemoryStore() })
  const thread = { resourceId: 'team-1', threadId: 'release' }

  const subscription = await releaser.subscribeToThread(thread)
  releaser.sendMessage('Run the tests.', thread)
  releaser.queueMessage('Then check the changelog.', thread)
  const last = releaser.queueMessage('Then tag it.', thread)

  const answers = new Map<string, string>()
  for await (const chunk of subscription.stream) {
    if (chunk.type === 'text-delta') answers.set(chunk.runId, (answers.get(chunk.runId) ?? '') + chunk.payload.text)
    if (chunk.type === 'error') throw new Error(chunk.payload.error.message)
    if (chunk.type === 'finish' && chunk.runId === last.runId) subscription.unsubscribe()
  }
  await heed.close()
  return [...answers.values()]
}

if (import.meta.main) console.log(await main(process.env.OPENAI_API_KEY ? 'openai/gpt-5.5' : undefined))
