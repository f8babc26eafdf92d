import { describe, expect, it } from 'vitest'
import { Agent, createTool, Memory, type Chunk, type Heed, type ThreadSnapshot } from '../../src/index.ts'
import type { BusConnection } from '../../src/bus/contract.ts'
import type { ThreadStore } from '../../src/store/contract/threads.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel, virtualClock, type ScriptedModel, type ScriptedStep } from '../../src/testing/index.ts'
import { newFile } from '../new-file.ts'
import { mortal, openHeed, sharedPlaceKinds, type Place } from './places.ts'
import { collect, gate, idle, isType, readUntil, soon, types, userTexts } from './said.ts'
import { told } from './transcript.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }
const memory = { thread: thread.threadId, resource: thread.resourceId }

/** Says `hang …`: a tool that ignores its abort signal until `hold` opens. Else it answers with the words it was asked for. */
function stubborn() {
  const hold = gate()
  const aborted: unknown[] = []
  let started = 0
  const model = scriptedModel((call): ScriptedStep => {
    const last = userTexts(call).at(-1) ?? ''
    if (last.startsWith('hang') && call.prompt.at(-1)?.role !== 'tool') return { text: `Wait ${last}.`, toolCalls: [{ toolName: 'hang', input: {} }] }
    return { text: `Said ${last}.` }
  })
  const hang = createTool({
    id: 'hang',
    async execute(_, { abortSignal }) {
      started++
      abortSignal.addEventListener('abort', () => aborted.push((abortSignal.reason as Error).cause))
      await hold.promise
      return 'late'
    },
  })
  const agent: Agent = new Agent({ id: 'guide', model, tools: { hang }, memory: new Memory({ semanticRecall: false }) })
  /** Sends what makes it hang, and waits until its tool does. */
  const hung = async (contents = 'hang first') => {
    const before = started
    await agent.sendMessage(contents, thread).outcome
    await soon(() => started).toBe(before + 1)
  }
  return { agent, hung, hold, aborted }
}

const snapshots = (chunks: readonly Chunk[]): ThreadSnapshot[] =>
  chunks.flatMap((chunk) => (chunk.type === 'data-thread-snapshot' ? [(chunk as { data: ThreadSnapshot }).data] : []))

describe.each(sharedPlaceKinds())('a thread that is deleted while it runs, $name', ({ make }) => {
  it('[R11.2] ends its run, and a message to the same id is answered', async () => {
    const { agent, hung, hold, aborted } = stubborn()
    const heed = openHeed({ agent }, make().store())
    await hung()
    const store = await agent.getMemory()
    expect(await store.deleteThread(thread)).toBe(true)
    const receipt = agent.sendMessage('second', thread)
    await receipt.stored
    expect(await receipt.outcome).toMatchObject({ action: 'woke' })
    await idle(agent, thread)
    expect(aborted).toMatchObject([{ code: 'thread_deleted' }])
    hold.open()
    const { messages } = await store.recall({ ...thread, perPage: false })
    expect(JSON.stringify(messages)).toContain('Said second')
    expect(JSON.stringify(messages)).not.toMatch(/first|late|interrupted/)
    await heed.close()
  })

  it('[R11.2] a run of the new thread is aborted, and a close ends at once, while the former tool still hangs', async () => {
    const { agent, hung } = stubborn()
    const heed = openHeed({ agent }, make().store())
    await hung()
    await (await agent.getMemory()).deleteThread(thread)
    await hung('hang second')
    expect(await agent.abortRun(thread)).toMatchObject({ aborted: true })
    await idle(agent, thread)
    await hung('hang third')
    await heed.close()
  })

  it('[R11.3] resolves the outcomes of its pending signals and rejects its callers, also if the id is used again at once', async () => {
    const { agent, hung } = stubborn()
    openHeed({ agent }, make().store())
    await hung()
    const steer = agent.sendMessage('steer', thread)
    const turn = agent.queueMessage('turn', thread)
    const queued = agent.generate('queued', { memory })
    const refused = expect(queued).rejects.toMatchObject({ code: 'aborted' })
    await soon(async () => (await agent.listQueued(thread)).length).toBe(3)
    const store = await agent.getMemory()
    await store.deleteThread(thread)
    await store.createThread({ threadId: thread.threadId, resourceId: thread.resourceId })
    expect(await steer.outcome).toEqual({ action: 'discarded', reason: 'deleted' })
    expect(await turn.outcome).toMatchObject({ action: 'queued' })
    await refused
    const running = agent.generate('hang again', { memory })
    const ended = expect(running).rejects.toMatchObject({ code: 'aborted' })
    await soon(async () => (await agent.activeRun(thread))?.status).toBe('running')
    await store.deleteThread(thread)
    await ended
    expect(await agent.abortRun(thread)).toEqual({ aborted: false })
  })

  it('[W1.3] lets its subscribers start over with a snapshot, and gives no chunk of it to later ones', async () => {
    const { agent, hung } = stubborn()
    openHeed({ agent }, make().store())
    const watcher = await agent.subscribeToThread(thread)
    const seen = collect(watcher)
    await agent.sendMessage('zero', thread).outcome
    await idle(agent, thread)
    await hung()
    const cursors = seen.chunks.flatMap(({ cursor }) => cursor ?? [])
    const store = await agent.getMemory()
    await store.deleteThread(thread)
    await soon(() => snapshots(seen.chunks).length).toBe(1)
    expect(snapshots(seen.chunks)).toMatchObject([{ reason: 'replaced', messages: [], status: 'idle', runId: null }])
    const before = seen.chunks.length

    // Neither a fresh subscriber nor one with a cursor of the deleted thread reads a word of it.
    const fresh = collect(await agent.subscribeToThread(thread))
    const returning = await Promise.all([cursors[0], cursors[3], cursors.at(-1)].map(async (after) => collect(await agent.subscribeToThread({ ...thread, after: after ?? '' }))))
    await agent.sendMessage('second', thread).outcome
    await idle(agent, thread)
    const late = await Promise.all([cursors[0], cursors[3], cursors.at(-1)].map(async (after) => collect(await agent.subscribeToThread({ ...thread, after: after ?? '' }))))
    const last = agent.sendMessage({ contents: 'last', id: 'last' }, { ...thread, ifIdle: { behavior: 'persist' } })
    await last.outcome
    const all = [fresh, ...returning, ...late]
    await soon(() => all.every(({ chunks }) => told(chunks).at(-1) === 'signal last')).toBe(true)
    await soon(() => told(seen.chunks).at(-1)).toBe('signal last')
    expect(seen.chunks.slice(before).filter(isType('start'))).toHaveLength(1)
    expect(types(fresh.chunks)).not.toContain('data-thread-snapshot')
    expect(fresh.chunks).toEqual(seen.chunks.slice(before))
    for (const { chunks } of [...returning, ...late]) expect(snapshots(chunks)).toHaveLength(1)
    for (const { chunks } of all) expect(JSON.stringify(chunks)).not.toMatch(/zero|first/)
    for (const { chunks } of all) expect(JSON.stringify(chunks)).toContain(chunks === late.at(-1)?.chunks ? 'second' : 'Said')
  })

  it('[R11.1] does not let its tool that ends late touch the new run, whose epochs are higher', async () => {
    const { agent, hung, hold } = stubborn()
    openHeed({ agent }, make().store())
    await hung()
    const store = await agent.getMemory()
    const { epoch } = (await store.getThreadById(thread))!
    await store.deleteThread(thread)
    const seen = collect(await agent.subscribeToThread(thread))
    await agent.sendMessage('hang second', thread).outcome
    await soon(() => types(seen.chunks)).toContain('tool-call')
    expect((await store.getThreadById(thread))!.epoch).toBeGreaterThan(epoch + 1)
    hold.open()
    await idle(agent, thread)
    await soon(() => types(seen.chunks)).toContain('finish')
    expect(seen.chunks.filter(isType('tool-result'))).toHaveLength(1)
    expect(seen.chunks.filter(isType('tool-error', 'abort', 'start'))).toHaveLength(1)
  })

  it('[R11.2] by a program without agents ends its run when the id is used again', async () => {
    const { agent, hung, aborted } = stubborn()
    const place = make()
    openHeed({ agent }, place.store())
    await hung()
    const other = place.store()
    await other.deleteThread(thread)
    await other.close()
    await agent.sendMessage('second', thread).outcome
    await idle(agent, thread)
    expect(aborted).toMatchObject([{ code: 'thread_deleted' }])
  })
})

/** A process that receives no message of its peers, and whose runs begin when `begins` opens. */
function isolated(place: Place, begins: Promise<void>): ThreadStore {
  const connection: BusConnection = {
    hasPeers: true, send() {}, flush: () => Promise.resolve(), poll: () => begins, close: () => Promise.resolve(),
  }
  const hidden = new Map<PropertyKey, unknown>([['bus', () => ({ connect: () => Promise.resolve(connection) })], ['onThreadsEnded', undefined]])
  return new Proxy(place.store(), {
    get(target, key) {
      const value: unknown = hidden.has(key) ? hidden.get(key) : Reflect.get(target, key)
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value
    },
  })
}

describe.each(sharedPlaceKinds())('a process that receives no messages, $name', ({ make }) => {
  it('[R11.2] [W1.3] begins no run of a thread that a subscription found to be replaced, and publishes nothing of it', async () => {
    const { agent } = stubborn()
    const place = make()
    const begins = gate()
    openHeed({ agent }, isolated(place, begins.promise))
    const former = agent.sendMessage('former', thread)
    await former.stored
    const program = place.store()
    await program.deleteThread(thread)
    await program.createThread({ id: thread.threadId, resourceId: thread.resourceId, now: Date.now() })
    const seen = collect(await agent.subscribeToThread(thread))
    begins.open()
    expect(await former.outcome).toEqual({ action: 'discarded', reason: 'deleted' })
    await agent.sendMessage('later', thread).outcome
    await idle(agent, thread)
    await soon(() => JSON.stringify(seen.chunks)).toContain('Said later')
    expect(JSON.stringify(seen.chunks)).not.toContain('former')
    await program.close()
  })

  it('[W1.1] gives a subscriber a snapshot where another subscription finds a signal whose echo did not arrive', async () => {
    const { agent } = stubborn()
    const place = make()
    openHeed({ agent }, isolated(place, Promise.resolve()))
    const first = collect(await agent.subscribeToThread(thread))
    await agent.sendMessage('one', thread).outcome
    await idle(agent, thread)
    const other = stubborn()
    openHeed({ agent: other.agent }, place.store())
    await other.agent.sendMessage({ id: 'note', contents: 'a note' }, { ...thread, ifIdle: { behavior: 'persist' } }).outcome
    const second = await agent.subscribeToThread(thread)
    await agent.sendMessage('two', thread).outcome
    await idle(agent, thread)
    await soon(() => JSON.stringify(first.chunks)).toContain('Said two')
    expect(JSON.stringify(first.chunks)).toContain('a note')
    second.unsubscribe()
  })
})

describe.each(sharedPlaceKinds())('a thread that is deleted while a snapshot of it is read, $name', ({ make }) => {
  /** A store before whose first read of rows a program deletes the thread, without a message. */
  function deletedBeforeRows(place: Place, then: () => Promise<unknown>): ThreadStore {
    let left = 1
    return new Proxy(place.store(), {
      get(target, key) {
        const value: unknown = Reflect.get(target, key)
        if (typeof value !== 'function') return value
        return async (...args: unknown[]) => {
          if (key === 'listRows' && left-- > 0) {
            await place.store().deleteThread(thread)
            await then()
          }
          return Reflect.apply(value, target, args) as unknown
        }
      },
    })
  }

  it('[W1.3] gives a subscriber the snapshot of a thread that does not exist, and no error', async () => {
    const { agent } = stubborn()
    openHeed({ agent }, deletedBeforeRows(make(), async () => {}))
    await agent.sendMessage('zero', { ...thread, ifIdle: { behavior: 'persist' } }).outcome
    const { stream } = await agent.subscribeToThread({ ...thread, snapshot: true })
    expect(snapshots(await readUntil(stream, isType('data-thread-snapshot')))).toMatchObject([{ messages: [], status: 'idle' }])
  })

  it('[W1.3] [R11.1] gives a subscriber the snapshot of the thread that follows, with a cursor of that one', async () => {
    const { agent, hung } = stubborn()
    const other = stubborn()
    const place = make()
    const second = () => other.agent.sendMessage('second', { ...thread, ifIdle: { behavior: 'persist' } }).outcome
    openHeed({ agent }, deletedBeforeRows(place, second))
    openHeed({ agent: other.agent }, place.store())
    await hung()
    const { stream } = await agent.subscribeToThread({ ...thread, snapshot: true })
    const [first] = await readUntil(stream, isType('data-thread-snapshot'))
    expect(JSON.stringify(first)).toContain('second')
    expect(JSON.stringify(first)).not.toContain('first')
    expect(Number(first?.cursor?.split('.')[0])).toBeGreaterThanOrEqual(await place.store().lifeOf(thread.threadId))
  })
})

describe('a database that is restored', () => {
  async function open(): Promise<ReturnType<typeof stubborn> & { store: LibSQLStore; heed: Heed; backup: string }> {
    const made = stubborn()
    const store = new LibSQLStore({ url: `file:${newFile()}` })
    const heed = openHeed({ agent: made.agent }, store)
    await made.agent.sendMessage('zero', thread).outcome
    await idle(made.agent, thread)
    const backup = newFile()
    await store.backup(backup)
    return { ...made, store, heed: heed as unknown as Heed, backup }
  }

  it('[R11.2] [M1.9] ends the runs of now; messages are answered, and a close ends', async () => {
    const { agent, hung, store, heed, backup, aborted, hold } = await open()
    await hung()
    await store.restore(backup)
    await agent.sendMessage('second', thread).outcome
    await idle(agent, thread)
    expect(aborted).toMatchObject([{ code: 'thread_deleted' }])
    hold.open()
    const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
    expect(JSON.stringify(messages)).not.toMatch(/first|interrupted/)
    expect(JSON.stringify(messages)).toContain('Said second')
    await heed.close()
  })

  it('[R11.1] [W1.3] gives every thread an epoch above all before, and subscribers a snapshot of what was restored', async () => {
    const { agent, store, backup } = await open()
    const seen = collect(await agent.subscribeToThread(thread))
    await agent.sendMessage('lost', thread).outcome
    await idle(agent, thread)
    await agent.sendMessage('elsewhere', { ...thread, threadId: 'thread-2' }).outcome
    await soon(() => types(seen.chunks)).toContain('finish')
    const { epoch } = (await store.getThread(thread))!
    const after = seen.chunks.find(isType('start'))?.cursor
    await store.restore(backup)
    await soon(() => snapshots(seen.chunks)).toMatchObject([{ reason: 'replaced', messages: [{}, {}] }])
    expect(JSON.stringify(snapshots(seen.chunks))).not.toContain('lost')
    expect((await store.getThread(thread))!.epoch).toBeGreaterThan(epoch)
    expect(await store.lifeOf('thread-2')).toBeGreaterThan(epoch)
    const returning = collect(await agent.subscribeToThread({ ...thread, after: after ?? '' }))
    await agent.sendMessage('second', thread).outcome
    await soon(() => types(returning.chunks)).toContain('finish')
    expect(snapshots(returning.chunks)).toHaveLength(1)
    expect(JSON.stringify(returning.chunks)).not.toContain('lost')
  })
})

describe.each(sharedPlaceKinds())('processes, $name', ({ make }) => {
  it('[R1.9] a thread of a dead process is taken over at once when the clock is set back by an hour', async () => {
    const time = virtualClock()
    let back = 0
    const clock = { ...time, now: () => time.now() - back }
    const place = make({ clock })
    const first = stubborn()
    const dying = mortal(place.store())
    const before = openHeed({ agent: first.agent }, dying.store, { clock })
    await first.hung()
    dying.die()
    await before.close()
    back = 3_600_000
    const next = stubborn()
    const heed = openHeed({ agent: next.agent }, place.store(), { clock })
    await heed.start()
    await idle(next.agent, thread)
    const { messages } = await (await next.agent.getMemory()).recall({ ...thread, perPage: false })
    expect(JSON.stringify(messages)).toContain('Said hang first')
  })

  it.each([3_600_000, -3_600_000])('[R1.10] a process whose clock differs by %i ms keeps its thread, and loses it when it is gone', async (difference) => {
    const clock = virtualClock()
    const place = make({ clock })
    const first = stubborn()
    const dying = mortal(place.store())
    const before = openHeed({ agent: first.agent }, dying.store, { clock: { ...clock, now: () => clock.now() + difference } })
    await first.hung()
    const next = stubborn()
    const heed = openHeed({ agent: next.agent }, place.store(), { clock })
    await heed.start()
    const { epoch } = (await place.store().getThread(thread))!
    await clock.advance(30_000)
    expect((await place.store().getThread(thread))!.epoch).toBe(epoch)
    dying.die()
    await before.close()
    for (let second = 0; second < 20; second++) await clock.advance(1_000)
    await soon(async () => (await place.store().getThread(thread))!.epoch).toBe(epoch + 1)
    await idle(next.agent, thread)
  })

  it('[R11.4] a close does not wait longer than five seconds for work that ignores its abort', async () => {
    const clock = virtualClock()
    let asked = 0
    const generateTitle = { model: () => new Promise<ScriptedModel>(() => asked++) }
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Hello.']), memory: new Memory({ generateTitle }) })
    const heed = openHeed({ agent }, make({ clock }).store(), { clock })
    await agent.sendMessage('Hi.', thread).outcome
    await idle(agent, thread)
    await soon(() => asked).toBe(1)
    let closed = false
    const closing = heed.close().then(() => (closed = true))
    await clock.advance(4_000)
    expect(closed).toBe(false)
    await clock.advance(2_000)
    await closing
  })
})
