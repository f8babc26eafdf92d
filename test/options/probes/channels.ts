import { expect } from 'vitest'
import type { ChannelOptions } from '../../../src/channel/index.ts'
import { answering, said } from '../../channel/answering.ts'
import { soon } from '../../thread/said.ts'
import { rejects, type Probe } from '../probe.ts'
import { channels, heed, testing } from '../walked.ts'

const { Channel, Contacts, directChannel } = channels
const { Agent, Heed, InMemoryStore } = heed
const { scriptedModel } = testing

export const channelProbes: Probe[] = [
  {
    title: 'the options of a channel',
    async run() {
      const annotator = scriptedModel(() => 'none')
      const { adapter, sent, replies } = answering({
        channel: { id: 'desk', kind: 'pager', resourceId: ({ sender }) => (sender.address === 'drop' ? undefined : 'user-1'), annotator, threadId: () => 'desk-1' },
      })
      await adapter.deliver(said('1'), said('2', 'x', { sender: { address: 'drop', verified: false } }))
      await soon(async () => (await replies()).map(({ state }) => state)).toEqual(['sent'])
      expect((await replies())[0]).toMatchObject({ channelId: 'desk', resourceId: 'user-1', threadId: 'desk-1', agentId: 'assistant' })
      expect([sent.length, annotator.callCount]).toEqual([1, 1])
      const given: ChannelOptions = { id: 'x', adapter: directChannel(), resourceId: 'user-1' }
      const wrong = { id: 'a b', adapter: {}, kind: 'SMS', resourceId: '', contacts: [], mode: 'both', agent: 'x', threadId: () => 't' }
      for (const [field, value] of Object.entries(wrong)) await rejects(() => new Channel({ ...given, [field]: value } as never), field)
      await rejects(() => new Channel({ ...given, annotator: 5 as never }), 'not a model')
      for (const agent of ['nobody', { id: 'nobody' }]) {
        const channel = () => new Channel({ ...given, adapter: directChannel({ send: async () => ({}) }), mode: 'message', agent, contacts: new Contacts() })
        await rejects(() => new Heed({ agents: { a: new Agent({ id: 'a', model: annotator }) }, storage: new InMemoryStore(), channels: [channel()] }), 'nobody')
      }
    },
  },
  {
    title: 'the queries of replies',
    async run() {
      const { heed, adapter, replies } = answering()
      await adapter.deliver(said('1'), said('2', 'x', { conversation: 'room' }))
      await soon(async () => (await replies()).map(({ state }) => state)).toEqual(['sent', 'sent'])
      const [first, second] = await replies()
      const ids = async (query: object) => (await heed.channels.listReplies(query)).replies.map(({ id }) => id)
      expect(await ids({ limit: 1, resourceId: 'ada', channelId: 'phone', state: 'sent' })).toEqual([first?.id])
      expect(await ids({ after: first?.seq, threadId: second?.threadId })).toEqual([second?.id])
      expect([await ids({ state: 'dead' }), await ids({ resourceId: 'eve' }), await ids({ channelId: 'x' })]).toEqual([[], [], []])
      const id = first?.id ?? ''
      expect([(await heed.channels.getReply({ id }))?.id, await heed.channels.getReply({ id, resourceId: 'eve' })]).toEqual([id, null])
      expect((await heed.channels.retryReply({ id, resourceId: 'ada' })).state).toBe('sent')
      await rejects(() => heed.channels.retryReply({ id, resourceId: 'eve' }), id)
      for (const [field, value] of Object.entries({ resourceId: '', channelId: 5, threadId: '', state: 'x', limit: 0, after: -1 }))
        await rejects(() => heed.channels.listReplies({ [field]: value } as never), field)
      await rejects(() => heed.channels.getReply({ id: '' }), 'id')
    },
  },
  {
    title: 'the fields of contacts',
    async run() {
      const contacts = new Contacts([{ id: 'mum', name: 'Mum', addresses: [{ kind: 'sms', address: '+15550100', since: 5 }] }])
      contacts.addAddress('mum', { kind: 'email', address: 'Mum@example.com', since: 7 })
      expect(contacts.list()).toEqual([
        { id: 'mum', name: 'Mum', addresses: [{ kind: 'sms', address: '+15550100', since: 5 }, { kind: 'email', address: 'mum@example.com', since: 7 }] },
      ])
      for (const [field, value] of Object.entries({ id: '', name: 5, addresses: 'x' })) await rejects(() => contacts.add({ id: 'x', addresses: [], [field]: value } as never), field)
      await rejects(() => contacts.add({ id: 'dad', addresses: [{ kind: 'sms', address: '+15550102', since: -1 }] }), 'since')
      for (const [field, value] of Object.entries({ kind: '', address: 'no number', since: -1 }))
        await rejects(() => contacts.addAddress('mum', { kind: 'sms', address: '+15550101', since: 1, [field]: value } as never), field)
    },
  },
]
