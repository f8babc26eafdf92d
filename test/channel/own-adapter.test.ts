import { describe, expect, it } from 'vitest'
import { Channel, Contacts, type ChannelAdapter } from '../../src/channel/index.ts'
import { Agent, InMemoryStore, silentLogger } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { soon } from '../thread/said.ts'
import { opened, target } from '../watch/watching.ts'

const sent = { providerId: '1', sender: { address: '+15550100', verified: true }, text: 'Hello.' }

/** A channel with an adapter of the program's own, and a watch for a contact. */
async function own(receive: () => unknown) {
  const adapter = { kind: 'sms', receive } as ChannelAdapter
  const contacts = new Contacts([{ id: 'bank', addresses: [{ kind: 'sms', address: '+15550100' }] }])
  const channel = new Channel({ id: 'phone', adapter, resourceId: 'ada', contacts })
  const agent = new Agent({ id: 'assistant', model: scriptedModel(() => 'Noted.'), watches: { model: scriptedModel(() => 'It is not.') } })
  opened({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger, channels: [channel] })
  const { id } = await agent.awaitSignal({ description: 'x', expected_contacts: ['bank'] }, target)
  return { channel, messages: async () => (await agent.explain({ watchId: id }))?.messages.map(({ reason }) => reason) }
}

describe('an adapter of the program’s own', () => {
  it.each<[unknown]>([['yes'], [1], ['true'], [{}], [[]], [null], [undefined]])('[V3.22] a sender is not verified by %j: the delivery is rejected by name', async (verified) => {
    const { channel, messages } = await own(() => ({ messages: [sent, { ...sent, providerId: '2', sender: { ...sent.sender, verified } }] }))
    await expect(channel.receive({ headers: new Headers(), body: '' })).rejects.toMatchObject({ code: 'invalid_argument', message: expect.stringContaining('messages[1].sender.verified must be') as string })
    expect(await messages()).toEqual([])
  })

  it.each<[string, unknown]>([
    ['no list', { messages: undefined }], ['a promise', Promise.resolve({ messages: [sent] })], ['a text', { messages: 'Hello.' }],
  ])('[V3.22] %s is rejected by name', async (_, delivery) => {
    const { channel } = await own(() => delivery)
    await expect(channel.receive({ headers: new Headers(), body: '' })).rejects.toMatchObject({ code: 'invalid_argument', message: expect.stringContaining('messages must be a list') as string })
  })

  it('[V3.22] [V3.9] what it maps is checked: a text of any length is cut, fields that no message has are dropped, and the sender is the contact', async () => {
    const { channel, messages } = await own(() => ({ messages: [{ ...sent, text: 'x'.repeat(100_000), contactId: 'bank', kind: 'email' }, { ...sent, providerId: '2', sender: { ...sent.sender, verified: false } }] }))
    expect(await channel.receive({ headers: new Headers(), body: '' })).toEqual({ status: 200 })
    await soon(messages).toEqual(['rejected', 'contact'])
  })
})
