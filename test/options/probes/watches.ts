import { expect } from 'vitest'
import { served } from '../../http/serving.ts'
import { memory, open, rejects, thread, type Probe } from '../probe.ts'
import { channels, heed, testing } from '../walked.ts'

const { Channel, directChannel } = channels
const { Agent } = heed
const { scriptedModel } = testing

const sms = { description: 'the code', expected_channels: ['sms'] }
const message = (providerId: string) => ({ providerId, sender: { address: '+15550100', verified: true }, text: 'Your code is 482913.' })

export const watches: Probe[] = [
  {
    title: 'the fields of a watch and of its target',
    async run() {
      const { agent } = open({ watches: true })
      const expiresAt = new Date(Date.now() + 600_000)
      const schema = { type: 'string', enum: ['yes', 'no'] }
      const expected = { expected_categories: ['reply'], expected_channels: ['sms'], expected_contacts: ['mum'] }
      const full = { ...expected, description: 'a reply', mode: 'continuous', expires_at: expiresAt.toISOString(), max_evaluations: 3, result_schema: schema, exclusive: true, judge_may_end: true } as const
      const watch = await agent.awaitSignal(full, { ...thread, id: 'w' })
      expect(watch).toMatchObject({
        ...thread, id: 'w', description: 'a reply', criteria: { categories: ['reply'], channels: ['sms'], contacts: ['mum'] }, mode: 'continuous', expiresAt,
        maxEvaluations: 3, resultSchema: schema, exclusive: true, mayEnd: true, state: 'open',
      })
      expect(await agent.awaitSignal(full, { ...thread, id: 'w' })).toEqual(watch)
      const short = await agent.awaitSignal({ ...sms, expires_in_minutes: 2 }, thread)
      expect(short.expiresAt.getTime() - short.createdAt.getTime()).toBe(120_000)
      for (const [field, value] of Object.entries({ description: '', mode: 'twice', expires_in_minutes: 0, expires_at: 'soon', max_evaluations: 0, exclusive: 1, judge_may_end: 1, expected_contacts: 'mum' }))
        await rejects(() => agent.awaitSignal({ ...sms, [field]: value } as never, thread), field)
      await rejects(() => agent.awaitSignal({ ...sms, expected_channel: ['sms'] } as never, thread), 'expected_channel')
      await rejects(() => agent.awaitSignal(sms, { ...thread, runId: 'x' } as never), 'runId')
    },
  },
  {
    title: 'the queries of watches',
    async run() {
      const { agent } = open({ watches: true })
      for (const id of ['a', 'b', 'c']) await agent.awaitSignal(sms, { ...thread, id })
      await agent.awaitSignal(sms, { resourceId: 'user-2', threadId: 'thread-2', id: 'd' })
      await agent.cancelWatch({ id: 'c', ...thread })
      const ids = async (query?: Parameters<typeof agent.listWatches>[0]) => (await agent.listWatches(query)).watches.map(({ id }) => id)
      expect([await ids(), await ids({ resourceId: 'user-2' }), await ids({ threadId: 'thread-1' })]).toEqual([['a', 'b', 'c', 'd'], ['d'], ['a', 'b', 'c']])
      expect([await ids({ state: 'ended' }), await ids({ limit: 2 }), await ids({ after: 'b' })]).toEqual([['c'], ['a', 'b'], ['c', 'd']])
      expect((await agent.listWatches({ limit: 2 })).more).toBe(true)
      expect(await agent.getWatch({ id: 'a', ...thread })).toMatchObject({ id: 'a', candidates: [] })
      expect([await agent.getWatch({ id: 'a', resourceId: 'user-2' }), await agent.getWatch({ id: 'a', threadId: 'thread-2' })]).toEqual([null, null])
      await rejects(() => agent.cancelWatch({ id: 'a', resourceId: 'user-2' }), 'a')
      await rejects(() => agent.listWatches({ before: 'x' } as never), 'before')
      await rejects(() => agent.getWatch({ id: 'a', agentId: 'x' } as never), 'agentId')
      expect(await agent.explain({ watchId: 'a', ...thread, limit: 1, after: 0 })).toMatchObject({ id: 'a', messages: [], more: false })
      expect(await agent.explain({ watchId: 'a', threadId: 'thread-2' })).toBeNull()
      for (const [option, value] of Object.entries({ limit: 0, after: -1, before: 1, threadId: 1 })) await rejects(() => agent.explain({ watchId: 'a', [option]: value } as never), option)
      await rejects(() => agent.explain({ ...thread, signalId: 's', limit: 1 } as never), 'limit')
    },
  },
  {
    title: 'what an agent\'s watches may do, the channels, and the policies',
    async run() {
      const phone = directChannel({ kind: 'sms' })
      const judging = scriptedModel(() => 'No.')
      const asked: string[] = []
      const policies = {
        async authorize({ action, tenant }: { action: string; tenant: string }) {
          asked.push(`${action} ${tenant}`)
          return { allowed: true, policyIds: [], revision: '' }
        },
      }
      const { agent, model } = open({ watches: { model: judging, maxExpiryMs: 600_000, maxLookBackMs: 60_000, maxOpen: 2 } }, () => 'Fine.', {
        channels: [new Channel({ id: 'phone', adapter: phone, resourceId: thread.resourceId })], policies,
      })
      await phone.deliver(message('1'))
      await agent.awaitSignal({ ...sms, look_back_seconds: 60 }, thread)
      await expect.poll(() => judging.callCount).toBe(1)
      expect([model.callCount, asked]).toEqual([0, ['receive_signal user-1']])
      await rejects(() => agent.awaitSignal({ ...sms, expires_in_minutes: 11 }, thread), 'expires_in_minutes')
      await rejects(() => agent.awaitSignal({ ...sms, look_back_seconds: 61 }, thread), 'look_back_seconds')
      await agent.awaitSignal(sms, thread)
      await expect(agent.awaitSignal(sms, thread)).rejects.toMatchObject({ code: 'too_many_watches' })
      await agent.generate('Hi.', { memory })
      expect(model.calls[0]?.tools?.map(({ name }) => name)).toEqual(['await_signal'])
      for (const [option, value] of Object.entries({ maxExpiryMs: 0, maxLookBackMs: -1, maxOpen: 0.5, model: 1, maxWatches: 1 })) await rejects(() => open({ watches: { [option]: value } }), option)
      await rejects(() => open({ watches: 1 as never }), 'watches')
      await rejects(() => open({}, undefined, { channels: [{}] as never }), 'channels')
      await rejects(() => open({}, undefined, { policies: {} as never }), 'policies')
    },
  },
  {
    title: 'the watches of a client',
    async run() {
      const { client } = await served({ guide: new Agent({ id: 'guide', model: scriptedModel([]), watches: true }) })
      const guide = client.getAgent('guide')
      expect(await guide.awaitSignal({ ...thread, id: 'w', watch: sms })).toMatchObject({ ...thread, id: 'w', description: 'the code' })
      expect(await guide.getWatch({ id: 'w', resourceId: thread.resourceId })).toMatchObject({ id: 'w' })
      await expect(guide.getWatch({ id: 'w', resourceId: 'user-2' })).rejects.toMatchObject({ code: 'not_found' })
      await rejects(() => guide.awaitSignal({ ...thread, wach: sms } as never), 'wach')
      for (const call of [guide.getWatch, guide.cancelWatch]) await rejects(() => call.call(guide, { id: 'w', threadId: 't' } as never), 'threadId')
    },
  },
]
