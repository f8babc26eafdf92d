import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Agent, Heed, InMemoryStore, silentLogger, type LanguageModel } from '../../src/index.ts'
import { serve } from '../../src/http/server.ts'
import { GitHubSignals, WebhookSignals, type WebhookSignalsOptions } from '../../src/sources/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { hub, hubSecret, secret, standard } from './signing.ts'

const thread = { threadId: 't1', resourceId: 'user-1' }

async function listening(model: LanguageModel = scriptedModel(['Noted.'], { loop: true }), more: Partial<WebhookSignalsOptions> = {}) {
  const storage = new InMemoryStore()
  const webhook = new WebhookSignals({ id: 'shop', secret, ...more })
  const github = new GitHubSignals({ secret: hubSecret })
  const agent = new Agent({ id: 'guide', model, tools: webhook.getTools(), notifications: { deliveryPolicy: { default: 'persist', priorities: { low: 'persist', medium: 'persist', high: 'persist', urgent: 'persist' } } } })
  const heed = new Heed({ agents: { agent }, storage, sources: [webhook, github], logger: silentLogger })
  const server = await serve(heed, { port: 0, handleSignals: false })
  onTestFinished(() => server.close())
  const post = (source: string, request: RequestInit) => fetch(`${server.url}/api/webhooks/${source}`, request)
  const inbox = async () => (await (await storage.getStore('notifications'))?.listNotifications({ ...thread, limit: 100 }))?.notifications ?? []
  return { webhook, github, post, inbox, agent, heed }
}

describe('webhooks', () => {
  it('[E1.1] refuses what is badly signed, too old, replayed, too large or no JSON, and stores nothing of it', async () => {
    const { webhook, post, inbox } = await listening()
    await webhook.subscribe({ ...thread, agentId: 'guide', externalId: 'order-7' })
    const body = JSON.stringify({ type: 'order.paid', resource: 'order-7' })
    const status = async (request: RequestInit) => (await post('shop', request)).status
    expect(await status(standard(body, { key: 'whsec_b3RoZXItc2VjcmV0LW90aGVyLXNlY3JldA==' }))).toBe(401)
    expect(await status({ ...standard(body), body: `${body} ` })).toBe(401)
    expect(await status(standard(body, { at: Date.now() - 600_000 }))).toBe(401)
    expect(await status(standard(body, { at: Date.now() + 600_000 }))).toBe(401)
    expect(await status({ method: 'POST', body })).toBe(401)
    expect(await status(standard('[1]'))).toBe(400)
    expect(await status(standard('{'))).toBe(400)
    expect(await status(standard(JSON.stringify({ pad: 'x'.repeat(2_000_000) })))).toBe(413)
    expect((await post('nobody', standard(body))).status).toBe(404)
    expect(await inbox()).toEqual([])
    const once = standard(body, { id: 'msg-2' })
    expect([await status(once), await status(once)]).toEqual([200, 401])
    expect(await inbox()).toHaveLength(1)
  })

  it('[E1.1] refuses of GitHub what is badly signed, too large or no JSON object, and takes a kept request under another delivery as the same event', async () => {
    const { github, post, inbox } = await listening()
    await github.subscribe({ ...thread, agentId: 'guide', externalId: 'acme/shop' })
    const comment = { action: 'created', repository: { full_name: 'acme/shop' }, comment: { body: 'Nice.' }, issue: { number: 12 } }
    const good = hub('issue_comment', comment)
    const headers = good.headers as Record<string, string>
    const status = async (request: RequestInit) => (await post('github', request)).status
    expect(await status(hub('issue_comment', comment, 'd', 'another-long-secret'))).toBe(401)
    expect(await status({ ...good, body: `${String(good.body)} ` })).toBe(401)
    expect(await status({ ...good, headers: { ...headers, 'x-hub-signature-256': '' } })).toBe(401)
    expect(await status({ ...good, headers: { ...headers, 'x-hub-signature-256': headers['x-hub-signature-256']?.replace('sha256=', 'sha1=') ?? '' } })).toBe(401)
    expect(await status({ ...good, headers: { ...headers, 'x-github-delivery': '' } })).toBe(400)
    expect(await status(hub('issue_comment', 'no object'))).toBe(400)
    expect(await status(hub('issue_comment', { ...comment, pad: 'x'.repeat(2_000_000) }))).toBe(413)
    expect(await inbox()).toEqual([])
    expect([await status(good), await status(good), await status(hub('issue_comment', comment, 'another-delivery'))]).toEqual([200, 200, 200])
    expect(await inbox()).toHaveLength(1)
  })

  it('[E1.2] takes a retry of the same event as the same event', async () => {
    const { webhook, post, inbox } = await listening()
    await webhook.subscribe({ ...thread, agentId: 'guide', externalId: 'order-7' })
    const body = JSON.stringify({ type: 'order.paid', resource: 'order-7' })
    const now = Date.now()
    const answers = [0, 1, 2].map((later) => post('shop', standard(body, { at: now + later * 1_000 })).then(({ status }) => status))
    const statuses = await Promise.all(answers)
    expect(statuses).toContain(200)
    expect(await inbox()).toMatchObject([{ source: 'shop', kind: 'order.paid' }])
  })

  it('[E1.2] takes events whose ids are long, each once', async () => {
    const { webhook, post, inbox } = await listening()
    await webhook.subscribe({ ...thread, agentId: 'guide', externalId: 'order-7' })
    const event = (id: string) => JSON.stringify({ specversion: '1.0', id, source: `/shop/${'long/'.repeat(60)}`, type: 'order.shipped', subject: 'order-7' })
    const told = async (id: string, delivery: string) => (await post('shop', standard(event(id), { id: delivery, 'content-type': 'application/cloudevents+json' }))).status
    expect([await told('e1', 'a'), await told('e1', 'b'), await told('e2', 'c')]).toEqual([200, 200, 200])
    const records = await inbox()
    expect(records).toHaveLength(2)
    expect(records.every(({ id }) => id.length <= 200)).toBe(true)
  })

  it('[E1.2] reads CloudEvents in both of their forms', async () => {
    const { webhook, post, inbox } = await listening(undefined, { acceptUnsignedHeaders: true })
    await webhook.subscribe({ ...thread, agentId: 'guide', externalId: 'order-7' })
    const structured = JSON.stringify({ specversion: '1.0', id: 'e1', source: '/shop', type: 'order.shipped', subject: 'order-7', data: { carrier: 'ox' } })
    expect(await (await post('shop', standard(structured, { id: 'a', 'content-type': 'application/cloudevents+json' }))).json()).toEqual({ delivered: 1 })
    expect(await (await post('shop', standard('{"carrier":"ox"}', { id: 'b', 'ce-id': 'e2', 'ce-source': '/shop', 'ce-type': 'order.returned', 'ce-subject': 'order-7' }))).json()).toEqual({ delivered: 1 })
    expect((await post('shop', standard('{"specversion":"0.3"}', { id: 'c', 'content-type': 'application/cloudevents+json' }))).status).toBe(400)
    expect((await inbox()).map(({ kind }) => kind).toSorted()).toEqual(['order.returned', 'order.shipped'])
  })

  it('[E1.3] tells the threads that subscribed to a pull request of its CI, reviews and comments, once for each delivery', async () => {
    const { github, post, inbox } = await listening()
    await github.subscribe({ ...thread, agentId: 'guide', externalId: 'acme/shop#12' })
    await github.subscribe({ ...thread, agentId: 'guide', externalId: 'acme/shop' })
    const repository = { full_name: 'acme/shop' }
    const sender = { login: 'ada' }
    const failed = { action: 'completed', repository, workflow_run: { name: 'CI', conclusion: 'failure', head_branch: 'fix', html_url: 'https://github.example/1', pull_requests: [{ number: 12 }] } }
    const review = { action: 'submitted', repository, sender, review: { state: 'changes_requested', body: 'Too long.' }, pull_request: { number: 12, title: 'Fix' } }
    const comment = { action: 'created', repository, sender, comment: { body: 'Nice.' }, issue: { number: 12 } }
    for (const [event, payload] of [['workflow_run', failed], ['pull_request_review', review], ['issue_comment', comment]] as const) {
      expect(await (await post('github', hub(event, payload))).json()).toEqual({ delivered: 1 })
      expect((await post('github', hub(event, payload))).status).toBe(200)
    }
    expect((await post('github', hub('issue_comment', comment, 'x', 'another-long-secret'))).status).toBe(401)
    expect(await (await post('github', hub('star', { action: 'created', repository }))).json()).toEqual({ delivered: 0 })
    const told = (await inbox()).map(({ kind, priority, summary }) => ({ kind, priority, summary })).toSorted((one, other) => one.kind.localeCompare(other.kind))
    expect(told).toEqual([
      { kind: 'ci-status', priority: 'high', summary: 'CI failure on acme/shop (fix) https://github.example/1' },
      { kind: 'comment', priority: 'medium', summary: 'ada commented on acme/shop#12: Nice.' },
      { kind: 'review', priority: 'high', summary: 'ada asked for changes on acme/shop#12: Too long.' },
    ])
  })

  it('[E1.4] lets an agent subscribe its own thread and no other', async () => {
    const { webhook, post, inbox, agent } = await listening(scriptedModel([{ toolCalls: [{ toolName: 'subscribe-shop', input: { id: 'order-9' } }] }, 'I listen.']))
    await agent.generate('Tell me about order 9.', { memory: { thread: 't9', resource: 'user-9' } })
    const { subscriptions } = await webhook.listSubscriptions()
    expect(subscriptions).toMatchObject([{ threadId: 't9', resourceId: 'user-9', agentId: 'guide', externalId: 'order-9' }])
    expect(await webhook.unsubscribe({ threadId: 't9', resourceId: 'user-1' })).toBe(0)
    expect(await webhook.unsubscribe({ threadId: 't9', resourceId: 'user-9' })).toBe(1)
    expect(await (await post('shop', standard(JSON.stringify({ resource: 'order-9' })))).json()).toEqual({ delivered: 0 })
    expect(await inbox()).toEqual([])
  })

  it('[E1.5] loses no event when the process is killed before it answered: the very same request is taken again, and is one record', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'heed-'))
    const file = join(folder, 'heed.db')
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const body = JSON.stringify({ type: 'order.paid', resource: 'order-7' })
    const request = standard(body, { id: 'msg-1' })
    const acknowledged: string[] = []
    for (const point of ['received', 'stored', 'none']) {
      const child = spawn(process.execPath, [join(import.meta.dirname, 'webhook-process.ts'), file, point], { stdio: ['ignore', 'pipe', 'inherit'] })
      onTestFinished(() => void child.kill('SIGKILL'))
      const gone = once(child, 'exit')
      for await (const url of createInterface({ input: child.stdout })) {
        const answer = await fetch(`${url}/api/webhooks/shop`, request).then(({ status }) => String(status), () => 'lost')
        acknowledged.push(answer)
        break
      }
      child.kill('SIGKILL')
      await gone
    }
    expect(acknowledged).toEqual(['lost', 'lost', '200'])
    const store = await new LibSQLStore({ url: `file:${file}` }).getStore('notifications')
    expect((await store?.listNotifications({ ...thread, limit: 10 }))?.notifications).toHaveLength(1)
    await store?.close()
  })
})
