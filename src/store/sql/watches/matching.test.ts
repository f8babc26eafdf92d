import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { inbound, planned } from '../../conformance/watch-fixture.ts'
import type { NewInbound, WatchStore } from '../../contract/watches.ts'
import { InMemoryStore } from '../../sqlite/in-memory.ts'

interface Expected {
  categories: string[]
  channels: string[]
  contacts: string[]
}

interface Received extends Pick<NewInbound, 'kind' | 'channelId'> {
  contactId: string | undefined
  /** Undefined until it is annotated. */
  categories: string[] | undefined
}

let storage: InMemoryStore
let store: WatchStore
let round = 0

beforeAll(async () => {
  storage = new InMemoryStore()
  await storage.open()
  store = (await storage.getStore('watches')) as WatchStore
})

afterAll(async () => storage.close())

/** For each watch, whether each message is its candidate: of the same watch registered before the messages, and after them. */
async function matches(watches: readonly Expected[], messages: readonly Received[]): Promise<{ before: boolean[][]; after: boolean[][] }> {
  const resourceId = `resource-${++round}`
  const register = async (when: string) => {
    const ids = watches.map((_, at) => `${when}-${round}-${at}`)
    for (const [at, criteria] of watches.entries()) {
      const more = { resourceId, threadId: `${when}-${round}-${at}`, mode: 'continuous', maxEvaluations: 1_000 } as const
      await store.registerWatch({ ...planned(ids[at] ?? '', more), criteria })
    }
    return ids
  }
  const early = await register('early')
  const seqs: number[] = []
  for (const [at, { kind, channelId, contactId, categories }] of messages.entries()) {
    const id = `${round}-${at}`
    const more = { kind, channelId, id, resourceId, ...(contactId === undefined ? {} : { contactId, contactSince: 0 }) }
    const [added] = await store.addInbounds([inbound(id, more)])
    const seq = added?.inbound.seq ?? 0
    seqs.push(seq)
    if (categories !== undefined) await store.annotateInbound({ seq, categories, now: planned('').now })
  }
  const late = await register('late')
  const found = async (watchId: string) => {
    const { candidates } = await store.listCandidates({ watchId, limit: 1_000 })
    return seqs.map((seq) => candidates.some((candidate) => candidate.seq === seq))
  }
  return { before: await Promise.all(early.map(found)), after: await Promise.all(late.map(found)) }
}

const any: Expected = { categories: [], channels: [], contacts: [] }
const sms: Received = { kind: 'sms', channelId: 'phone', contactId: undefined, categories: ['auth'] }

describe('matching', () => {
  it('case 33: [V2.15] a filter alone is no match of categories', async () => {
    const watch = { ...any, categories: ['verification_code'], channels: ['sms'] }
    const given = [['personal'], [], undefined, ['verification_code', 'auth']].map((categories) => ({ ...sms, categories }))
    const expected = [[false, false, false, true]]
    expect(await matches([watch], given)).toEqual({ before: expected, after: expected })
  })

  it('case 34: [V2.15] watches on channels and contacts need no annotation', async () => {
    const watches = [['sms'], ['sms/phone'], ['sms/other', 'email']].map((channels) => ({ ...any, channels }))
    const expected = [[true, true], [true, true], [false, false]]
    expect(await matches(watches, [{ ...sms, categories: undefined }, sms])).toEqual({ before: expected, after: expected })
    const ofContact = [[true, false, false]]
    const senders = ['c1', 'C1', undefined].map((contactId) => ({ ...sms, contactId, categories: undefined }))
    expect(await matches([{ ...any, contacts: ['c1'] }], senders)).toEqual({ before: ofContact, after: ofContact })
  })

  it('[V2.15] is the conjunction of the filters and an overlap of categories', async () => {
    const label = fc.subarray(['auth', 'reply', 'urgent', 'link'])
    const watch = fc.record({ categories: label, channels: fc.subarray(['sms', 'email', 'slack/main']), contacts: fc.subarray(['c1', 'c2']) })
      .filter(({ categories, channels, contacts }) => categories.length + channels.length + contacts.length > 0)
    const message = fc.record({
      kind: fc.constantFrom('sms', 'email', 'slack'), channelId: fc.constant('main'), contactId: fc.option(fc.constantFrom('c1', 'c3'), { nil: undefined }),
      categories: fc.option(label, { nil: undefined }),
    })
    const lists = (size: number) => ({ minLength: size, maxLength: size })
    await fc.assert(
      fc.asyncProperty(fc.array(watch, lists(8)), fc.array(message, lists(8)), async (watches, messages) => {
        const expected = watches.map(({ categories, channels, contacts }) => messages.map((one) => {
          const ofChannel = channels.length === 0 || channels.some((name) => name === one.kind || name === `${one.kind}/main`)
          const ofContact = contacts.length === 0 || contacts.some((name) => name === one.contactId)
          return ofChannel && ofContact && (categories.length === 0 || categories.some((name) => one.categories?.includes(name)))
        }))
        expect(await matches(watches, messages)).toEqual({ before: expected, after: expected })
      }),
      { numRuns: 20, seed: 15 },
    )
  })
})
