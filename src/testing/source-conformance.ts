import { checkNames } from '../base/arguments.ts'
import assert from 'node:assert/strict'
import { Agent } from '../agent/agent.ts'
import { isHeedError } from '../base/errors.ts'
import { Heed } from '../heed/heed.ts'
import { silentLogger } from '../base/logger.ts'
import type { SourceEvent, WebhookRequest } from '../sources/event.ts'
import type { SignalProvider } from '../sources/source.ts'
import type { NotificationRecord } from '../store/contract/notifications.ts'
import { notificationStoreOf, type Storage } from '../store/contract/storage.ts'
import { scriptedModel } from './scripted-model.ts'

/** How the suite creates the source under test. */
export interface SourceHarness {
  /** An empty storage for one case. The harness removes it after the case. */
  storage(): Storage | Promise<Storage>
  /** The source as a process creates it when it starts: each call returns a new object with the same id and settings. */
  source(): SignalProvider
  /** Two things that a thread may subscribe to, as the source names them. */
  things: readonly [string, string]
  /**
   * For sources with webhooks: the request for an event about a thing, signed now. The same name is the same event: a second request is
   * a retry.
   */
  request?(name: string, thing: string): WebhookRequest
  /** For sources that are polled: from now on `poll` returns this event. */
  happen?(name: string, thing: string): void | Promise<void>
}

/** One test case. The ids in brackets are those of PROTOCOL.md. */
export interface SourceCase {
  name: string
  run(harness: SourceHarness): Promise<void>
}

const resourceId = 'resource-1'
const agentId = 'listener'

/** A Heed with the source, and an agent that stores every notification. */
async function startProgram(harness: SourceHarness, storage?: Storage) {
  const source = harness.source()
  const deliveryPolicy = { priorities: { low: 'persist', medium: 'persist', high: 'persist', urgent: 'persist' } } as const
  const agent = new Agent({ id: agentId, model: scriptedModel(['Noted.'], { loop: true }), notifications: { deliveryPolicy } })
  const programStorage = storage ?? (await harness.storage())
  const heed = new Heed({ agents: { agent }, storage: programStorage, sources: [source], logger: silentLogger })
  const notifications = await notificationStoreOf(programStorage)
  await notifications?.open()
  return {
    source,
    storage: programStorage,
    subscribe: (threadId: string, externalId: string) => source.subscribe({ threadId, resourceId, agentId, externalId }),
    inbox: async (threadId: string): Promise<NotificationRecord[]> => {
      return (await notifications?.listNotifications({ threadId, resourceId, limit: 100 }))?.notifications ?? []
    },
    close: () => heed.close(),
  }
}

type Program = Awaited<ReturnType<typeof startProgram>>

async function withProgram(harness: SourceHarness, work: (program: Program) => Promise<void>): Promise<void> {
  const program = await startProgram(harness)
  try {
    await work(program)
  } finally {
    await program.close()
  }
}

/** The status of the response to a webhook, also if the source throws. */
async function statusOf(source: SignalProvider, request: WebhookRequest): Promise<number> {
  assert.ok(source.handleWebhook, 'the harness has requests, but the source has no handleWebhook')
  try {
    return (await source.handleWebhook(request)).status
  } catch (error) {
    assert.ok(isHeedError(error), `a request is rejected with a HeedError, not with ${String(error)}`)
    return error.code === 'unauthorized' ? 401 : error.code === 'invalid_argument' ? 400 : 500
  }
}

const isAccepted = (status: number) => status >= 200 && status < 300

function altered({ headers, body }: WebhookRequest, change: (headers: Headers) => void, newBody = body): WebhookRequest {
  const copy = new Headers(headers)
  change(copy)
  return { headers: copy, body: newBody }
}

type WebhookHarness = SourceHarness & { request: NonNullable<SourceHarness['request']> }

/** Changes the last characters. */
function withOtherEnd(text: string): string {
  return text.replace(/.(?=.{0,3}$)/g, (letter) => (letter === 'A' ? 'B' : 'A'))
}

/** Cases for sources with webhooks. */
const webhookCases: Array<{ name: string; run(harness: WebhookHarness): Promise<void> }> = [
  {
    name: '[E1.3] notifies every thread that subscribed to a thing, and no other',
    run: (harness) => withProgram(harness, async ({ source, subscribe, inbox }) => {
      const [thing, other] = harness.things
      await subscribe('t1', thing)
      await subscribe('t2', thing)
      await subscribe('t3', other)
      assert.ok(isAccepted(await statusOf(source, harness.request('event-1', thing))))
      for (const threadId of ['t1', 't2']) {
        const [record, ...more] = await inbox(threadId)
        assert.equal(more.length, 0)
        assert.equal(record?.source, source.id)
        assert.notEqual(record?.summary, '')
      }
      assert.deepEqual(await inbox('t3'), [])
    }),
  },
  {
    name: '[E1.1] rejects a request whose signature or body was changed, and stores nothing',
    run: (harness) => withProgram(harness, async ({ source, subscribe, inbox }) => {
      const [thing] = harness.things
      await subscribe('t1', thing)
      const good = harness.request('event-1', thing)
      const signed = [...good.headers.keys()].filter((name) => /sign|auth|digest|hmac/i.test(name))
      assert.ok(signed.length > 0, 'no header of the request looks like a signature')
      const bad = [
        altered(good, () => {}, `${good.body} `),
        altered(good, () => {}, good.body.replace(/[a-z]/, (letter) => (letter === 'a' ? 'b' : 'a'))),
        altered(good, (headers) => signed.forEach((name) => headers.delete(name))),
        altered(good, (headers) => signed.forEach((name) => headers.set(name, withOtherEnd(headers.get(name) ?? '')))),
        altered(good, (headers) => signed.forEach((name) => headers.set(name, ''))),
      ]
      for (const request of bad) assert.equal(await statusOf(source, request), 401)
      assert.deepEqual(await inbox('t1'), [])
    }),
  },
  {
    name: '[E1.2] stores an event once that is sent again: repeated, retried, concurrently, and to another process',
    run: (harness) => withProgram(harness, async ({ source, subscribe, inbox, storage }) => {
      const [thing] = harness.things
      await subscribe('t1', thing)
      const first = harness.request('event-1', thing)
      assert.ok(isAccepted(await statusOf(source, first)))
      await statusOf(source, first)
      await Promise.all([1, 2, 3].map(() => statusOf(source, harness.request('event-1', thing))))
      const second = await startProgram(harness, storage)
      await statusOf(second.source, harness.request('event-1', thing))
      assert.equal((await inbox('t1')).length, 1)
      assert.ok(isAccepted(await statusOf(second.source, harness.request('event-2', thing))))
      assert.equal((await inbox('t1')).length, 2)
      await second.close()
    }),
  },
  {
    name: '[E1.5] does not respond with 2xx for an event that could not be stored, and accepts the retry',
    run: (harness) => withProgram(harness, async ({ source, subscribe, inbox }) => {
      const [thing] = harness.things
      await subscribe('t1', thing)
      const deliver = source.deliver
      source.deliver = () => Promise.reject(new Error('the disk is full'))
      const lose = async (request: WebhookRequest) =>
        Promise.resolve(source.handleWebhook?.(request)).then((response) => response?.status ?? 500, () => 500)
      const request = harness.request('event-1', thing)
      for (const lost of [await lose(request), await lose(harness.request('event-2', thing))]) {
        assert.ok(!isAccepted(lost), `responded with ${lost} although nothing was stored`)
      }
      source.deliver = deliver
      assert.equal((await inbox('t1')).length, 0)
      assert.ok(isAccepted(await statusOf(source, request)), 'nothing was stored, so the same request must be accepted')
      assert.equal((await inbox('t1')).length, 1)
      // A retry has another signature if the signature covers the time.
      assert.ok(isAccepted(await statusOf(source, harness.request('event-2', thing))))
      assert.equal((await inbox('t1')).length, 2)
    }),
  },
]

type PollHarness = SourceHarness & { happen: NonNullable<SourceHarness['happen']> }

/** Cases for sources that are polled. */
const pollCases: Array<{ name: string; run(harness: PollHarness): Promise<void> }> = [
  {
    name: '[E1.3] polls the events of subscribed things, each time with the same id',
    run: (harness) => withProgram(harness, async ({ source, subscribe, inbox }) => {
      const [thing, other] = harness.things
      const { pollInterval = 0 } = source
      assert.ok(source.poll && pollInterval > 0, 'a source that is polled needs poll and pollInterval')
      await subscribe('t1', thing)
      await subscribe('t3', other)
      await harness.happen('event-1', thing)
      const { subscriptions } = await source.listSubscriptions()
      const found: SourceEvent[] = []
      // A process that dies after a poll polls again.
      for (let round = 0; round < 2; round++) {
        const answer = await source.poll(subscriptions, { signal: new AbortController().signal })
        found.push(...('events' in answer ? answer.events : answer))
      }
      const about = found.filter(({ externalIds }) => externalIds.includes(thing))
      assert.ok(about.length > 0, 'poll did not return the event')
      for (const event of found) await source.deliver(event)
      assert.equal((await inbox('t1')).length, new Set(about.map(({ id }) => id)).size)
      assert.equal((await inbox('t1')).length, 1)
      assert.deepEqual(await inbox('t3'), [])
    }),
  },
]

/** Cases for every source. */
const commonCases: SourceCase[] = [
  {
    name: '[E1.4] has tools that subscribe and unsubscribe their own thread and no other',
    run: (harness) => withProgram(harness, async ({ source, subscribe, inbox }) => {
      const [thing, other] = harness.things
      const tools = source.getTools()
      assert.deepEqual(Object.keys(tools).toSorted(), [`subscribe-${source.id}`, `unsubscribe-${source.id}`])
      await subscribe('t2', thing)
      await subscribe('t1', thing)
      await subscribe('t1', other)
      assert.equal(await source.unsubscribe({ threadId: 't1', resourceId: 'resource-2', externalId: thing }), 0)
      assert.equal(await source.unsubscribe({ threadId: 't1', resourceId, externalId: thing }), 1)
      await source.deliver({ id: 'event-1', externalIds: [thing, other], notification: { kind: 'test', summary: 'Something happened.' } })
      assert.equal((await inbox('t1')).length, 1)
      assert.equal((await inbox('t2')).length, 1)
    }),
  },
  {
    name: '[E1.3] keeps its subscriptions when its process ends',
    async run(harness) {
      const [thing] = harness.things
      const storage = await harness.storage()
      const first = await startProgram(harness, storage)
      await first.subscribe('t1', thing)
      // Both use one storage object: a store in memory exists as long as its object.
      const second = await startProgram(harness, storage)
      const { subscriptions } = await second.source.listSubscriptions()
      assert.deepEqual(subscriptions.map(({ threadId, externalId }) => [threadId, externalId]), [['t1', thing]])
      await second.source.deliver({ id: 'event-1', externalIds: [thing], notification: { kind: 'test', summary: 'Something happened.' } })
      assert.equal((await second.inbox('t1')).length, 1)
      await first.close()
      await second.close()
    },
  },
]

/**
 * What every `SignalProvider` promises, as cases for any test runner: those for webhooks if the harness has `request`, those for polled
 * sources if it has `happen`.
 *
 *     for (const { name, run } of sourceConformance(harness)) it(name, () => run(harness))
 */
export function sourceConformance(harness: SourceHarness): SourceCase[] {
  checkNames('sourceConformance()', harness, ['storage', 'source', 'things', 'request', 'happen'])
  const { request, happen } = harness
  const ofWebhooks = (request: WebhookHarness['request']): SourceCase[] =>
    webhookCases.map(({ name, run }) => ({ name, run: (own) => run({ ...own, request: own.request ?? request }) }))
  const ofPolls = (happen: PollHarness['happen']): SourceCase[] =>
    pollCases.map(({ name, run }) => ({ name, run: (own) => run({ ...own, happen: own.happen ?? happen }) }))
  return [...commonCases, ...(request ? ofWebhooks(request) : []), ...(happen ? ofPolls(happen) : [])]
}
