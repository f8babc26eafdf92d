import { onTestFinished } from 'vitest'
import { Agent, Heed, InMemoryStore, silentLogger, type LanguageModel, type Logger, type NotificationRecord } from '../../src/index.ts'
import { serve } from '../../src/http/server.ts'
import { GitHubSignals, WebhookSignals, type WebhookSignalsOptions } from '../../src/sources/index.ts'
import type { SqlStore } from '../../src/store/sql/store.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { storeKinds } from '../thread/places.ts'
import { hubSecret, secret } from './signing.ts'

export const thread = { threadId: 't1', resourceId: 'user-1' }
export const persist = { deliveryPolicy: { default: 'persist', priorities: { low: 'persist', medium: 'persist', high: 'persist', urgent: 'persist' } } } as const

/** Each storage is a database of its own. */
export const storages = storeKinds().map(({ name, store }): [name: string, storage: () => SqlStore] => [name, store])

interface Options {
  storage?: SqlStore
  model?: LanguageModel
  logger?: Logger
  webhook?: Partial<WebhookSignalsOptions>
  notifications?: ConstructorParameters<typeof Agent>[0]['notifications']
}

/** A server with both sources and one agent. */
export async function listening({ storage = new InMemoryStore(), model = scriptedModel(['Noted.'], { loop: true }), logger = silentLogger, webhook: options, notifications = persist }: Options = {}) {
  const webhook = new WebhookSignals({ id: 'shop', secret, ...options })
  const github = new GitHubSignals({ secret: hubSecret })
  const agent = new Agent({ id: 'guide', model, tools: webhook.getTools(), notifications })
  const heed = new Heed({ agents: { agent }, storage, sources: [webhook, github], logger })
  const server = await serve(heed, { port: 0, handleSignals: false })
  onTestFinished(() => server.close())
  const post = async (source: string, request: RequestInit): Promise<{ status: number; body: unknown }> => {
    const answer = await fetch(`${server.url}/api/webhooks/${source}`, request)
    return { status: answer.status, body: await answer.json() }
  }
  const inbox = async (scope: { threadId: string; resourceId?: string } = thread): Promise<NotificationRecord[]> =>
    (await (await storage.getStore('notifications'))?.listNotifications({ ...scope, limit: 100 }))?.notifications ?? []
  return { webhook, github, agent, heed, storage, post, inbox }
}
