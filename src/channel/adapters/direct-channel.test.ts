import { describe, expect, it } from 'vitest'
import { codeOf, requestOf } from '../../../test/channel/local-provider.ts'
import type { ChannelAdapter, ChannelDelivery } from '../adapter.ts'
import { directChannel } from './direct-channel.ts'

const message = { providerId: 'm1', sender: { address: '+15550100123', verified: true }, text: 'Hello' }

describe('directChannel', () => {
  it('passes checked messages to the channel that it belongs to, and resolves when the channel has them', async () => {
    const adapter = directChannel({ kind: 'sms' })
    const received: ChannelDelivery[] = []
    await expect(adapter.deliver(message)).rejects.toMatchObject({ code: 'invalid_argument' })
    adapter.connect?.(async (delivery) => {
      await Promise.resolve()
      received.push(delivery)
    })
    await adapter.deliver(message, { ...message, providerId: 'm2', sender: { address: 'x', verified: false } })
    expect(received).toEqual([{ messages: [message, { ...message, providerId: 'm2', sender: { address: 'x', verified: false } }] }])
    expect(() => adapter.connect?.(async () => {})).toThrow('belongs to a channel already')
  })

  it('[V3.9] rejects a message that is invalid, and delivers none of the call', async () => {
    const adapter = directChannel()
    const received: ChannelDelivery[] = []
    adapter.connect?.(async (delivery) => void received.push(delivery))
    await expect(adapter.deliver(message, { ...message, text: 5 } as never)).rejects.toThrow('message.text must be a text.')
    expect(received).toEqual([])
  })

  it('[V3.1] takes no requests', () => {
    const adapter: ChannelAdapter = directChannel()
    expect(codeOf(() => adapter.receive(requestOf(JSON.stringify(message), {}), 0))).toBe('unauthorized')
  })

  it('sends replies with the function of the program, and has none without', async () => {
    expect(directChannel().send).toBeUndefined()
    const sent: string[] = []
    const adapter = directChannel({
      send: async ({ text }) => {
        sent.push(text)
        return { providerId: 'r1' }
      },
    })
    const reply = { to: 'x', text: 'Bye', idempotencyKey: 'k', abortSignal: new AbortController().signal }
    expect(await adapter.send?.(reply)).toEqual({ providerId: 'r1' })
    expect(sent).toEqual(['Bye'])
    expect(codeOf(() => directChannel({ kinds: 'x' } as never))).toBe('unsupported_option')
  })
})
