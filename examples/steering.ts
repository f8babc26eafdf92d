// Steering: a message that is sent while the agent works enters its running loop at the next step.
import { Agent, createTool, Heed, InMemoryStore, type ModelConfig, type SendReceipt } from 'heed'
import { scriptedModel } from 'heed/testing'
import { z } from 'zod'

const script = () =>
  scriptedModel([
    { text: 'Let me look it up. ', toolCalls: [{ toolName: 'search', input: { topic: 'tides' } }] },
    'In one sentence: the moon pulls the sea, and the earth turns under it.',
  ])

export async function main(model: ModelConfig = script()) {
  // A slow tool. It lasts until the user has changed their mind.
  const written = Promise.withResolvers<void>()
  const search = createTool({
    id: 'search',
    description: 'Searches an encyclopedia.',
    inputSchema: z.object({ topic: z.string() }),
    async execute({ topic }) {
      await written.promise
      return { pages: [`${topic}: causes`, `${topic}: tables`] }
    },
  })
  const analyst = new Agent({ id: 'analyst', instructions: 'Search before you answer.', model, tools: { search } })
  const heed = new Heed({ agents: { analyst }, storage: new InMemoryStore() })
  const thread = { resourceId: 'user-1', threadId: 'tides' }

  const subscription = await analyst.subscribeToThread(thread)
  analyst.sendMessage('Write a long report about the tides.', thread)

  let receipt: SendReceipt | undefined
  let answer = ''
  for await (const chunk of subscription.stream) {
    if (chunk.type === 'tool-call' && !receipt) {
      receipt = analyst.sendMessage('One sentence is enough after all.', thread)
      await receipt.stored
      written.resolve()
    }
    if (chunk.type === 'text-delta') answer += chunk.payload.text
    if (chunk.type === 'error') throw new Error(chunk.payload.error.message)
    if (chunk.type === 'finish') subscription.unsubscribe()
  }
  // { action: 'delivered', runId, step: 1 }: it was in the prompt of the second step, of the same run.
  const outcome = await receipt?.outcome
  await heed.close()
  return { answer, outcome }
}

if (import.meta.main) console.log(await main(process.env.OPENAI_API_KEY ? 'openai/gpt-5.5' : undefined))
