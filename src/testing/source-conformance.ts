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

/** How the suite gets at the source it tries. */
export interface SourceHarness {
  /** A storage of its own, empty. Whoever gives it out removes it after the case. */
  storage(): Storage | Promise<Storage>
  /** The source as a process makes it when it starts: each call another object, with the same id and settings. */
  source(): SignalProvider
  /** Two things that a thread may subscribe to, as the source names them. */
  things: readonly [string, string]
  /**
   * For sources that are told by webhook: the request of an event about a thing, signed now. The same name is the same event, and asked for
   * again it is a retry.
   */
  request?(name: string, thing: string): WebhookRequest
  /** For sources that are asked: from now on `poll` finds this event. */
  happen?(name: string, thing: string): void | Promise<void>
}

/** One promise, tried. The ids in brackets are those of the protocol. */
export interface SourceCase {
  name: string
  run(harness: SourceHarness): Promise<void>
}

const resourceId = 'resource-1'
const agentId = 'listener'

/** A program with the source in it, and threads that hear. */
async function listening(harness: SourceHarness, storage?: Storage) {
  const source = harness.source()
  const agent = new Agent({ id: agentId, model: scriptedModel(['Noted.'], { loop: true }), notifications: { deliveryPolicy: { priorities: { low: 'persist', medium: 'persist', high: 'persist', urgent: 'persist' } } } })
  const place = storage ?? (await harness.storage())
  const heed = new Heed({ agents: { agent }, storage: place, sources: [source], logger: silentLogger })
  const notifications = await notificationStoreOf(place)
  await notifications?.open()
  return {
    source,
    storage: place,
    subscribe: (threadId: string, externalId: string) => source.subscribe({ threadId, resourceId, agentId, externalId }),
    inbox: async (threadId: string): Promise<NotificationRecord[]> => (await notifications?.listNotifications({ threadId, resourceId, limit: 100 }))?.notifications ?? [],
    close: () => heed.close(),
  }
}

type Listening = Awaited<ReturnType<typeof listening>>

async function within(harness: SourceHarness, work: (program: Listening) => Promise<void>): Promise<void> {
  const program = await listening(harness)
  try {
    await work(program)
  } finally {
    await program.close()
  }
}

/** How a webhook is answered: a status, also for what is thrown. */
async function answered(source: SignalProvider, request: WebhookRequest): Promise<number> {
  assert.ok(source.handleWebhook, 'the harness has requests, but the source has no handleWebhook')
  try {
    return (await source.handleWebhook(request)).status
  } catch (error) {
    assert.ok(isHeedError(error), `what is refused is refused with a HeedError, not with ${String(error)}`)
    return error.code === 'unauthorized' ? 401 : error.code === 'invalid_argument' ? 400 : 500
  }
}

const isTaken = (status: number) => status >= 200 && status < 300

function altered({ headers, body }: WebhookRequest, change: (headers: Headers) => void, words = body): WebhookRequest {
  const copy = new Headers(headers)
  change(copy)
  return { headers: copy, body: words }
}

/** Cases for sources that are told by webhook. */
const told: Array<{ name: string; run(harness: SourceHarness & { request: NonNullable<SourceHarness['request']> }): Promise<void> }> = [
  {
    name: '[E1.3] tells every thread that subscribed to a thing, and no other',
    run: (harness) => within(harness, async ({ source, subscribe, inbox }) => {
      const [thing, other] = harness.things
      await subscribe('t1', thing)
      await subscribe('t2', thing)
      await subscribe('t3', other)
      assert.ok(isTaken(await answered(source, harness.request('event-1', thing))))
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
    name: '[E1.1] refuses a request whose signature, or any byte of its body, is another, and stores nothing of it',
    run: (harness) => within(harness, async ({ source, subscribe, inbox }) => {
      const [thing] = harness.things
      await subscribe('t1', thing)
      const good = harness.request('event-1', thing)
      const signed = [...good.headers.keys()].filter((name) => /sign|auth|digest|hmac/i.test(name))
      assert.ok(signed.length > 0, 'no header of the request looks like a signature')
      const bad = [
        altered(good, () => {}, `${good.body} `),
        altered(good, () => {}, good.body.replace(/[a-z]/, (letter) => (letter === 'a' ? 'b' : 'a'))),
        altered(good, (headers) => signed.forEach((name) => headers.delete(name))),
        altered(good, (headers) => signed.forEach((name) => headers.set(name, (headers.get(name) ?? '').replace(/.(?=.{0,3}$)/g, (letter) => (letter === 'A' ? 'B' : 'A'))))),
        altered(good, (headers) => signed.forEach((name) => headers.set(name, ''))),
      ]
      for (const request of bad) assert.equal(await answered(source, request), 401)
      assert.deepEqual(await inbox('t1'), [])
    }),
  },
  {
    name: '[E1.2] takes the same event as one, sent again to the letter, as a retry, at once, and to another process',
    run: (harness) => within(harness, async ({ source, subscribe, inbox, storage }) => {
      const [thing] = harness.things
      await subscribe('t1', thing)
      const first = harness.request('event-1', thing)
      assert.ok(isTaken(await answered(source, first)))
      await answered(source, first)
      await Promise.all([1, 2, 3].map(() => answered(source, harness.request('event-1', thing))))
      const second = await listening(harness, storage)
      await answered(second.source, harness.request('event-1', thing))
      assert.equal((await inbox('t1')).length, 1)
      assert.ok(isTaken(await answered(second.source, harness.request('event-2', thing))))
      assert.equal((await inbox('t1')).length, 2)
      await second.close()
    }),
  },
  {
    name: '[E1.5] does not answer 2xx for what could not be stored, and takes the retry',
    run: (harness) => within(harness, async ({ source, subscribe, inbox }) => {
      const [thing] = harness.things
      await subscribe('t1', thing)
      const deliver = source.deliver
      source.deliver = () => Promise.reject(new Error('the disk is full'))
      const lose = (request: WebhookRequest) => Promise.resolve(source.handleWebhook?.(request)).then((answer) => answer?.status ?? 500, () => 500)
      const request = harness.request('event-1', thing)
      for (const lost of [await lose(request), await lose(harness.request('event-2', thing))]) assert.ok(!isTaken(lost), `answered ${lost} although nothing was stored`)
      source.deliver = deliver
      assert.equal((await inbox('t1')).length, 0)
      assert.ok(isTaken(await answered(source, request)), 'nothing was stored: the very same request is to be taken')
      assert.equal((await inbox('t1')).length, 1)
      // A retry is signed anew, where the time is signed.
      assert.ok(isTaken(await answered(source, harness.request('event-2', thing))))
      assert.equal((await inbox('t1')).length, 2)
    }),
  },
]

/** Cases for sources that are asked. */
const asked: Array<{ name: string; run(harness: SourceHarness & { happen: NonNullable<SourceHarness['happen']> }): Promise<void> }> = [
  {
    name: '[E1.3] finds what happened to the things that were subscribed to, each time under the same id',
    run: (harness) => within(harness, async ({ source, subscribe, inbox }) => {
      const [thing, other] = harness.things
      assert.ok(source.poll && source.pollInterval !== undefined && source.pollInterval > 0, 'a source that is asked has poll and pollInterval')
      await subscribe('t1', thing)
      await subscribe('t3', other)
      await harness.happen('event-1', thing)
      const { subscriptions } = await source.listSubscriptions()
      const found: SourceEvent[] = []
      // A process that dies after it asked asks again.
      for (let round = 0; round < 2; round++) {
        const answer = await source.poll(subscriptions, { signal: new AbortController().signal })
        found.push(...('events' in answer ? answer.events : answer))
      }
      const about = found.filter(({ externalIds }) => externalIds.includes(thing))
      assert.ok(about.length > 0, 'poll did not find what happened')
      for (const event of found) await source.deliver(event)
      assert.equal((await inbox('t1')).length, new Set(about.map(({ id }) => id)).size)
      assert.equal((await inbox('t1')).length, 1)
      assert.deepEqual(await inbox('t3'), [])
    }),
  },
]

/** Cases for every source. */
const every: SourceCase[] = [
  {
    name: '[E1.4] has tools that subscribe and unsubscribe their own thread and no other',
    run: (harness) => within(harness, async ({ source, subscribe, inbox }) => {
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
    name: '[E1.3] keeps its subscriptions when its process goes',
    async run(harness) {
      const [thing] = harness.things
      const storage = await harness.storage()
      const first = await listening(harness, storage)
      await first.subscribe('t1', thing)
      // Both on one storage: a store in memory lives as long as its object.
      const second = await listening(harness, storage)
      assert.deepEqual((await second.source.listSubscriptions()).subscriptions.map(({ threadId, externalId }) => [threadId, externalId]), [['t1', thing]])
      await second.source.deliver({ id: 'event-1', externalIds: [thing], notification: { kind: 'test', summary: 'Something happened.' } })
      assert.equal((await second.inbox('t1')).length, 1)
      await first.close()
      await second.close()
    },
  },
]

/**
 * What every `SignalProvider` keeps, as cases for any test runner: those for webhooks where the harness has `request`, those for sources that
 * are asked where it has `happen`.
 *
 *     for (const { name, run } of sourceConformance(harness)) it(name, () => run(harness))
 */
export function sourceConformance(harness: SourceHarness): SourceCase[] {
  const { request, happen } = harness
  return [
    ...every,
    ...(request ? told.map(({ name, run }) => ({ name, run: (given: SourceHarness) => run({ ...given, request: given.request ?? request }) })) : []),
    ...(happen ? asked.map(({ name, run }) => ({ name, run: (given: SourceHarness) => run({ ...given, happen: given.happen ?? happen }) })) : []),
  ]
}
