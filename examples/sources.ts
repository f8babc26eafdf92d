// Sources: a signed webhook about an order reaches the thread that subscribed to the order.
import { createHmac } from 'node:crypto'
import { Agent, Heed, InMemoryStore, type ModelConfig } from 'heed'
import { serve } from 'heed/server'
import { WebhookSignals } from 'heed/sources'
import { scriptedModel } from 'heed/testing'

const script = () => scriptedModel([{ text: ['Order 7 is paid:', ' I send it.'] }])

export async function main(model: ModelConfig = script(), print: (text: string) => void = console.log) {
  // As Standard Webhooks has it: `whsec_` and the key in base64.
  const secret = `whsec_${Buffer.from('a secret of the shop').toString('base64')}`
  const shop = new WebhookSignals({ id: 'shop', secret })
  const clerk = new Agent({ id: 'clerk', instructions: 'You handle orders.', model })
  const heed = new Heed({ agents: { clerk }, sources: [shop], storage: new InMemoryStore() })
  const server = await serve(heed, { port: 0 })
  const thread = { resourceId: 'user-7', threadId: 'orders' }

  const subscription = await clerk.subscribeToThread(thread)
  await shop.subscribe({ ...thread, agentId: 'clerk', externalId: 'order-7' })
  const { status } = await post(`${server.url}/api/webhooks/shop`, secret, { type: 'order.paid', resource: 'order-7' })
  print(`the webhook was answered with ${status}`)

  for await (const chunk of subscription.stream) {
    if (chunk.type === 'text-delta') print(chunk.payload.text)
    if (chunk.type === 'error') throw new Error(chunk.payload.error.message)
    if (chunk.type === 'finish') break
  }
  await server.close()
}

/** What the shop does. */
function post(url: string, secret: string, event: object): Promise<Response> {
  const [id, timestamp, body] = ['msg-1', String(Math.floor(Date.now() / 1_000)), JSON.stringify(event)]
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` }
  return fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } })
}

if (import.meta.main) await main(process.env.OPENAI_API_KEY ? 'openai/gpt-5.5' : undefined)
