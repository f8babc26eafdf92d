import { describe, expect, it } from 'vitest'
import { Agent, type AgentConfig } from '../../src/index.ts'
import { scriptedModel, virtualClock, type Script } from '../../src/testing/index.ts'
import { idle, soon, texts } from '../thread/said.ts'
import { call, code, message, reasons, results, target, watching } from './watching.ts'

const found = call('complete_task', { result: '482913' })
const sms = { description: 'the code of the bank', expected_channels: ['sms'], result_schema: code }

/** An agent that the waiting one can call. */
function called(script: Script, more: Partial<AgentConfig> = {}) {
  const model = scriptedModel(script)
  return { model, agent: new Agent({ id: 'clerk', model, watches: true, ...more } as AgentConfig) }
}

describe('a watch of an agent that another one called', () => {
  it('[V1.40] [V2.11] wakes the conversation with what it waited for, and not the child thread', async () => {
    const clerk = called([call('await_signal', sms), 'I wait for the code.'])
    const { agent, adapter, model, judging } = watching({
      script: [call('agent-clerk', { prompt: 'Log in.' }), 'The clerk waits.', 'You are logged in.'], judge: () => found, agent: { agents: { clerk: clerk.agent } },
    })
    await agent.sendMessage('Log in to my bank.', target).outcome
    await idle(agent, target)
    const { watches: [watch] } = await agent.listWatches(target)
    expect(watch).toMatchObject({ ...target, agentId: 'assistant', state: 'open', description: sms.description })
    expect((await clerk.agent.listWatches()).watches).toEqual([])
    expect(texts(clerk.model.calls.at(-1)?.prompt ?? []).at(-1)).toContain('"result_goes_to":"the conversation of the agent that called you"')
    await adapter.deliver(message('1', 'Your code is 482913.'))
    await soon(() => reasons(model)).toEqual(['matched'])
    await idle(agent, target)
    expect([results(model), judging.callCount, clerk.model.callCount, model.callCount]).toEqual([['"482913"'], 1, 2, 3])
    expect(texts(model.calls.at(-1)?.prompt ?? []).at(-1)).toContain('\nwaited for: "the code of the bank"\nreason: matched')
  })

  it('[V1.40] through two calls, looks back to the beginning of the turn, within the limits of the agent that waits', async () => {
    const clock = virtualClock()
    const clerk = called([call('await_signal', sms), 'I wait.'], { watches: { maxExpiryMs: 600_000 } })
    const secretary = new Agent({ id: 'secretary', model: scriptedModel([call('agent-clerk', { prompt: 'Wait.' }), 'The clerk waits.']), agents: { clerk: clerk.agent } })
    const { agent, adapter, model } = watching({
      clock, judge: () => found, agent: { agents: { secretary } },
      script: async ({ index }) => {
        if (index > 0) return 'Fine.'
        await adapter.deliver(message('1', 'Your code is 482913.'))
        await clock.advance(1_000)
        return call('agent-secretary', { prompt: 'Log in.' })
      },
    })
    await agent.sendMessage('Log in.', target).outcome
    await soon(() => reasons(model)).toEqual(['matched'])
    const { watches: [watch] } = await agent.listWatches(target)
    expect(Number(watch?.expiresAt) - Number(watch?.createdAt)).toBe(600_000)
  })

  it('[V1.40] is listed, explained and cancelled at the agent of the conversation', async () => {
    const clerk = called([call('await_signal', sms), 'I wait.'])
    const { agent, model } = watching({ script: [call('agent-clerk', { prompt: 'Wait.' }), 'Fine.', 'It is cancelled.'], judge: [], agent: { agents: { clerk: clerk.agent } } })
    await agent.sendMessage('Wait.', target).outcome
    await idle(agent, target)
    const { watches: [watch] } = await agent.listWatches(target)
    const id = watch?.id ?? ''
    expect([await clerk.agent.getWatch({ id }), (await agent.explain({ watchId: id }))?.state]).toEqual([null, 'open'])
    await expect(clerk.agent.cancelWatch({ id })).rejects.toMatchObject({ code: 'invalid_argument' })
    await agent.cancelWatch({ id })
    await soon(() => reasons(model)).toEqual(['cancelled'])
    expect(clerk.model.callCount).toBe(2)
  })
})
