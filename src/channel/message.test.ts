import { describe, expect, it } from 'vitest'
import { checkMessage, messageLimits } from './message.ts'

const message = { providerId: 'm1', sender: { address: 'a', verified: true }, text: 'Hello' }
const checked = (changes: object) => checkMessage('message', { ...message, ...changes })

describe('a message of a channel', () => {
  it('[V3.9] is cut to its limits, between characters, and marked', () => {
    const long = checked({ text: `${'x'.repeat(messageLimits.text - 1)}😀!` })
    expect(long).toMatchObject({ text: 'x'.repeat(messageLimits.text - 1), truncated: true })
    expect(checked({ text: 'x'.repeat(messageLimits.text) }).truncated).toBeUndefined()
    const attached = checked({ attachments: Array.from({ length: 5_000 }, (_, at) => ({ filename: `${at}` })) })
    expect(attached.attachments).toHaveLength(messageLimits.attachments)
    expect(attached.truncated).toBe(true)
    const labels = checked({ subject: 's'.repeat(5_000), sender: { ...message.sender, name: 'n'.repeat(5_000) }, attachments: [{ filename: 'f'.repeat(5_000) }] })
    expect([labels.subject?.length, labels.sender.name?.length, labels.attachments?.[0]?.filename?.length]).toEqual([1_000, 1_000, 1_000])
  })

  it('[V3.9] has texts that every store returns unchanged', () => {
    expect(checked({ text: 'a\0b\uD800c' }).text).toBe('a\uFFFDb\uFFFDc')
  })

  it('[V3.9] is rejected by the name of the field that is invalid; ids are never cut', () => {
    for (const [changes, field] of [
      [{ providerId: '' }, 'message.providerId'], [{ providerId: 'x'.repeat(513) }, 'message.providerId'], [{ providerId: 'a\0' }, 'message.providerId'], [{ sender: null }, 'message.sender'],
      [{ sender: { address: 'x'.repeat(513), verified: true } }, 'message.sender.address'], [{ sender: { address: 'a', verified: 'yes' } }, 'message.sender.verified'],
      [{ sender: { address: 'a', verified: true, name: 5 } }, 'message.sender.name'], [{ text: undefined }, 'message.text'], [{ subject: {} }, 'message.subject'],
      [{ conversation: 5 }, 'message.conversation'], [{ attachments: {} }, 'message.attachments'], [{ attachments: ['x'] }, 'message.attachments[0]'],
      [{ attachments: [{ size: -1 }] }, 'message.attachments[0].size'], [{ sentAt: '2026' }, 'message.sentAt'], [{ sentAt: new Date(Number.NaN) }, 'message.sentAt'],
      [{ own: 'yes' }, 'message.own'], [{ automatic: 1 }, 'message.automatic'],
    ] as const) expect(() => checked(changes)).toThrow(`${field} must be`)
  })

  it('has no other fields', () => {
    expect(Object.keys(checked({ kind: 'sms', contactId: 'c1', __proto__: { own: true } })).toSorted()).toEqual(['providerId', 'sender', 'text'])
  })
})
