import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createHandler } from '../../src/http/server.ts'
import { Agent, Heed, Memory, silentLogger, type HeedConfig } from '../../src/index.ts'
import { SignalProvider } from '../../src/sources/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, sharedPlaceKinds } from '../thread/places.ts'
import { idle, soon } from '../thread/said.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }
const otherThread = { resourceId: 'user-1', threadId: 'thread-2' }

function makeAgents(hang = false) {
  const model = scriptedModel(() => ({ text: 'Well.', hang }))
  const late = () => ({ action: 'defer' as const, deliverAt: new Date(0) })
  const agents = {
    used: new Agent({ id: 'used', model: scriptedModel(() => 'Fine.'), memory: new Memory() }),
    other: new Agent({ id: 'other', model, notifications: { deliveryPolicy: { decide: late } } }),
  }
  return { agents, ...agents, model }
}

type Agents = ReturnType<typeof makeAgents>['agents']

/** What a program may use first. */
const uses: Array<[string, (agents: Agents, heed: Heed<Agents>) => unknown]> = [
  ['a subscription', ({ used }) => used.subscribeToThread(otherThread)],
  ['a send', ({ used }) => used.sendMessage('Hello.', otherThread).stored],
  ['a call on a thread', ({ used }) => used.generate('Hello.', { memory: { thread: 'thread-2', resource: 'user-1' } })],
  ['a read of the memory', async ({ used }) => (await used.getMemory()).listThreads({})],
  ['a list of schedules', ({ used }) => used.schedules.list()],
  ['a subscription to an inbox', ({ used }) => used.subscribeToInbox({ resourceId: 'user-1' })],
  ['a call without a thread', ({ used }) => used.generate('Hello.')],
  ['a stream without a thread', ({ used }) => used.stream('Hello.')],
  ['an explained prompt', ({ used }) => used.explainPrompt('Hello.')],
  ['checked input', ({ used }) => used.checkInput(['Hello.'])],
  ['a handler without a request', (_, heed) => createHandler(heed)],
]

describe.each(sharedPlaceKinds())('the first use of a Heed, $name', ({ make }) => {
  it.each(uses)('[R12.1] continues the run of another agent: %s', async (_, use) => {
    const place = make()
    const before = makeAgents(true)
    const first = openHeed(before.agents, place.store())
    before.other.sendMessage('Go.', thread)
    await soon(() => before.model.callCount).toBe(1)
    await first.close()

    const after = makeAgents()
    await use(after.agents, openHeed(after.agents, place.store()))
    await soon(() => after.model.callCount).toBe(1)
    await idle(after.other, thread)
  })

  it.each(uses)('[R12.1] sends the due notification of another agent: %s', async (_, use) => {
    const place = make()
    const before = makeAgents()
    const first = openHeed(before.agents, place.store(), { notifications: { dispatch: { enabled: false } } })
    await before.other.sendNotificationSignal({ source: 'ci', kind: 'status', summary: 'It failed.' }, thread)
    await first.close()

    const after = makeAgents()
    await use(after.agents, openHeed(after.agents, place.store()))
    await soon(() => after.model.callCount).toBe(1)
  })

  it('[R12.1] registers an agent that is created later, with a storage of its own', async () => {
    const [place, own] = [make(), make()]
    const before = makeAgents(true)
    const memory = () => new Memory({ storage: own.store() })
    const first = openHeed({}, place.store())
    const model = scriptedModel([{ text: 'Well.', hang: true }])
    new Agent({ id: 'late', model, memory: memory(), heed: first }).sendMessage('Go.', thread)
    await soon(() => model.callCount).toBe(1)
    await first.close()

    const heed = openHeed(before.agents, place.store())
    await heed.getAgent('used').subscribeToThread(otherThread)
    const again = scriptedModel(['Well.'])
    const late = new Agent({ id: 'late', model: again, memory: memory(), heed })
    await soon(() => again.callCount).toBe(1)
    await idle(late, thread)
  })

  it('[R12.1] begins the polls of its sources', async () => {
    const polled = Promise.withResolvers<void>()
    class Feed extends SignalProvider {
      override readonly id = 'feed'
      override readonly pollInterval = 20
      override async poll() {
        polled.resolve()
        return []
      }
    }
    const feed = new Feed()
    const heed = new Heed({ agents: makeAgents().agents, storage: make().store(), sources: [feed], logger: silentLogger })
    onTestFinished(() => heed.close())
    await feed.subscribe({ ...thread, agentId: 'used', externalId: 'news' })
    await polled.promise
  })
})

it('[R12.1] a call without a thread opens no storage where an agent is in the default one', async () => {
  const { agents, used } = makeAgents()
  const heed = new Heed({ agents, logger: silentLogger })
  onTestFinished(() => heed.close())
  await used.generate('Hello.')
  await used.explainPrompt('Hello.')
  expect([used.threads().isOpen, agents.other.threads().hasAgent('other')]).toEqual([false, false])
})

describe('a server', () => {
  it('[R12.2] is ready when the storages of all agents are open, and not before', async () => {
    const blocked = join(tmpdir(), `heed-not-a-folder-${process.pid}`)
    writeFileSync(blocked, '')
    const logged: string[] = []
    const say = (message: string) => void logged.push(message)
    const logger: NonNullable<HeedConfig['logger']> = { debug: () => {}, info: () => {}, warn: say, error: say }
    const place = sharedPlaceKinds()[0].make()
    const reader = new Agent({
      id: 'reader', model: scriptedModel(['Read.']), memory: new Memory({ storage: new LibSQLStore({ url: `file:${blocked}/a.db` }) }),
    })
    const { agents } = makeAgents()
    const heed = openHeed({ ...agents, reader }, place.store(), { logger })
    const handler = createHandler(heed as unknown as Heed)
    const ready = async () => (await handler(new Request('http://localhost/api/ready'))).status
    expect(await ready()).toBe(503)
    // A working storage is used while the other one fails: the failure is logged once.
    await agents.used.sendMessage('Hello.', thread).stored
    expect(await ready()).toBe(503)
    expect(logged.filter((line) => line.startsWith('a storage could not be opened'))).toHaveLength(1)
    handler.close()
  })

  it('[R12.2] is ready although no request has used an agent, and every agent is registered then', async () => {
    const { agents, used, other } = makeAgents()
    const heed = openHeed(agents, sharedPlaceKinds()[0].make().store())
    const handler = createHandler(heed as unknown as Heed)
    expect((await handler(new Request('http://localhost/api/ready'))).status).toBe(200)
    expect([used, other].map((agent) => agent.threads().hasAgent(agent.id))).toEqual([true, true])
    expect(used.threads().isOpen).toBe(true)
    handler.close()
  })
})
