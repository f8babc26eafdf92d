import { describe, expect, it, onTestFinished } from 'vitest'
import { Agent, Heed, Memory, silentLogger } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { embedded, opened, recallSuite, say, topicEmbedder } from '../recall/conformance/suite.ts'
import { inDatabase, newPlace } from './stores.ts'

recallSuite('on PostgreSQL', async () => ({ ...(await newPlace()), outlivesStores: true, many: 1_200 }))

it('[K2.1] an agent on PostgreSQL recalls what other threads said', async () => {
  const model = scriptedModel(() => 'Yes.')
  const agent = new Agent({ id: 'guide', model, memory: new Memory({ semanticRecall: true }) })
  const heed = new Heed({ agents: { agent }, storage: (await newPlace()).open(), logger: silentLogger })
  onTestFinished(() => heed.close())
  await agent.generate('The key is under the mat.', { memory: { thread: 't', resource: 'u' } })
  await agent.generate('Where is the key?', { memory: { thread: 'other', resource: 'u' } })
  expect(JSON.stringify(model.calls.at(-1)?.prompt)).toContain('under the mat')
  await (await agent.getMemory()).deleteThread('t')
  await agent.generate('Where is the key?', { memory: { thread: 'third', resource: 'u' } })
  expect(JSON.stringify(model.calls.at(-1)?.prompt)).not.toContain('under the mat')
})

describe('recall on PostgreSQL with several writers', () => {
  it('[K1.23] indexes a change whose transaction began before another and ended after it was indexed', async () => {
    const place = await newPlace()
    const { store, recall } = await opened(place)
    const found = async (text: string) => (await recall.search({ resourceId: 'r', text, limit: 1 })).map(({ messageId }) => messageId)
    const [late] = await say(store, 'a', 'r', 'The meeting is in Lisbon.')
    expect(await found('Lisbon')).toEqual([late])
    let next: string | undefined
    await inDatabase(async (query) => {
      await query('BEGIN')
      await query(`UPDATE "${place.schema}".heed_messages SET content = replace(content, 'Lisbon', 'Porto') WHERE message_id = '${String(late)}'`)
      ;[next] = await say(store, 'b', 'r', 'Bring the telescope.')
      expect(await found('telescope')).toEqual([next])
      await query('COMMIT')
    })
    expect(await found('Porto')).toEqual([late])
    expect(await found('Lisbon')).not.toContain(late)
  })

  it('[K1.23] indexes a message that a transaction stored before the first use of recall, and committed after it', async () => {
    const place = await newPlace()
    const { store, recall } = await opened(place)
    const [stored] = await say(store, 'a', 'r', 'The meeting is in Lisbon.')
    let searching: Promise<unknown> | undefined
    await inDatabase(async (query) => {
      await query('BEGIN')
      await query(`UPDATE "${place.schema}".heed_messages SET content = replace(content, 'Lisbon', 'Porto')`)
      searching = recall.search({ resourceId: 'r', text: 'Lisbon', limit: 1 })
      const waiting = `SELECT count(*)::int AS count FROM pg_locks WHERE NOT granted AND mode = 'ShareLock' AND relation = '"${place.schema}".heed_messages'::regclass`
      await expect.poll(async () => (await query(waiting)).rows[0]?.count).toBe(1)
      await query('COMMIT')
    })
    await searching
    expect(await recall.search({ resourceId: 'r', text: 'Porto', limit: 1 })).toMatchObject([{ messageId: stored }])
  })

  it('[K1.23] indexes and embeds what several processes store at once, each message once', async () => {
    const place = await newPlace()
    const all = await Promise.all([opened(place), opened(place), opened(place)])
    for (const { recall } of all) recall.embedWith(topicEmbedder())
    await Promise.all(all.map(({ store }, nth) => say(store, `t${nth}`, 'r', ...Array.from({ length: 40 }, (_, at) => `Remark ${nth}x${at} about bread.`))))
    for (const { recall } of all) await embedded(recall)
    for (const { recall } of all) {
      expect((await recall.status()).embedders).toMatchObject([{ embedded: 120, pending: 0 }])
      for (const text of ['0x39', '1x20', '2x0']) {
        expect(await recall.search({ resourceId: 'r', text: `remark ${text}`, limit: 1 })).toMatchObject([{ text: `Remark ${text} about bread.` }])
      }
    }
  })
})

describe('round trips to PostgreSQL', () => {
  it('[K1.24] are at most four for a search of words, and five with an embedder', async () => {
    const place = await newPlace()
    const store = place.open()
    const { recall } = await opened({ open: () => store })
    recall.embedWith(topicEmbedder())
    await say(store, 't', 'r', ...Array.from({ length: 300 }, (_, at) => `Remark number ${at} about ${['bread', 'a puppy', 'taxes'][at % 3]}.`))
    await embedded(recall)
    const trips: Array<[string, number]> = []
    store.onTransaction = (mode, count) => void trips.push([mode, count])
    const cost = async (query: object) => {
      await recall.search({ resourceId: 'r', text: 'which remark about bread was number 17', limit: 8, ...query })
      // What the embedder's queue asks after a search is no part of it.
      await recall.status()
      trips.splice(0)
      await recall.search({ resourceId: 'r', text: 'which remark about bread was number 17', limit: 8, ...query })
      return trips.filter(([mode]) => mode === 'read').reduce((sum, [, count]) => sum + count, 0)
    }
    expect(await cost({ embedder: false })).toBeLessThanOrEqual(4)
    expect(await cost({})).toBeLessThanOrEqual(5)
    expect(await cost({ distinct: true, shown: { threadId: 't', from: 290, asked: 299 } })).toBeLessThanOrEqual(5)
  })
})
