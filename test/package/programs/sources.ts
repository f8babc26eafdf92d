import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { Agent, InMemoryStore, type Logger } from 'heed'
import { GitHubSignals, SignalProvider, WebhookSignals, type SourceEvent } from 'heed/sources'
import { scriptedModel, virtualClock } from 'heed/testing'
import { served, thread } from './parts/serving.ts'
import { until } from './parts/until.ts'

const secret = 'whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQ='
const hubSecret = 'plain words of the hub'
const notifications = { deliveryPolicy: { default: 'persist' } } as const
const guide = () => new Agent({ id: 'guide', model: scriptedModel(['Noted.'], { loop: true }), notifications })

function signed(body: string, id = 'msg-1'): RequestInit {
  const timestamp = String(Math.floor(Date.now() / 1_000))
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` }
  return { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } }
}

test('a signed webhook becomes a notification in the inbox, and a wrong signature does not', async () => {
  const shop = new WebhookSignals({ id: 'shop', secret })
  const { server, client } = await served(guide(), { heed: { sources: [shop] } })
  await shop.subscribe({ ...thread, agentId: 'guide', externalId: 'order-7' })
  const body = JSON.stringify({ type: 'order.paid', resource: 'order-7' })
  const post = (init: RequestInit) => fetch(`${server.url}/api/webhooks/shop`, init)
  assert.equal((await post({ ...signed(body), body: `${body} ` })).status, 401)
  assert.equal((await post(signed(body))).status, 200)
  const { notifications } = await client.getAgent('guide').notifications.list(thread)
  assert.deepEqual(notifications.map(({ source, kind }) => [source, kind]), [['shop', 'order.paid']])
})

test('the secret of a webhook is redacted in logs', async () => {
  const lines: string[] = []
  const log = (message: string, fields?: object) => void lines.push(`${message} ${JSON.stringify(fields)}`)
  const logger: Logger = { debug: log, info: log, warn: log, error: log }
  const github = new GitHubSignals({ secret: hubSecret })
  const { heed } = await served(guide(), { heed: { sources: [github], logger } })
  heed.logger.error(`could not verify with ${hubSecret}`, { tried: hubSecret })
  assert.equal(lines.length, 1)
  assert.ok(!lines.join('\n').includes(hubSecret), lines.join('\n'))
})

test('an error with the secret of a webhook is redacted where the server logs it', async () => {
  const lines: string[] = []
  const log = (message: string, fields?: object) => void lines.push(`${message} ${JSON.stringify(fields)}`)
  const logger: Logger = { debug: log, info: log, warn: log, error: log }
  class Failing extends GitHubSignals {
    override async handleWebhook(): Promise<never> {
      throw new Error(`the key ${hubSecret} was refused`)
    }
  }
  const { server } = await served(guide(), { heed: { sources: [new Failing({ secret: hubSecret })], logger } })
  assert.equal((await fetch(`${server.url}/api/webhooks/github`, { method: 'POST', body: '{}' })).status, 500)
  assert.match(lines.join('\n'), /was refused/)
  assert.ok(!lines.join('\n').includes(hubSecret), lines.join('\n'))
})

class Builds extends SignalProvider {
  readonly id = 'builds'
  override readonly pollInterval = 60_000

  override async poll(subscriptions: readonly { externalId: string }[]): Promise<SourceEvent[]> {
    const notification = { kind: 'build', summary: 'Build 1' }
    return subscriptions.map(({ externalId }) => ({ id: 'build-1', externalIds: [externalId], notification }))
  }
}

test('a source of the user is polled', async () => {
  const clock = virtualClock()
  const builds = new Builds()
  const { client } = await served(guide(), { heed: { sources: [builds], clock, storage: new InMemoryStore({ clock }) } })
  await builds.subscribe({ ...thread, agentId: 'guide', externalId: 'main' })
  await until(async () => {
    await clock.advance(60_000)
    const { notifications } = await client.getAgent('guide').notifications.list(thread)
    return notifications.map(({ summary }) => summary)
  }, ['Build 1'])
})
