import { describe, expect, it, onTestFinished } from 'vitest'
import { LocalBus } from '../../src/bus/local.ts'
import { Agent, Heed, InMemoryStore, silentLogger, type Bus } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, placeKinds } from './places.ts'
import { gate, idle, soon } from './said.ts'

const thread = { threadId: 't', resourceId: 'u' }

describe.each(placeKinds())('an abort of an idle thread, $name', ({ make }) => {
  const setting = async (used: boolean) => {
    const agent = new Agent({ id: 'a', model: scriptedModel(() => ({ text: ['a ', 'b ', 'c'] })) })
    openHeed({ agent }, make().store())
    if (used) await agent.generate('One', { memory: { thread: 't', resource: 'u' } })
    return agent
  }
  const statusOf = async (agent: Agent, signalId: string) => (await agent.explain({ ...thread, signalId }))?.run?.status

  it.each([false, true])('[R8.4] does not end the run of the next message (thread was used: %s)', async (used) => {
    const agent = await setting(used)
    const watcher = await agent.subscribeToThread(thread)
    expect(watcher.abort()).toBe(false)
    const receipt = agent.sendMessage('Two', thread)
    expect((await receipt.outcome).action).toBe('woke')
    await idle(agent, thread)
    expect(await statusOf(agent, receipt.signal.id)).toBe('finished')
  })

  it('[R8.4] does not end it without a subscriber, or with a send to another thread', async () => {
    const agent = await setting(true)
    agent.sendMessage('Elsewhere', { threadId: 't2', resourceId: 'u' })
    expect(agent.abortThreadStream(thread)).toBe(false)
    const aborting = agent.abortRun(thread)
    const receipt = agent.sendMessage('Two', thread)
    expect(await aborting).toEqual({ aborted: false })
    await receipt.outcome
    await idle(agent, thread)
    expect(await statusOf(agent, receipt.signal.id)).toBe('finished')
  })

  it('[R8.4] does not end it if the store was not open yet', async () => {
    const agent = await setting(false)
    expect(agent.abortThreadStream(thread)).toBe(false)
    const receipt = agent.sendMessage('One', thread)
    await receipt.outcome
    await idle(agent, thread)
    expect(await statusOf(agent, receipt.signal.id)).toBe('finished')
  })
})

describe('aborts of a run that is about to begin', () => {
  /** Two processes on one bus, whose messages the run waits for before it begins. */
  const waiting = async () => {
    const poll = gate()
    const local = new LocalBus()
    const bus: Bus = {
      connect: async (options) => ({ ...(await local.connect(options)), hasPeers: true, poll: () => poll.promise }),
    }
    const model = scriptedModel(['One.', 'Two.'])
    const agent = new Agent({ id: 'a', model })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), bus, logger: silentLogger })
    onTestFinished(() => heed.close())
    await heed.start()
    const receipt = agent.sendMessage('One', thread)
    const queued = agent.queueMessage('Two', thread)
    await Promise.all([receipt.stored, queued.stored])
    await soon(() => agent.threads().hostOf(thread.threadId) !== undefined).toBe(true)
    return { agent, model, receipt, queued, begin: poll.open }
  }

  it('[R8.3] end it where one before them was of another run', async () => {
    const { agent, receipt, begin } = await waiting()
    agent.abortThreadStream({ ...thread, expectedRunId: 'an earlier run' })
    expect(agent.abortThreadStream(thread)).toBe(true)
    begin()
    await receipt.outcome
    await idle(agent, thread)
    expect((await agent.explain({ ...thread, signalId: receipt.signal.id }))?.run?.status).toBe('aborted')
  })

  it('[R8.1] cancel what is pending where one of them asks for it', async () => {
    const { agent, model, queued, begin } = await waiting()
    agent.abortThreadStream(thread)
    agent.abortThreadStream({ ...thread, clearPendingSignals: true })
    begin()
    await idle(agent, thread)
    expect((await agent.explain({ ...thread, signalId: queued.signal.id }))?.state).toBe('cancelled')
    expect(model.callCount).toBe(0)
  })
})
