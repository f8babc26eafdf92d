import { describe, expect, it } from 'vitest'
import { GitHubSignals, WebhookSignals } from '../../src/sources/index.ts'
import { issueComment, status } from './github-payloads.ts'
import { listening, thread } from './listening.ts'
import { hub, hubSecret, secret, standard } from './signing.ts'

const guide = { agentId: 'guide' }
const media = { 'content-type': 'application/cloudevents+json' }

describe('what a signature does not cover', () => {
  const envelope = JSON.stringify({ specversion: '1.0', id: 'e1', source: '/shop', type: 'order.paid', subject: 'order-1' })
  const cases: Array<[what: string, body: string, headers: Record<string, string>, refused: string]> = [
    ['the subject of an envelope', envelope, { ...media, 'ce-subject': 'order-2' }, 'ce-subject'],
    ['the type of an envelope', envelope, { ...media, 'ce-type': 'order.lost' }, 'ce-type'],
    ['the id of an envelope', envelope, { ...media, 'ce-id': 'e2' }, 'ce-id'],
    ['the source of an envelope', envelope, { ...media, 'ce-source': '/other' }, 'ce-source'],
    ['the subject of plain JSON', '{"type":"order.paid","resource":"order-1"}', { 'ce-subject': 'order-2' }, 'ce-subject'],
    ['the subject within data', '{"type":"order.paid","data":{"resource":"order-1"}}', { 'ce-subject': 'order-2' }, 'ce-subject'],
    ['the subject by the source', '{"type":"order.paid","resource":"order-1"}', { 'ce-source': 'order-2' }, 'ce-source'],
    ['the type of plain JSON', '{"type":"order.paid","resource":"order-1"}', { 'ce-type': 'order.lost' }, 'ce-type'],
    ['the id of a delivery', '{"type":"order.paid","resource":"order-1"}', { 'ce-id': 'e2' }, 'ce-id'],
    ['a subject that the body lacks', '{"total":1}', { 'ce-id': 'e2', 'ce-source': '/shop', 'ce-type': 'order.paid', 'ce-subject': 'order-2' }, 'ce-subject'],
  ]
  it.each(cases)('[E1.10] changes no event: %s', async (_what, body, headers, field) => {
    const { webhook, post, inbox } = await listening()
    await webhook.subscribe({ ...thread, ...guide, externalId: 'order-1' })
    await webhook.subscribe({ threadId: 't2', resourceId: 'user-2', ...guide, externalId: 'order-2' })
    const answer = await post('shop', standard(body, headers))
    expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_argument', details: { header: field } } })
    expect((answer.body as { error: string }).error).toContain(field)
    expect([await inbox(), await inbox({ threadId: 't2' })]).toEqual([[], []])
  })

  it('[E1.10] may be repeated: headers that agree with the signed body change nothing', async () => {
    const { webhook, post, inbox } = await listening()
    await webhook.subscribe({ ...thread, ...guide, externalId: 'order-1' })
    const same = { 'ce-specversion': '1.0', 'ce-id': 'e1', 'ce-source': '/shop', 'ce-type': 'order.paid', 'ce-subject': 'order-1' }
    expect(await post('shop', standard(envelope, { id: 'a', ...media, ...same }))).toEqual({ status: 200, body: { delivered: 1 } })
    expect(await post('shop', standard('{"type":"order.sent","resource":"order-1"}', { id: 'b', 'ce-id': 'b', 'ce-subject': 'order-1', 'ce-type': 'order.sent' }))).toEqual({ status: 200, body: { delivered: 1 } })
    expect((await inbox()).map(({ kind }) => kind).toSorted()).toEqual(['order.paid', 'order.sent'])
  })

  it.each(['application/cloudevents+json', 'application/json', 'text/plain'])('[E1.10] does not decide how the body is read: an envelope that is sent as %s is the same event', async (type) => {
    for (const webhookOptions of [{}, { acceptUnsignedHeaders: true }]) {
      const { webhook, post, inbox } = await listening({ webhook: webhookOptions })
      await webhook.subscribe({ ...thread, ...guide, externalId: 'order-1' })
      await webhook.subscribe({ threadId: 't2', resourceId: 'user-2', ...guide, externalId: 'order-2' })
      const signed = JSON.stringify({ specversion: '1.0', id: 'e1', source: '/shop', type: 'order.paid', subject: 'order-1', data: { resource: 'order-2' } })
      expect(await post('shop', standard(signed, { id: 'a', 'content-type': type }))).toEqual({ status: 200, body: { delivered: 1 } })
      expect([await inbox(), await inbox({ threadId: 't2' })]).toMatchObject([[{ kind: 'order.paid' }], []])
      expect(await post('shop', standard(signed, { id: 'b', 'content-type': type, 'ce-subject': 'order-2' }))).toMatchObject({ status: 400 })
      expect(await inbox({ threadId: 't2' })).toEqual([])
    }
  })

  it('[E1.10] is read where the source accepts it, and even then not against the signed body', async () => {
    const { webhook, post, inbox } = await listening({ webhook: { acceptUnsignedHeaders: true } })
    await webhook.subscribe({ ...thread, ...guide, externalId: 'order-1' })
    const binary = { 'ce-specversion': '1.0', 'ce-source': '/shop', 'ce-type': 'order.paid', 'ce-subject': 'order-1' }
    expect(await post('shop', standard('{"total":1}', { id: 'a', 'ce-id': 'e1', ...binary }))).toEqual({ status: 200, body: { delivered: 1 } })
    expect(await post('shop', standard('{"resource":"order-2"}', { id: 'b', 'ce-id': 'e2', ...binary }))).toMatchObject({ status: 400 })
    expect(await inbox()).toMatchObject([{ kind: 'order.paid' }])
    expect(() => new WebhookSignals({ secret, acceptUnsignedHeaders: 'yes' as never })).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
  })
})

describe('the age of a delivery of GitHub', () => {
  const day = 86_400_000
  const at = (ms: number) => new Date(Date.now() - ms).toISOString()
  const commentAt = (created_at: string) => {
    const payload = issueComment('Nice.')
    return { ...payload, comment: { ...payload.comment, created_at, updated_at: created_at } }
  }

  it('[E1.11] is limited to three days by the newest time in the signed payload', async () => {
    const { github, post, inbox } = await listening()
    await github.subscribe({ ...thread, ...guide, externalId: 'acme/shop' })
    expect(await post('github', hub('issue_comment', commentAt(at(3 * day + 60_000)), 'a'))).toMatchObject({ status: 401, body: { code: 'unauthorized' } })
    expect(await post('github', hub('status', { ...status('failure'), created_at: at(9 * day), updated_at: at(9 * day) }, 'b'))).toMatchObject({ status: 401 })
    expect(await inbox()).toEqual([])
    expect(await post('github', hub('issue_comment', commentAt(at(3 * day - 60_000)), 'c'))).toMatchObject({ status: 200 })
    expect(await post('github', hub('status', { ...status('failure'), created_at: at(9 * day), updated_at: at(0) }, 'd'))).toMatchObject({ status: 200 })
    expect(await inbox()).toHaveLength(2)
  })

  it('[E1.11] is the one that the source chooses', () => {
    for (const maxAgeSeconds of [0, -1, Number.NaN, '60' as never]) {
      expect(() => new GitHubSignals({ secret: hubSecret, maxAgeSeconds })).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
    }
    expect(new GitHubSignals({ secret: hubSecret, maxAgeSeconds: 600 }).id).toBe('github')
  })
})

describe('payloads that are too deep', () => {
  const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
  it.each([101, 10_000, 90_000])('[E1.1] are refused, not asked for again: %i levels', async (levels) => {
    const { webhook, github, post, inbox } = await listening()
    await webhook.subscribe({ ...thread, ...guide, externalId: 'order-1' })
    await github.subscribe({ ...thread, ...guide, externalId: 'acme/shop' })
    expect(await post('shop', standard(`{"type":"t","resource":"order-1","data":${deep(levels)}}`))).toMatchObject({ status: 400, body: { code: 'invalid_argument' } })
    const { body } = hub('issue_comment', issueComment('Nice.'))
    const padded = `${String(body).slice(0, -1)},"pad":${deep(levels)}}`
    const request = hub('issue_comment', 0)
    const { createHmac } = await import('node:crypto')
    const signature = `sha256=${createHmac('sha256', hubSecret).update(padded).digest('hex')}`
    expect(await post('github', { ...request, body: padded, headers: { ...(request.headers as object), 'x-hub-signature-256': signature } })).toMatchObject({ status: 400 })
    expect(await inbox()).toEqual([])
  })
})
