import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { Channel, directChannel } from '../../src/channel/index.ts'
import { Agent, silentLogger } from '../../src/index.ts'
import { watchStoreOf } from '../../src/store/contract/storage.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { gate, idle, soon } from '../thread/said.ts'
import { live, shiftMs } from './killed-process.ts'
import { shiftedClock } from './shifted-clock.ts'
import { call, code, message, opened, reasons, results, target, watching } from './watching.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-watch-losses-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const input = { description: 'the login code', expected_channels: ['sms'], result_schema: code }
const found = call('complete_task', { result: '482913' })

describe('claims that end without a report', () => {
  it('[V1.5] [V1.24] a message that kills its process three times has failed, and the ones after it are judged', { timeout: 300_000 }, async () => {
    const file = join(folder, 'candidates.db')
    for (const life of [0, 1, 2]) expect(await live(file, 'claimed', { nth: 1, life })).toBe('SIGKILL')
    const toolCalls = ['report_signal', 'complete_task'].map((toolName) => ({ toolName, input: { result: { matched: true } } }))
    const { heed, agent, judging } = watching({ script: () => 'Noted.', judge: () => ({ toolCalls }), file, clock: shiftedClock(3 * shiftMs) })
    await heed.start()
    await soon(async () => (await agent.getWatch({ id: 'one' }))?.reason).toBe('matched')
    await soon(async () => (await agent.getWatch({ id: 'each' }))?.hits).toBe(2)
    const [one, each] = [await agent.getWatch({ id: 'one' }), await agent.getWatch({ id: 'each' })]
    expect(one?.candidates.map(({ state, detail }) => [state, detail])).toEqual([['failed', 'claim_expired'], ['matched', undefined], ['ended', undefined]])
    expect(each?.candidates.map(({ state, attempts }) => [state, attempts])).toEqual([['failed', 3], ['matched', 1], ['matched', 1]])
    expect([one?.evaluations, each?.evaluations, each?.state, judging.callCount]).toEqual([1, 2, 'open', 3])
  })

  it('[V1.12] [V1.24] a message whose claims are lost is annotated by rules alone, and at last not any more: no model is asked again', async () => {
    const clock = virtualClock()
    const storage = new LibSQLStore({ url: `file:${join(folder, 'inbounds.db')}`, clock })
    const adapter = directChannel({ kind: 'sms' })
    const annotating = scriptedModel(() => call('annotate_message', { categories: ['urgent'] }))
    const agent = new Agent({ id: 'assistant', model: scriptedModel(() => 'Noted.'), watches: { model: scriptedModel(() => found) } })
    const channel = new Channel({ id: 'phone', adapter, resourceId: 'ada', annotator: annotating })
    const errors: string[] = []
    const heed = opened({
      agents: { agent }, storage, channels: [channel], clock, notifications: { dispatch: { enabled: false } },
      logger: { ...silentLogger, error: (text, fields) => void errors.push(`${text} ${JSON.stringify(fields)}`) },
    })
    const store = await watchStoreOf(storage)
    // A process that claims and ends, without a word.
    const lose = async (times: number) => {
      for (let nth = 0; nth < times; nth += 1) {
        expect(await store?.claimInbounds({ channelIds: ['phone'], now: clock.now(), until: clock.now() + 90_000, limit: 10 })).toHaveLength(1)
        await clock.advance(90_001)
      }
    }
    const waiting = { ...input, expected_categories: ['verification_code'], expires_in_minutes: 600 }
    const { id } = await agent.awaitSignal(waiting, target)
    await adapter.deliver(message('1', 'Your code is 482913.'))
    await lose(3)
    await heed.tick()
    expect(annotating.callCount).toBe(0)
    expect((await agent.getWatch({ id }))?.candidates).toMatchObject([{ categories: ['verification_code'], state: 'matched' }])
    const again = await agent.awaitSignal(waiting, { ...target, threadId: 'again' })
    await adapter.deliver(message('2', 'Your code is 111111.'))
    await lose(6)
    await heed.tick()
    expect(annotating.callCount).toBe(0)
    expect((await agent.explain({ watchId: again.id }))?.messages.map(({ reason }) => reason)).toEqual(['annotation_failed'])
    expect(errors).toEqual([expect.stringContaining('is not annotated')])
    expect(errors.join()).not.toContain('111111')
    await adapter.deliver(message('3', 'Your code is 482913.'))
    await heed.tick()
    expect(annotating.callCount).toBe(1)
    expect(await agent.getWatch({ id: again.id })).toMatchObject({ reason: 'matched' })
  })
})

describe('an exclusive watch that ends', () => {
  it.each(['cancelled', 'deleted'])('[V1.10] lets the later watches of its messages be judged soon: %s', async (end) => {
    const clock = virtualClock()
    const answer = gate()
    const { agent, adapter, judging } = watching({
      clock, script: () => 'Noted.', judge: ({ index }) => (index === 0 ? { text: 'No.', gate: answer.promise } : found),
    })
    const first = await agent.awaitSignal({ ...input, exclusive: true }, { ...target, threadId: 'first' })
    const second = await agent.awaitSignal(input, { ...target, threadId: 'second' })
    await adapter.deliver(message('1', 'Your code is 482913.'))
    await soon(() => judging.callCount).toBe(1)
    // The second watch was looked at, and waits for the first one.
    await clock.advance(1_000)
    expect((await agent.getWatch({ id: second.id }))?.evaluations).toBe(0)
    if (end === 'cancelled') await agent.cancelWatch({ id: first.id })
    else await (await agent.getMemory())?.deleteThread({ ...target, threadId: 'first' })
    // A deletion is found by the next sweep.
    await clock.advance(end === 'cancelled' ? 1 : 6_000)
    await soon(async () => (await agent.getWatch({ id: second.id }))?.reason).toBe('matched')
    answer.open()
    expect((await agent.getWatch({ id: first.id }))?.reason).toBe(end === 'cancelled' ? 'cancelled' : undefined)
  })
})

/** Calls `before` when the policies are asked about a delivery: after its claim, and before the send. */
function atDelivery(before: (nth: number) => Promise<unknown>) {
  let asked = 0
  return {
    async authorize() {
      asked += 1
      if (asked % 2 === 0) await before(asked / 2)
      return { allowed: true, policyIds: [], revision: '' }
    },
  }
}

describe('a thread that is deleted between the claim of a delivery and its send', () => {
  it.each([[false], [true]])('[V1.14] gets no signal, and is not created by it; created again meanwhile: %s', async (isCreated) => {
    const storage = new LibSQLStore({ url: `file:${join(folder, `deleted-${isCreated}.db`)}` })
    const model = scriptedModel(() => 'Noted.')
    const agent = new Agent({ id: 'assistant', model, watches: { model: scriptedModel(() => found) } })
    const adapter = directChannel({ kind: 'sms' })
    const deleted = gate()
    const policies = atDelivery(async () => {
      const memory = await agent.getMemory()
      expect(await memory?.deleteThread(target)).toBe(true)
      if (isCreated) await memory?.createThread(target)
      deleted.open()
    })
    const heed = opened({
      agents: { agent }, storage, logger: silentLogger, policies, channels: [new Channel({ id: 'phone', adapter, resourceId: 'ada' })],
    })
    const { id } = await agent.awaitSignal(input, target)
    await adapter.deliver(message('1', 'Your code is 482913.'))
    await deleted.promise
    await soon(async () => (await heed.tick()).watches).toBe(0)
    const memory = await agent.getMemory()
    expect((await memory?.getThreadById({ threadId: target.threadId })) !== null).toBe(isCreated)
    expect(model.callCount).toBe(0)
    expect(await agent.getWatch({ id })).toBeNull()
  })
})

describe('two processes', () => {
  it('[V1.13] [V1.22] deliver the results of a thread in their order, also if the first one takes long', async () => {
    const file = join(folder, 'order.db')
    const busy = gate()
    const [firstAsked, started] = [gate(), { first: 0 }]
    let number = 0
    const make = (name: 'first' | 'second') => {
      const model = scriptedModel(() => 'Noted.')
      const judging = scriptedModel(() => call('report_signal', { result: String(++number).padStart(6, '0') }))
      const agent = new Agent({ id: 'assistant', model, watches: { model: judging } })
      const adapter = directChannel({ kind: 'sms' })
      const policies = {
        async authorize() {
          if (name === 'first' && ++started.first === 2) {
            firstAsked.open()
            await busy.promise
          }
          return { allowed: true, policyIds: [], revision: '' }
        },
      }
      const heed = opened({
        agents: { assistant: agent }, storage: new LibSQLStore({ url: `file:${file}` }), logger: silentLogger, policies,
        channels: [new Channel({ id: `phone-${name}`, adapter, resourceId: 'ada' })],
      })
      return { heed, agent, adapter, model }
    }
    const first = make('first')
    const { id } = await first.agent.awaitSignal({ ...input, mode: 'continuous' }, target)
    await first.adapter.deliver(message('1', 'A code.'))
    await firstAsked.promise
    const second = make('second')
    await second.heed.start()
    await second.adapter.deliver(message('2', 'A code.'), message('3', 'A code.'))
    await soon(async () => (await second.agent.getWatch({ id }))?.hits).toBe(3)
    await second.heed.tick()
    expect(second.model.callCount).toBe(0)
    busy.open()
    await soon(() => Math.max(results(first.model).length, results(second.model).length)).toBe(3)
    await idle(first.agent, target)
    const order = results(first.model).length === 3 ? results(first.model) : results(second.model)
    expect(order).toEqual(['"000001"', '"000002"', '"000003"'])
    expect(reasons(first.model).concat(reasons(second.model))).not.toContain('cancelled')
  })
})
