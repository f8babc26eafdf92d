import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { Agent, Memory } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, placeKinds } from '../thread/places.ts'
import { gate, idle, soon, userTexts } from '../thread/said.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }
const branches = { ifActive: { attributes: { delivery: 'while-active' } }, ifIdle: { attributes: { delivery: 'new-message' } } }

function guide(more: Partial<ConstructorParameters<typeof Agent>[0]> = {}) {
  const hold = gate()
  const model = scriptedModel(({ index }) => (index === 0 ? { text: 'First.', gate: hold.promise } : 'Later.'))
  return { agent: new Agent({ id: 'guide', model, ...more }), model, release: hold.open }
}

describe.each(placeKinds())('sends in one tick to an idle thread, $name', ({ make }) => {
  it('[A4.5] each receipt names the run that takes its signal, and the run can be sent to by that id', async () => {
    const { agent, model, release } = guide()
    openHeed({ agent }, make().store())
    const [first, second] = [agent.sendMessage('One.', thread), agent.sendMessage('Two.', thread)]
    const third = agent.sendMessage('Three.', { runId: second.runId })
    const turn = agent.queueMessage('Then.', thread)
    expect([second.runId, third.runId]).toEqual([first.runId, first.runId])
    expect(turn.runId).not.toBe(first.runId)
    await soon(() => model.callCount).toBe(1)
    release()
    const outcomes = await Promise.all([first, second, third, turn].map(({ outcome }) => outcome))
    expect(outcomes.map(({ runId }) => runId)).toEqual([first.runId, first.runId, first.runId, turn.runId])
    await idle(agent, thread)
    const runs = await agent.threads().store.listRuns({ threadId: thread.threadId })
    expect(runs.map(({ runId }) => runId).toSorted()).toEqual([first.runId, turn.runId].toSorted())
  })

  it('[A4.5] a message after a queued one that starts the run names the same run', async () => {
    const { agent, release } = guide()
    openHeed({ agent }, make().store())
    const [turn, message] = [agent.queueMessage('One.', thread), agent.sendMessage('Two.', thread)]
    expect(message.runId).toBe(turn.runId)
    release()
    expect(await message.outcome).toMatchObject({ action: 'delivered', runId: turn.runId })
  })

  it('[A4.5] holds where the storage depends on the request', async () => {
    const memory = new Memory()
    const { agent, release } = guide({ memory: async () => memory })
    openHeed({ agent }, make().store())
    const [first, second] = [agent.sendMessage('One.', thread), agent.sendMessage('Two.', thread)]
    const turn = agent.queueMessage('Then.', thread)
    expect(second.runId).toBe(first.runId)
    release()
    expect(await Promise.all([first, second, turn].map(async ({ outcome }) => (await outcome).runId))).toEqual([first.runId, first.runId, turn.runId])
  })

  it('[A4.5] another agent gets a run of its own', async () => {
    const { agent, release } = guide()
    const other = new Agent({ id: 'other', model: scriptedModel(['Hello.']) })
    openHeed({ agent, other }, make().store())
    const [first, second] = [agent.sendMessage('One.', thread), other.sendMessage('Two.', thread)]
    expect(second.runId).not.toBe(first.runId)
    release()
    expect(await second.outcome).toMatchObject({ action: 'queued', runId: second.runId })
    await idle(agent, thread)
  })

  it('[A4.6] the branch, its attributes and the action agree', async () => {
    const { agent, model, release } = guide()
    openHeed({ agent }, make().store())
    // However slow the machine is, one transaction takes both, and the run begins with both.
    const stopped = vi.spyOn(performance, 'now').mockReturnValue(performance.now())
    onTestFinished(() => stopped.mockRestore())
    const sent = ['One.', 'Two.'].map((contents) => agent.sendMessage({ contents }, { ...thread, ...branches }))
    await Promise.all(sent.map(({ stored }) => stored))
    stopped.mockRestore()
    await soon(() => model.callCount).toBe(1)
    const later = agent.sendMessage({ contents: 'Three.' }, { ...thread, ...branches })
    await later.stored
    release()
    const outcomes = await Promise.all([...sent, later].map(({ outcome }) => outcome))
    expect(outcomes.map(({ action }) => action)).toEqual(['woke', 'delivered', 'delivered'])
    await idle(agent, thread)
    expect(userTexts(model.calls.at(-1))).toEqual([
      '<user delivery="new-message">One.</user>', '<user delivery="while-active">Two.</user>', '<user delivery="while-active">Three.</user>',
    ])
    for (const [index, { signal }] of [...sent, later].entries()) {
      const again = agent.sendMessage({ id: signal.id, contents: ['One.', 'Two.', 'Three.'][index] ?? '' }, thread)
      expect((await again.outcome).action).toBe(['woke', 'delivered', 'delivered'][index])
    }
  })
})
