import { afterEach, describe, expect, it } from 'vitest'
import { HeedError } from '../../base/errors.ts'
import type { Message } from '../../message/message.ts'
import { virtualClock, type VirtualClock } from '../../testing/virtual-clock.ts'
import type { RecallIndex } from '../../store/contract/recall.ts'
import { LibSQLStore } from '../../store/sqlite/store.ts'
import { EmbedderBackoff } from './embedder-backoff.ts'

const open: LibSQLStore[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((store) => store.close()))
})

/** An engine in this thread: when the clock has moved, all that it set going has been done. */
async function waiting(
  count: number,
  text = (at: number) => `Our hound number${at} barked.`,
): Promise<{ clock: VirtualClock; store: LibSQLStore; recall: RecallIndex }> {
  const clock = virtualClock()
  const store = new LibSQLStore({ url: ':memory:', clock })
  open.push(store)
  const recall = await store.getStore('recall')
  if (!recall) throw new Error('no recall')
  await store.createThread({ id: 't', resourceId: 'r', now: 1 })
  const messages = Array.from({ length: count }, (_, at): Message => ({
    id: `m${at}`,
    role: 'user',
    createdAt: new Date(at),
    content: { format: 2, parts: [{ type: 'text', text: text(at) }] },
  }))
  await store.saveMessages([{ scope: { threadId: 't', resourceId: 'r' }, messages }])
  await expect.poll(() => recall.status()).toEqual({ pending: 0, embedders: [] })
  return { clock, store, recall }
}

type Answer = (texts: readonly string[]) => Promise<number[][]>
const right: Answer = async (texts) => texts.map(({ length }) => [1, length])
const failing = (failure: object): Answer => async () => {
  throw failure instanceof Error ? failure : Object.assign(new Error('not now'), failure)
}

/** Notes lots of passages that it is asked for, not questions. */
function embedderOf(answer: Answer) {
  const embedder = {
    id: 'test/paused', maxBatch: 64, answer, lots: [] as number[],
    embed(texts: readonly string[]) {
      if (texts.length > 1 || texts[0] !== 'hound') embedder.lots.push(texts.length)
      return embedder.answer(texts)
    },
  }
  return embedder
}

const stateOf = async (recall: RecallIndex) => (await recall.status()).embedders[0]
const second = 1_000
const minute = 60 * second

describe('an embedder that fails', () => {
  it.each([
    ['is rate limited', { statusCode: 429 }],
    ['has no key', { statusCode: 401 }],
    ['is down', { statusCode: 503 }],
    ['can not be reached', { isRetryable: true }],
    ['is not installed', new HeedError('provider_not_installed', 'not now')],
    ['throws whatever it likes', {}],
  ])('[K1.13] %s: it is retried after longer delays, up to a minute, and continues within it', async (_, failure) => {
    const { clock, recall } = await waiting(1_000)
    const embedder = embedderOf(failing(failure))
    recall.embedWith(embedder)
    for (let passed = 0; passed < 20; passed += 1) {
      await clock.advance(second)
      await recall.search({ resourceId: 'r', text: 'hound', limit: 1 })
    }
    // By 0.25 to 0.5 s, 0.5 to 1 s and so on; before that at most six that look for a text.
    expect(embedder.lots.length).toBeLessThanOrEqual(13)
    expect(embedder.lots.length).toBeGreaterThanOrEqual(5)
    await clock.advance(60 * minute)
    const asked = embedder.lots.length
    expect(asked).toBeGreaterThanOrEqual(60)
    expect(asked).toBeLessThanOrEqual(150)
    if (failure instanceof Error || Object.keys(failure).length > 0) expect(new Set(embedder.lots)).toEqual(new Set([embedder.lots[0]]))
    expect(await stateOf(recall)).toMatchObject({ complete: false, pending: 1_000, error: 'not now' })
    embedder.answer = right
    await clock.advance(minute)
    const { error, ...state } = { error: undefined, ...(await stateOf(recall)) }
    expect({ error, ...state }).toMatchObject({ error: undefined, complete: true, pending: 0, embedded: 1_000, failing: 0 })
    expect(embedder.lots.length - asked).toBeLessThanOrEqual(45)
  })

  it.each([{ 'retry-after': '40' }, { 'retry-after-ms': '40000' }])(
    '[K1.13] is not called before its Retry-After: %j',
    async (responseHeaders) => {
      const { clock, recall } = await waiting(100)
      const embedder = embedderOf(failing({ statusCode: 429, responseHeaders }))
      recall.embedWith(embedder)
      await clock.advance(39 * second)
      await recall.search({ resourceId: 'r', text: 'hound', limit: 1 })
      expect(embedder.lots).toHaveLength(1)
      const reindexed = recall.reindex()
      await clock.advance(0)
      expect(embedder.lots).toHaveLength(1)
      embedder.answer = right
      await clock.advance(2 * second)
      await reindexed
      expect(await stateOf(recall)).toMatchObject({ complete: true, pending: 0 })
    },
  )

  it('[K1.13] whose Retry-After is an hour rejects a reindex() at once, until that is over', async () => {
    const { clock, recall } = await waiting(100)
    const embedder = embedderOf(failing({ statusCode: 429, responseHeaders: { 'retry-after': '3600' } }))
    recall.embedWith(embedder)
    await clock.advance(minute)
    await expect(recall.reindex()).rejects.toMatchObject({ code: 'provider_error', message: expect.stringContaining('not now') })
    expect(embedder.lots).toHaveLength(1)
    embedder.answer = right
    await clock.advance(60 * minute)
    await recall.reindex()
    expect(await stateOf(recall)).toMatchObject({ complete: true, pending: 0 })
  })

  it.each([
    ['answers rubbish', async (texts: readonly string[]) => texts.map(() => [Number.NaN])],
    ['is refused by its service', failing({ statusCode: 400 })],
    ['throws', failing({})],
  ])('[K1.13] for one text alone, for which it %s, makes the vectors of all others, and retries that one', async (_, refuse) => {
    const { clock, recall } = await waiting(300, (at) => (at === 17 ? 'poison' : `Our hound number${at} barked.`))
    const embedder = embedderOf((texts) => (texts.some((text) => text.includes('poison')) ? refuse(texts) : right(texts)))
    recall.embedWith(embedder)
    await clock.advance(2 * minute)
    expect(await stateOf(recall)).toMatchObject({ complete: false, pending: 1, failing: 1, embedded: 299 })
    expect(embedder.lots.length).toBeLessThanOrEqual(60)
    embedder.answer = right
    await clock.advance(minute)
    expect(await stateOf(recall)).toMatchObject({ complete: true, pending: 0, failing: 0 })
  })

  it.each([
    ['never answers', () => new Promise<never>(() => {}), 'unreachable', 10 * minute],
    ['is down', failing({ statusCode: 503 }), 'provider_error', 10 * second],
    ['answers rubbish', async () => [], 'provider_error', 20 * second],
    ['asks for an hour', failing({ statusCode: 429, responseHeaders: { 'retry-after': '3600' } }), 'provider_error', 0],
  ] as const)(
    '[K1.13] and %s: reindex() ends with an error, what is indexed is found, and vectors follow',
    async (_, answer, code, within) => {
      const { clock, recall } = await waiting(200)
      const embedder = embedderOf(right)
      recall.embedWith(embedder)
      await clock.advance(0)
      expect(await stateOf(recall)).toMatchObject({ complete: true })
      embedder.answer = answer
      const before = embedder.lots.length
      let ended: unknown
      const reindexed = recall.reindex().catch((error: unknown) => {
        ended = error
      })
      await expect.poll(() => embedder.lots.length).toBeGreaterThan(before)
      await clock.advance(within)
      await reindexed
      expect(ended).toMatchObject({ code, message: expect.stringContaining("Embedder 'test/paused' has not made all vectors") })
      expect(await stateOf(recall)).toMatchObject({ complete: false, pending: 200, error: expect.anything() })
      embedder.answer = right
      expect(await recall.search({ resourceId: 'r', text: 'number17', limit: 1 })).toMatchObject([
        { messageId: 'm17', reasons: { meaning: expect.any(Number) } },
      ])
      await clock.advance(70 * minute)
      expect(await stateOf(recall)).toMatchObject({ complete: true, pending: 0 })
    },
  )

  it('[K1.13] for a moment does not reject a reindex()', async () => {
    const { clock, recall } = await waiting(200)
    let calls = 0
    recall.embedWith(embedderOf((texts) => (++calls % 3 === 0 ? failing({ statusCode: 503 })(texts) : right(texts))))
    let ended = false
    const reindexed = recall.reindex().finally(() => {
      ended = true
    })
    for (let passed = 0; passed < 100 && !ended; passed += 1) await clock.advance(second)
    await reindexed
    expect(await stateOf(recall)).toMatchObject({ complete: true, pending: 0, embedded: 200 })
  })

  it('[K1.13] does not delay the end of a reindex() whose store is closed', async () => {
    const { store, recall } = await waiting(10)
    recall.embedWith(embedderOf(() => new Promise<never>(() => {})))
    const reindexed = recall.reindex()
    const refused = expect(reindexed).rejects.toMatchObject({ code: 'closed' })
    await expect.poll(async () => (await recall.status()).embedders.length).toBe(1)
    await store.close()
    await refused
  })

  it('[K1.13] with an error that cannot be read is retried like any other', () => {
    const clock = virtualClock()
    const pause = new EmbedderBackoff(clock)
    const unreadable = Object.defineProperty(new Error('not now'), 'statusCode', { get: () => { throw new Error('no') } })
    for (let times = 0; times < 20; times += 1) expect(pause.recordFailure(unreadable, 1)).toBe(true)
    expect(pause.until - clock.now()).toBeGreaterThanOrEqual(30_000)
    expect(pause.until - clock.now()).toBeLessThanOrEqual(60_000)
    pause.reset()
    expect(pause.isOver).toBe(true)
  })
})
