import { describe, expect, it } from 'vitest'
import { Agent, Heed, InMemoryStore, silentLogger, type Bus, type Chunk, type ThreadStore } from '../../src/index.ts'
import { busConformance, scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { memoryPlace } from '../thread/places.ts'
import { isType, readUntil, soon, types } from '../thread/said.ts'
import { NetworkBus } from './network-bus.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }

function open(storage: ThreadStore, bus: Bus, answers = ['One.', 'Two.', 'Three.']) {
  const agent = new Agent({ id: 'guide', model: scriptedModel(answers, { loop: true }) })
  return { agent, heed: new Heed({ agents: { agent }, storage, bus, logger: silentLogger }) }
}

const cursors = (chunks: readonly Chunk[]) => chunks.map(({ type, cursor }) => `${type} ${cursor}`)

describe('a bus that delivers later', () => {
  it.each(busConformance)('$name', async ({ run }) => {
    const bus = new NetworkBus()
    await expect(run({ bus: async () => () => bus })).resolves.toBeUndefined()
  })

  it('[W2.2] shows each run whole to a subscription in another process that was made before it', async () => {
    const [place, bus] = [memoryPlace(new InMemoryStore()), new NetworkBus()]
    const [a, b] = [open(place.store(), bus), open(place.store(), bus)]
    try {
      for (let round = 0; round < 20; round++) {
        const [here, there] = round % 2 === 0 ? [a, b] : [b, a]
        const of = { ...thread, threadId: `thread-${round % 3}` }
        const [near, far] = [await here.agent.subscribeToThread(of), await there.agent.subscribeToThread(of)]
        here.agent.sendMessage('Go.', of)
        const seen = await Promise.all([near, far].map(({ stream }) => readUntil(stream, isType('finish'))))
        expect(seen.map(cursors)[1]).toEqual(cursors(seen[0] ?? []))
        expect(types(seen[1] ?? [])).not.toContain('data-thread-snapshot')
        for (const subscription of [near, far]) subscription.unsubscribe()
      }
    } finally {
      await Promise.all([a.heed.close(), b.heed.close()])
    }
  })

  it('[W2.2] shows signals that are stored on an idle thread before the run that follows them', async () => {
    const [place, bus] = [memoryPlace(new InMemoryStore()), new NetworkBus()]
    const [a, b] = [open(place.store(), bus), open(place.store(), bus)]
    try {
      const watcher = await b.agent.subscribeToThread(thread)
      const persist = { ...thread, ifIdle: { behavior: 'persist' as const } }
      const notes = ['first', 'second', 'third'].map((contents) => a.agent.sendSignal({ type: 'notification', contents }, persist))
      await Promise.all(notes.map(({ stored }) => stored))
      a.agent.sendMessage('Go.', thread)
      const seen = await readUntil(watcher.stream, isType('finish'))
      expect(types(seen).slice(0, 4)).toEqual(['data-signal', 'data-signal', 'data-signal', 'start'])
      expect(seen.slice(0, 3).map((chunk) => JSON.stringify(chunk).match(/first|second|third/)?.[0])).toEqual(['first', 'second', 'third'])
    } finally {
      await Promise.all([a.heed.close(), b.heed.close()])
    }
  })

  it('[B1.7] holds up neither runs nor subscriptions when it never answers', async () => {
    const never = new Promise<never>(() => {})
    const silent: Bus = {
      async connect() {
        return { hasPeers: true, ready: () => never, send() {}, flush: () => never, poll: () => never, close: () => Promise.resolve() }
      },
    }
    const clock = virtualClock()
    const warnings: unknown[] = []
    const agent = new Agent({ id: 'guide', model: scriptedModel(['One.']) })
    const logger = { ...silentLogger, warn: (_text: string, details?: { code?: unknown }) => void warnings.push(details?.code) }
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), bus: silent, logger, clock })
    try {
      let text: string | undefined
      void agent.subscribeToThread(thread)
        .then(() => agent.generate('Go.', { memory: { thread: thread.threadId, resource: thread.resourceId } }))
        .then((result) => (text = result.text))
      await soon(async () => {
        await clock.advance(100)
        return text
      }).toBe('One.')
      expect(warnings).toContain('bus_failed')
    } finally {
      await heed.close()
    }
  })
})
