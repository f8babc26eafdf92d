// Notifications: events outside the conversation, and what the agent says about them as it reads them.
import { Agent, Heed, InMemoryStore, type ModelConfig } from 'heed'
import { scriptedModel } from 'heed/testing'

const script = () => scriptedModel([{ text: ['The build is broken:', ' I look at it now.'] }])

export async function main(model: ModelConfig = script(), print: (text: string) => void = console.log) {
  const coder = new Agent({ id: 'coder', instructions: 'You watch over a repository.', model })
  const heed = new Heed({ agents: { coder }, storage: new InMemoryStore() })
  const thread = { resourceId: 'user-7', threadId: 'main-branch' }

  const subscription = await coder.subscribeToThread(thread)
  const send = async (priority: 'low' | 'high', summary: string) => {
    const { decision, record } = await coder.sendNotificationSignal({ source: 'ci', kind: 'build', priority, summary }, thread)
    print(`${priority}: ${decision.action}, ${record.status}`)
  }
  // A low one waits in the inbox for a summary, which calls no model; a high one wakes the agent.
  await send('low', 'The build of a branch passed.')
  await send('high', 'The build of main failed.')

  for await (const chunk of subscription.stream) {
    if (chunk.type === 'text-delta') print(chunk.payload.text)
    if (chunk.type === 'error') throw new Error(chunk.payload.error.message)
    if (chunk.type === 'finish') break
  }
  await heed.close()
}

if (import.meta.main) await main(process.env.OPENAI_API_KEY ? 'openai/gpt-5.5' : undefined)
