import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { Channel, standardWebhook } from '../../src/channel/index.ts'
import { Agent } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import type { ScriptedStep } from '../../src/testing/index.ts'
import { gate, idle, soon } from '../thread/said.ts'
import { call, code, message, opened, reasons, results, target, watching, type Watching } from './watching.ts'

const minute = 60_000
const waitForCode = call('await_signal', { description: 'the login code', expected_channels: ['sms'], result_schema: code })
const found = call('complete_task', { result: '482913' })
const input = { description: 'the login code', expected_channels: ['sms'], result_schema: code }

async function watchOf({ agent }: Pick<Watching, 'agent'>, threadId = target.threadId) {
  const { watches: [watch] } = await agent.listWatches({ threadId })
  const details = watch && (await agent.getWatch({ id: watch.id }))
  if (!details) throw new Error('The thread has no watch.')
  return details
}

describe('look-back', () => {
  it('[V1.21] a code that arrives before the model calls await_signal is matched, in the same turn (case 43)', async () => {
    const clock = virtualClock()
    const here = watching({
      clock,
      script: async ({ index }): Promise<ScriptedStep> => {
        if (index > 0) return index === 1 ? 'I wait.' : 'Logged in.'
        await clock.advance(5_000)
        await here.adapter.deliver(message('early', 'Your code is 482913.'))
        await clock.advance(5_000)
        return waitForCode
      },
      judge: [found],
    })
    await here.agent.sendMessage('Log in.', target).outcome
    await soon(() => here.model.callCount).toBe(3)
    expect(reasons(here.model)).toEqual(['matched'])
    expect(results(here.model)).toEqual(['"482913"'])
  })

  it('[V1.21] a code of an earlier attempt is no candidate (case 44)', async () => {
    const clock = virtualClock()
    const { agent, adapter, model, judging } = watching({ clock, script: [waitForCode, 'I wait.', 'Logged in.'], judge: [found] })
    await adapter.deliver(message('old', 'Your code is 111111.'))
    await clock.advance(1)
    await agent.sendMessage('Log in.', target).outcome
    await soon(() => model.callCount).toBe(2)
    await clock.advance(minute)
    expect(judging.callCount).toBe(0)
    expect((await watchOf({ agent })).candidates).toEqual([])
    await adapter.deliver(message('new', 'Your code is 482913.'))
    await soon(() => model.callCount).toBe(3)
    expect(judging.callCount).toBe(1)
    expect(JSON.stringify(judging.calls)).not.toContain('111111')
  })
})

describe('messages', () => {
  it('[V1.1] a webhook that is sent five times is judged once, and the thread is woken once (case 45)', async () => {
    const secret = `whsec_${Buffer.from('a secret of the provider').toString('base64')}`
    const model = scriptedModel(['Noted.'])
    const judging = scriptedModel([call('report_signal', { result: { matched: true } })], { loop: true })
    const agent = new Agent({ id: 'assistant', model, watches: { model: judging } })
    const channel = new Channel({ id: 'hook', adapter: standardWebhook({ secret }), resourceId: 'ada' })
    opened({ agents: { assistant: agent }, storage: new LibSQLStore({ url: ':memory:' }), channels: [channel] })
    const { id } = await agent.awaitSignal({ description: 'any', expected_channels: ['webhook'], mode: 'continuous' }, target)
    const body = JSON.stringify({ sender: { address: 'user-7', verified: true }, text: 'The build is green.' })
    const at = String(Math.floor(Date.now() / 1_000))
    const signature = createHmac('sha256', Buffer.from(secret.slice(6), 'base64')).update(`msg-1.${at}.${body}`).digest('base64')
    const headers = { 'webhook-id': 'msg-1', 'webhook-timestamp': at, 'webhook-signature': `v1,${signature}` }
    const answers = await Promise.all(Array.from({ length: 5 }, () => channel.receive({ headers: new Headers(headers), body })))
    expect(answers).toEqual(Array.from({ length: 5 }, () => ({ status: 200 })))
    await soon(async () => (await agent.getWatch({ id }))?.hits).toBe(1)
    await soon(() => model.callCount).toBe(1)
    await idle(agent, target)
    const watch = await agent.getWatch({ id })
    expect([watch?.evaluations, watch?.candidates.length, judging.callCount, model.callCount]).toEqual([1, 1, 1, 1])
  })

  it.each([[false, ['matched', 'matched']], [true, ['consumed', 'matched']]])(
    '[V1.10] two watches for one message, exclusive: %s (case 46)', async (exclusive, states) => {
      const { agent, adapter, model, judging } = watching({ script: () => 'Noted.', judge: () => found })
      await agent.awaitSignal({ ...input, exclusive }, { ...target, threadId: 'first' })
      await agent.awaitSignal({ ...input, exclusive }, { ...target, threadId: 'second' })
      await adapter.deliver(message('1', 'Your code is 482913.'))
      await soon(async () => [await watchOf({ agent }, 'first'), await watchOf({ agent }, 'second')].map(({ candidates }) => candidates[0]?.state).toSorted())
        .toEqual(states)
      const woken = exclusive ? 1 : 2
      await soon(() => model.callCount).toBe(woken)
      expect(judging.callCount).toBe(woken)
      expect((await watchOf({ agent }, 'first')).reason).toBe('matched')
      expect((await watchOf({ agent }, 'second')).state).toBe(exclusive ? 'open' : 'ended')
    })
})

describe('ends', () => {
  it('[V1.8] a message in the millisecond of the expiry is matched, also if the judge answers later; the watch does not expire too (case 47)', async () => {
    const clock = virtualClock()
    const answer = gate()
    const { agent, adapter, model } = watching({
      clock, script: () => 'Noted.', judge: () => ({ toolCalls: [{ toolName: 'complete_task', input: { result: '482913' } }], gate: answer.promise }),
    })
    const { expiresAt } = await agent.awaitSignal({ ...input, expires_in_minutes: 1 }, target)
    await clock.advance(minute)
    expect(clock.now()).toBe(expiresAt.getTime())
    await adapter.deliver(message('1', 'Your code is 482913.'))
    await clock.advance(5_000)
    expect((await watchOf({ agent })).state).toBe('open')
    answer.open()
    await soon(() => model.callCount).toBe(1)
    await clock.advance(minute)
    expect(reasons(model)).toEqual(['matched'])
    expect([(await watchOf({ agent })).reason, model.callCount]).toEqual(['matched', 1])
  })

  it('[V1.8] a message in the millisecond after the expiry is no candidate, whether the watch has ended by then or not (case 47)', async () => {
    const clock = virtualClock()
    const { agent, adapter, model, judging } = watching({ clock, script: () => 'Noted.', judge: () => found })
    await agent.awaitSignal({ ...input, expires_in_minutes: 1 }, target)
    await clock.advance(minute)
    expect((await watchOf({ agent })).state).toBe('open')
    // The watch ends in this millisecond. Neither order of the two gives a candidate.
    await Promise.all([clock.advance(1), clock.advance(0).then(() => adapter.deliver(message('1', 'Your code is 482913.')))])
    await soon(() => model.callCount).toBe(1)
    await adapter.deliver(message('2', 'Your code is 482913.'))
    await clock.advance(minute)
    const { reason, candidates } = await watchOf({ agent })
    expect([reason, candidates, judging.callCount, model.callCount]).toEqual(['expired', [], 0, 1])
    expect(reasons(model)).toEqual(['expired'])
  })

  it('[V1.11] a cancellation while the judge thinks ends the watch once; the verdict has no effect (case 51)', async () => {
    const answer = gate()
    const { agent, adapter, model, judging } = watching({
      script: () => 'Noted.', judge: () => ({ toolCalls: [{ toolName: 'complete_task', input: { result: '482913' } }], gate: answer.promise }),
    })
    const { id } = await agent.awaitSignal(input, target)
    await adapter.deliver(message('1', 'Your code is 482913.'))
    await soon(() => judging.callCount).toBe(1)
    expect(await agent.cancelWatch({ id, resourceId: 'ada' })).toMatchObject({ state: 'ended', reason: 'cancelled' })
    answer.open()
    await soon(() => model.callCount).toBe(1)
    await idle(agent, target)
    expect(reasons(model)).toEqual(['cancelled'])
    const watch = await watchOf({ agent })
    expect([watch.evaluations, watch.hits, watch.candidates.map(({ state }) => state)]).toEqual([0, 0, ['ended']])
    expect(await agent.cancelWatch({ id })).toMatchObject({ reason: 'cancelled' })
    expect(model.callCount).toBe(1)
  })
})

describe('the thread of a watch', () => {
  it('[V1.22] receives the hits that arrive while it is busy afterwards, in their order (case 52)', async () => {
    const busy = gate()
    let number = 0
    const { agent, adapter, model } = watching({
      script: ({ index }) => (index === 0 ? { text: 'Working.', gate: busy.promise } : 'Noted.'),
      judge: () => call('report_signal', { result: String(++number).padStart(6, '0') }),
    })
    await agent.awaitSignal({ ...input, mode: 'continuous' }, target)
    const outcome = agent.sendMessage('Work.', target).outcome
    await soon(() => model.callCount).toBe(1)
    await adapter.deliver(...['1', '2', '3', '4'].map((id) => message(id, 'A code.')))
    await soon(async () => (await watchOf({ agent })).hits).toBe(4)
    expect(model.callCount).toBe(1)
    busy.open()
    await outcome
    await soon(() => results(model)).toEqual(['"000001"', '"000002"', '"000003"', '"000004"'])
  })

  it('[V1.14] that is deleted while the judge thinks is not created again (case 52)', async () => {
    const answer = gate()
    const { heed, agent, adapter, model, judging } = watching({
      script: () => 'Noted.', judge: () => ({ toolCalls: [{ toolName: 'complete_task', input: { result: '482913' } }], gate: answer.promise }),
    })
    await agent.sendMessage('Hello.', target).outcome
    await idle(agent, target)
    const { id } = await agent.awaitSignal(input, target)
    await adapter.deliver(message('1', 'Your code is 482913.'))
    await soon(() => judging.callCount).toBe(1)
    const memory = await agent.getMemory()
    expect(await memory?.deleteThread(target)).toBe(true)
    answer.open()
    await heed.tick()
    expect(await agent.getWatch({ id })).toBeNull()
    expect(await memory?.getThreadById({ threadId: target.threadId })).toBeNull()
    expect(model.callCount).toBe(1)
  })
})

describe('a restart', () => {
  it('[V1.20] with 100 open watches leaves 100 open, and asks no judge (case 49)', async () => {
    const first = watching({ script: () => 'Noted.', judge: () => found })
    await Promise.all(Array.from({ length: 100 }, (_, nth) => first.agent.awaitSignal(input, { ...target, threadId: `thread-${nth}` })))
    await first.heed.close()
    const second = watching({ script: () => 'Noted.', judge: () => found, file: first.file })
    await second.heed.start()
    expect(await second.heed.tick()).toMatchObject({ watches: 0 })
    const { watches, more } = await second.agent.listWatches({ state: 'open', limit: 100 })
    expect([watches.length, more, second.judging.callCount, second.model.callCount]).toEqual([100, false, 0, 0])
    await second.agent.cancelWatch({ id: watches[0]!.id })
    await soon(() => second.model.callCount).toBe(1)
  })
})
