import { describe, expect, it } from 'vitest'
import { Agent, createTool, InMemoryStore, silentLogger, type Send, type ThreadStore } from '../../src/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { openHeed } from './places.ts'
import { collect, gate, idle, isType, readUntil, soon, texts, types } from './said.ts'
import { kept, told } from './transcript.ts'

const thread = { threadId: 'thread-1', resourceId: 'user-1' }

type Method = 'accept' | 'beginRun' | 'commitStep' | 'endSuspended' | 'listRows'

function withoutWindows(send: Send): Send {
  return send.claim ? { ...send, claim: { owner: send.claim.owner } } : send
}

/** A store that, once told to, lets one call of a method wait: before it is done, or with its answer. */
function holding(method: Method, hold: 'before' | 'after') {
  const store = new InMemoryStore()
  const reached = gate()
  const released = gate()
  let armed = false
  const slow = new Proxy<ThreadStore>(store, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key)
      if (typeof value !== 'function') return value
      return async (...given: unknown[]): Promise<unknown> => {
        // Without windows a send does not begin its run: beginRun does.
        if (key === 'accept' && method === 'beginRun') given = [(given[0] as readonly Send[]).map(withoutWindows)]
        const waits = armed && key === method
        if (waits) armed = false
        if (waits && hold === 'before') {
          reached.open()
          await released.promise
        }
        const answer: unknown = await Reflect.apply(value, target, given)
        if (waits && hold === 'after') {
          reached.open()
          await released.promise
        }
        return answer
      }
    },
  })
  return { store: slow, arm: () => (armed = true), reached: reached.promise, release: released.open }
}

describe('if the store responds late', () => {
  it('[W2.1] a signal that is persisted beside the next run does not cut off the end of the run before, which this process does not know of yet', async () => {
    const { store, arm, reached, release } = holding('commitStep', 'after')
    const agent = new Agent({ id: 'guide', model: scriptedModel(['One.', 'Two.']) })
    openHeed({ agent }, store)
    const seen = collect(await agent.subscribeToThread(thread))
    arm()
    agent.sendMessage('First.', thread)
    await reached
    // The first run has ended in the store, so that this one begins another.
    await agent.sendMessage('Second.', thread).stored
    await agent.sendMessage('Beside it.', { ...thread, ifActive: { behavior: 'persist' }, ifIdle: { behavior: 'persist' } }).stored
    await soon(() => seen.chunks.filter(isType('data-user-message')).length).toBe(2)
    release()
    await soon(() => seen.chunks.filter(isType('finish')).length).toBe(2)
    const marks = types(seen.chunks).filter((type) => /^(?:start|finish|data-.*)$/.test(type))
    expect(marks).toEqual(['start', 'data-user-message', 'data-user-message', 'finish', 'start', 'data-user-message', 'finish'])
  })

  it('[W2.1] a signal that is persisted beside the next run does not cut off the end of a suspended run, which this process is about to publish', async () => {
    const { store, arm, reached, release } = holding('endSuspended', 'after')
    const gift = createTool({ id: 'gift', requireApproval: true, execute: () => 'a ribbon' })
    const agent = new Agent({ id: 'guide', model: scriptedModel([{ toolCalls: [{ toolName: 'gift', toolCallId: 'c1' }] }, 'Two.']), tools: { gift } })
    openHeed({ agent }, store)
    const seen = collect(await agent.subscribeToThread(thread))
    agent.sendMessage('First.', thread)
    await soon(() => seen.chunks.some(isType('tool-call-approval'))).toBe(true)
    await soon(() => agent.threads().hostOf(thread.threadId)).toBe(undefined)
    arm()
    expect(agent.abortThreadStream(thread)).toBe(true)
    await reached
    await agent.sendMessage('Second.', thread).stored
    await agent.sendMessage('Beside it.', { ...thread, ifActive: { behavior: 'persist' }, ifIdle: { behavior: 'persist' } }).stored
    release()
    await soon(() => seen.chunks.some(isType('finish'))).toBe(true)
    const marks = types(seen.chunks).filter((type) => /^(?:start|finish|abort|data-.*)$/.test(type))
    expect(marks).toEqual(['start', 'data-user-message', 'abort', 'data-user-message', 'start', 'data-user-message', 'finish'])
  })

  it('[R2.3] an interrupt that has already entered does not cut the stream', async () => {
    const first = gate()
    const second = gate()
    const model = scriptedModel([
      { text: 'One moment.', gate: { parts: 1, until: first.promise } },
      { text: ['I heard ', 'you well.'], gate: { parts: 2, until: second.promise } },
    ])
    const agent = new Agent({ id: 'guide', model })
    const { store, arm, reached, release } = holding('accept', 'after')
    openHeed({ agent }, store)
    const watcher = await agent.subscribeToThread(thread)
    const seen = collect(watcher)
    await agent.sendMessage('Go.', thread).outcome
    arm()
    const cut = agent.sendMessage('Listen.', { ...thread, ifActive: { behavior: 'interrupt' } })
    await reached
    // It waits in the store, and the run takes it at its boundary before any code here knows that it was accepted.
    first.open()
    await soon(() => types(seen.chunks).filter((type) => type === 'text-delta').length).toBeGreaterThan(2)
    release()
    await cut.stored
    second.open()
    expect(await cut.outcome).toMatchObject({ action: 'delivered', step: 1 })
    await idle(agent, thread)
    expect(texts(model.calls[1]?.prompt ?? []).at(-1)).toBe('user: Listen.')
    expect(kept((await (await agent.getMemory()).recall(thread)).messages).at(-1)).toBe('text I heard you well.')
    expect(model.callCount).toBe(2)
  })

  it('[W2.1] a signal that is persisted after a run is published after its last chunk', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Done.']) })
    const { store, arm, reached, release } = holding('commitStep', 'after')
    openHeed({ agent }, store)
    const watcher = await agent.subscribeToThread(thread)
    arm()
    agent.sendMessage('Go.', thread)
    await reached
    // The run is over, as far as the store is concerned.
    const note = agent.sendMessage({ contents: 'note', id: 'note' }, { ...thread, ifIdle: { behavior: 'persist' } })
    expect(await note.outcome).toEqual({ action: 'persisted' })
    release()
    const chunks = await readUntil(watcher.stream, (chunk) => chunk.type === 'data-user-message' && 'data' in chunk && (chunk.data as { id: string }).id === 'note')
    expect(types(chunks).slice(-3)).toEqual(['step-finish', 'finish', 'data-user-message'])
  })

  it('[R8.2] an abort before the run exists still ends it', async () => {
    const model = scriptedModel(['Never said.'])
    const agent = new Agent({ id: 'guide', model })
    const { store, arm, reached, release } = holding('beginRun', 'before')
    openHeed({ agent }, store)
    const watcher = await agent.subscribeToThread(thread)
    arm()
    const receipt = agent.sendMessage('Go.', thread)
    await reached
    expect(agent.abortThreadStream(thread)).toBe(true)
    release()
    expect(await receipt.outcome).toMatchObject({ action: 'woke' })
    expect((await readUntil(watcher.stream, isType('abort'))).at(-1)?.type).toBe('abort')
    await idle(agent, thread)
    expect(model.callCount).toBe(0)
    expect(agent.abortThreadStream(thread)).toBe(false)
  })

  it('a call that is aborted during acceptance is removed from the queue at once', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel([{ text: 'Long', hang: true }]) })
    const { store, arm, reached, release } = holding('accept', 'after')
    openHeed({ agent }, store)
    await agent.sendMessage('Go.', thread).outcome
    const controller = new AbortController()
    arm()
    const call = expect(agent.generate('A question.', { memory: { thread: thread.threadId, resource: thread.resourceId }, abortSignal: controller.signal })).rejects.toMatchObject({ code: 'aborted' })
    await reached
    controller.abort()
    release()
    await call
    expect(await agent.listQueued(thread)).toEqual([])
  })

  it('[W1.1] a signal that a snapshot contains is not published again', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel([]) })
    const { store, arm, reached, release } = holding('accept', 'after')
    openHeed({ agent }, store)
    const note = (id: string) => agent.sendMessage({ contents: id, id }, { ...thread, ifIdle: { behavior: 'persist' } })
    await note('first').stored
    arm()
    const second = note('second')
    await reached
    const watcher = await agent.subscribeToThread({ ...thread, snapshot: true })
    const reader = watcher.stream[Symbol.asyncIterator]()
    const log = await readUntil(reader, () => true)
    expect(told(log)).toEqual(['signal first', 'signal second'])
    release()
    await second.stored
    await note('third').stored
    log.push(...(await readUntil(reader, () => true)))
    expect(told(log)).toEqual(['signal first', 'signal second', 'signal third'])
  })

  it('[W1.1] a snapshot is read again if a whole run ended meanwhile', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Done.']) })
    const { store, arm, reached, release } = holding('listRows', 'before')
    openHeed({ agent }, store)
    await agent.sendMessage({ contents: 'note', id: 'note' }, { ...thread, ifIdle: { behavior: 'persist' } }).stored
    const watcher = await agent.subscribeToThread({ ...thread, snapshot: true })
    const seen = collect(watcher)
    arm()
    await reached
    await agent.sendMessage({ contents: 'Go.', id: 'go' }, thread).outcome
    await idle(agent, thread)
    release()
    await soon(() => told(seen.chunks)).toEqual(['signal note', 'signal go', 'text Done.'])
    watcher.unsubscribe()
    await seen.done
    expect(seen.chunks.filter(isType('data-thread-snapshot'))).toHaveLength(1)
  })

  it('closing a Heed while a thread waits for a retry leaves no timer', async () => {
    const clock = virtualClock()
    const stopped = gate()
    class Broken extends InMemoryStore {
      override commitStep(): never {
        throw new Error('disk full')
      }
    }
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Done.']) })
    const heed = openHeed({ agent }, new Broken({ clock }), { clock, logger: { ...silentLogger, error: stopped.open } })
    agent.sendMessage('Go.', thread)
    await stopped.promise
    await heed.close()
    expect(clock.pending).toBe(0)
  })
})
