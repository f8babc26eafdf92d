// Approval: a tool call that a person has to allow. While it waits the run is a row in the store, not a process.
import { Agent, createTool, Heed, InMemoryStore, type JSONValue, type ModelConfig } from 'heed'
import { scriptedModel } from 'heed/testing'
import { z } from 'zod'

const refund = createTool({
  id: 'refund',
  description: 'Pays money back to a customer.',
  inputSchema: z.object({ order: z.string(), amount: z.number() }),
  requireApproval: ({ amount }) => amount > 50,
  execute: ({ order, amount }) => ({ order, refunded: amount }),
})

const script = () =>
  scriptedModel(({ prompt }) => {
    const last = prompt.at(-1)
    if (last?.role !== 'tool') return { toolCalls: [{ toolName: 'refund', input: { order: 'A-7', amount: 120 } }] }
    const declined = last.content.some((part) => part.type === 'tool-result' && part.output.type === 'execution-denied')
    return declined ? 'I may not refund that much; a colleague will call you.' : 'Your 120 are on their way back.'
  })

export async function main(model: ModelConfig = script(), allow: (input: JSONValue) => boolean = () => true) {
  const support = new Agent({ id: 'support', instructions: 'Help customers with their orders.', model, tools: { refund } })
  const heed = new Heed({ agents: { support }, storage: new InMemoryStore() })
  const thread = { resourceId: 'customer-7', threadId: 'order-A-7' }

  const subscription = await support.subscribeToThread(thread)
  support.sendMessage('My order A-7 arrived broken. Please refund the 120.', thread)

  let answer = ''
  for await (const chunk of subscription.stream) {
    if (chunk.type === 'tool-call-approval') {
      const { toolCallId, args } = chunk.payload
      // The model reads the reason if it is declined.
      const declineContext = { reason: 'Above the limit.' }
      await support.sendToolApproval({ ...thread, toolCallId, approved: allow(args), declineContext })
    }
    if (chunk.type === 'text-delta') answer += chunk.payload.text
    if (chunk.type === 'error') throw new Error(chunk.payload.error.message)
    if (chunk.type === 'finish') subscription.unsubscribe()
  }
  await heed.close()
  return answer
}

if (import.meta.main) console.log(await main(process.env.OPENAI_API_KEY ? 'openai/gpt-5.5' : undefined))
