import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, placeKinds } from './places.ts'
import { idle } from './said.ts'

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
