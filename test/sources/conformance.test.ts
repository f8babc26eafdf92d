import { describe, expect, it } from 'vitest'
import { HeedError, InMemoryStore } from '../../src/index.ts'
import { GitHubSignals, SignalProvider, WebhookSignals, type SourceEvent, type WebhookRequest } from '../../src/sources/index.ts'
import { sourceConformance, type SourceHarness } from '../../src/testing/index.ts'
import { storages } from './listening.ts'
import { hub, hubSecret, secret, standard } from './signing.ts'

const requestOf = ({ headers, body }: RequestInit): WebhookRequest => ({ headers: new Headers(headers), body: String(body) })

/** As a user writes one. */
class Builds extends SignalProvider {
  readonly id = 'builds'
  override readonly pollInterval = 60_000
  readonly #events: readonly SourceEvent[]

  constructor(events: readonly SourceEvent[]) {
    super()
    this.#events = events
  }

  override async poll(subscriptions: readonly { externalId: string }[]): Promise<SourceEvent[]> {
    const wanted = new Set(subscriptions.map(({ externalId }) => externalId))
    return this.#events.filter(({ externalIds }) => externalIds.some((id) => wanted.has(id)))
  }
}

const happened: SourceEvent[] = []
let signedAt = Date.now() - 200_000
const harnesses: Record<string, Omit<SourceHarness, 'storage'>> = {
  WebhookSignals: {
    source: () => new WebhookSignals({ id: 'shop', secret }),
    things: ['order-7', 'order-8'],
    request: (id, resource) => requestOf(standard(JSON.stringify({ type: 'order.paid', resource }), { id, at: (signedAt += 1_000) })),
  },
  GitHubSignals: {
    source: () => new GitHubSignals({ secret: hubSecret }),
    things: ['acme/shop#12', 'acme/shop#13'],
    request: (name, thing) => requestOf(hub('issue_comment', { action: 'created', repository: { full_name: 'acme/shop' }, sender: { login: 'ada' }, comment: { body: name }, issue: { number: Number(thing.split('#')[1]) } }, name)),
  },
  'a source that is asked': {
    source: () => new Builds(happened),
    things: ['main', 'next'],
    happen: (id, thing) => void happened.push({ id, externalIds: [thing], notification: { kind: 'build', summary: `${thing} failed` } }),
  },
}

describe.each(Object.entries(harnesses))('%s', (_, given) => {
  describe.each(storages)('%s', (_place, storage) => {
    const harness: SourceHarness = { ...given, storage }
    it.each(sourceConformance(harness).map((one) => [one.name, one] as const))('%s', (_name, one) => one.run(harness))
  })
})

describe('the suite finds sources that are wrong', () => {
  const wrong = (change: (source: WebhookSignals) => void): SourceHarness => ({
    ...(harnesses.WebhookSignals as Omit<SourceHarness, 'storage'>),
    storage: () => new InMemoryStore(),
    source() {
      const source = new WebhookSignals({ id: 'shop', secret })
      change(source)
      return source
    },
  })
  const failures = async (harness: SourceHarness) => {
    const results = await Promise.all(sourceConformance(harness).map(async ({ name, run }) => run(harness).then(() => [], () => [name])))
    return results.flat().map((name) => name.slice(0, 6))
  }

  it('[E1.7] such as one that believes everybody, answers before it stored, or makes a new event of each retry', async () => {
    expect(await failures(wrong(() => {}))).toEqual([])
    const { handleWebhook } = WebhookSignals.prototype
    const trusting = wrong((source) => {
      source.handleWebhook = ({ body }) => source.deliver({ id: body, externalIds: [String((JSON.parse(body) as { resource: string }).resource)], notification: { kind: 'x', summary: 'x' } }).then(() => ({ status: 200 }))
    })
    expect(await failures(trusting)).toContain('[E1.1]')
    const hasty = wrong((source) => {
      source.handleWebhook = async (request) => handleWebhook.call(source, request).catch((error: unknown) => {
        if (error instanceof HeedError) throw error
        return { status: 202 }
      })
    })
    expect(await failures(hasty)).toEqual(['[E1.5]'])
    let count = 0
    const forgetful = wrong((source) => {
      const { deliver } = source
      source.deliver = (event) => deliver.call(source, { ...event, id: String(count++) })
    })
    expect(await failures(forgetful)).toContain('[E1.2]')
  })
})
