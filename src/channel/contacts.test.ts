import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { codeOf, requestOf } from '../../test/channel/local-provider.ts'
import { secret, standard } from '../../test/sources/signing.ts'
import { slackEvents } from './adapters/slack-events.ts'
import { standardWebhook } from './adapters/standard-webhook.ts'
import { telegramBot } from './adapters/telegram-bot.ts'
import { twilioSignature, twilioSms } from './adapters/twilio-sms.ts'
import { normalAddress } from './address.ts'
import { Contacts, countsFor } from './contacts.ts'

const mum = { id: 'mum', name: 'Mum', addresses: [{ kind: 'sms', address: '+15550100123' }, { kind: 'email', address: 'Mum@Example.com' }, { kind: 'telegram', address: '5550100' }] }
const verified = (address: string) => ({ address, verified: true })

describe('the normal form of an address', () => {
  it('[V3.6] is one text for one address of a kind, and none for what is no address', () => {
    const cases: Array<[string, string, string | undefined]> = [
      ['sms', '+15550100123', '+15550100123'], ['sms', '+1 5550100123', undefined], ['sms', '15550100123', undefined], ['sms', 'MUM', undefined], ['sms', '+1555010012３', undefined],
      ['sms', '+15550100123 ', undefined], ['sms', '+15550100123\n', undefined],
      ['email', 'Mum@Example.COM', 'mum@example.com'], ['email', 'mum+shop@example.com', 'mum+shop@example.com'], ['email', 'm.um@example.com', 'm.um@example.com'],
      ['email', 'mum@exаmple.com', undefined], ['email', 'ｍum@example.com', undefined], ['email', 'mum@example.com ', undefined], ['email', 'mum@@example.com', undefined], ['email', '"mum"@example.com', undefined],
      ['email', 'mum@localhost', undefined], ['email', '.mum@example.com', undefined], ['email', 'mum@example.com.', undefined], ['email', `${'x'.repeat(65)}@example.com`, undefined],
      ['telegram', '5550100', '5550100'], ['telegram', '-1001234567890', '-1001234567890'], ['telegram', '05550100', undefined], ['telegram', '@mum', undefined], ['telegram', '5550100.0', undefined],
      ['slack', 'T061EG9R6:U061F7AUR', 'T061EG9R6:U061F7AUR'], ['slack', 'U061F7AUR', undefined], ['slack', 't061:u061', undefined],
      ['pager', 'Mum', 'Mum'], ['pager', ' Mum', ' Mum'], ['pager', '', undefined], ['constructor', 'x', 'x'], ['__proto__', 'x', 'x'],
    ]
    for (const [kind, address, normal] of cases) expect([kind, address, normalAddress(kind, address)]).toEqual([kind, address, normal])
  })
})

describe('contacts', () => {
  it('[V3.6] [V2.15] case 37: only a verified address in its normal form finds its contact; a name or a look-alike does not', () => {
    const contacts = new Contacts([mum])
    expect(contacts.resolve('sms', verified('+15550100123'))).toEqual({ contactId: 'mum', since: 0 })
    expect(contacts.resolve('email', verified('mUm@example.com'))).toEqual({ contactId: 'mum', since: 0 })
    for (const [kind, sender] of [
      ['sms', { address: '+15550100123', verified: false }], ['sms', verified('+1 5550100123')], ['sms', verified('Mum')], ['sms', verified('mum')], ['sms', verified('+1555010012３')],
      ['sms', { address: '+15550100999', name: 'Mum', verified: true }], ['email', verified('mum+1@example.com')], ['email', verified('mum@exаmple.com')], ['email', verified('mum@example.com.evil.example')],
      ['telegram', verified('+15550100123')], ['email', verified('+15550100123')], ['pager', verified('+15550100123')],
    ] as const) expect([kind, sender, contacts.resolve(kind, sender)]).toEqual([kind, sender, undefined])
  })

  it('[V3.6] case 37: an SMS with an alphanumeric sender that is the name of a contact, and a spoofed display name, find none', () => {
    const contacts = new Contacts([mum])
    const [token, url] = ['9f8e7d6c5b4a39281706f5e4d3c2b1a0', 'https://example.org/sms']
    const form: Array<[string, string]> = [['MessageSid', 'SM3f1c0b9a8d7e6f5a4b3c2d1e0f9a8b7c'], ['From', 'MUM'], ['Body', 'Send money'], ['SmsStatus', 'received'], ['NumMedia', '0']]
    const sms = twilioSms({ authToken: token, url }).receive(requestOf(new URLSearchParams(form).toString(), { 'x-twilio-signature': twilioSignature(token, url, form).toString('base64') }), 0)
    const update = { update_id: 1, message: { message_id: 1, date: 1, text: 'Send money', chat: { id: 66, type: 'private' }, from: { id: 66, first_name: 'Mum', username: 'mum' } } }
    const chat = telegramBot({ secretToken: 'a-secret-token_of-the-bot' }).receive(requestOf(JSON.stringify(update), { 'x-telegram-bot-api-secret-token': 'a-secret-token_of-the-bot' }), 0)
    expect(sms.messages[0]?.sender).toEqual({ address: 'MUM', verified: false })
    expect(chat.messages[0]?.sender).toEqual({ address: '66', name: 'Mum', verified: true })
    expect(sms.messages.map(({ sender }) => contacts.resolve('sms', sender))).toEqual([undefined])
    expect(chat.messages.map(({ sender }) => contacts.resolve('telegram', sender))).toEqual([undefined])
  })

  it('[V3.6] case 38: resolving an unknown sender adds no contact', () => {
    const contacts = new Contacts([mum])
    for (let time = 0; time < 3; time++) expect(contacts.resolve('sms', verified('+15550100999'))).toBeUndefined()
    expect(contacts.list().map(({ id }) => id)).toEqual(['mum'])
  })

  it('[V3.7] case 38: an address that is added or merged later does not count for watches that are open', () => {
    const contacts = new Contacts([mum, { id: 'stranger', addresses: [{ kind: 'sms', address: '+15550100666' }] }])
    const registeredAt = 1_000
    contacts.addAddress('mum', { kind: 'sms', address: '+15550100777', since: 2_000 })
    contacts.merge('stranger', 'mum', 3_000)
    const [first, added, merged] = ['+15550100123', '+15550100777', '+15550100666'].map((address) => contacts.resolve('sms', verified(address)))
    expect([first, added, merged]).toEqual([{ contactId: 'mum', since: 0 }, { contactId: 'mum', since: 2_000 }, { contactId: 'mum', since: 3_000 }])
    expect([first, added, merged].map((contact) => contact && countsFor(contact, registeredAt))).toEqual([true, false, false])
    expect([first, added, merged].map((contact) => contact && countsFor(contact, 3_000))).toEqual([true, true, true])
    expect(contacts.has('stranger')).toBe(false)
    // The times survive being stored by the program.
    const again = new Contacts(contacts.list())
    expect(again.resolve('sms', verified('+15550100666'))).toEqual({ contactId: 'mum', since: 3_000 })
  })

  it('[V3.6] an address belongs to one contact, until it is removed', () => {
    const contacts = new Contacts([mum])
    expect(codeOf(() => contacts.add({ id: 'x', addresses: [{ kind: 'email', address: 'MUM@example.com' }] }))).toBe('id_taken')
    expect(contacts.has('x')).toBe(false)
    expect(codeOf(() => contacts.add(mum))).toBe('id_taken')
    expect(codeOf(() => contacts.addAddress('nobody', { kind: 'sms', address: '+15550100777', since: 0 }))).toBe('not_found')
    expect(codeOf(() => contacts.add({ id: 'y', addresses: [{ kind: 'sms', address: '555 0100' }] }))).toBe('invalid_argument')
    expect(codeOf(() => contacts.add({ id: 'y', addresses: [{ kind: 'sms', address: '+15550100777' }, { kind: 'sms', address: '+15550100777' }] }))).toBe('invalid_argument')
    expect(codeOf(() => contacts.add({ id: 'y', addresses: [], phone: '+15550100777' } as never))).toBe('unsupported_option')
    expect(codeOf(() => contacts.merge('mum', 'mum', 1))).toBe('invalid_argument')
    expect([contacts.removeAddress('email', 'mum@EXAMPLE.com'), contacts.removeAddress('email', 'mum@example.com')]).toEqual([true, false])
    expect(contacts.resolve('email', verified('mum@example.com'))).toBeUndefined()
  })
})

describe('what a sender can learn or pretend', () => {
  const now = 1_700_000_000_000
  const key = '8f742231b10e8888abcd99yyyzzz85a5'
  const slack = (text: string, user: string, more: object = {}) => {
    const body = JSON.stringify({ type: 'event_callback', team_id: 'T1', api_app_id: 'A1', event: { type: 'message', channel: 'C1', ts: '1699999990.000200', user, text, ...more } })
    const signature = `v0=${createHmac('sha256', key).update(`v0:${now / 1_000}:${body}`).digest('hex')}`
    return slackEvents({ signingSecret: key }).receive(requestOf(body, { 'x-slack-request-timestamp': String(now / 1_000), 'x-slack-signature': signature }), now)
  }

  it('[V3.11] case 36: the response is the same for every sender and every text', () => {
    const [token, url] = ['9f8e7d6c5b4a39281706f5e4d3c2b1a0', 'https://example.org/sms']
    const sms = (From: string, Body: string) => {
      const form: Array<[string, string]> = [['MessageSid', 'SM3f1c0b9a8d7e6f5a4b3c2d1e0f9a8b7c'], ['From', From], ['Body', Body], ['SmsStatus', 'received'], ['NumMedia', '0']]
      return twilioSms({ authToken: token, url }).receive(requestOf(new URLSearchParams(form).toString(), { 'x-twilio-signature': twilioSignature(token, url, form).toString('base64') }), now)
    }
    const hook = (text: string) => {
      const { headers, body } = standard(JSON.stringify({ sender: { address: 'a' }, text }), { at: now })
      return standardWebhook({ secret }).receive(requestOf(body as string, headers as Record<string, string>), now)
    }
    const answers = [sms('+15550100123', 'Your code is 482913'), sms('MUM', 'Which categories are awaited?'), sms('+15550100666', '')].map(({ answer }) => answer)
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1)
    for (const { answer } of [slack('urgent', 'U1'), slack('hi', 'U2'), hook('code 1'), hook('hi')]) expect(answer).toBeUndefined()
  })

  it('[V3.8] case 39: a request names no channel, and the sender of a group is not the group', () => {
    const [message] = slack('hi', 'U1', { kind: 'sms', channel_kind: 'sms' }).messages
    expect(message).not.toHaveProperty('kind')
    expect(message?.sender.address).toBe('T1:U1')
    expect(message?.conversation).toBe('C1')
    const contacts = new Contacts([{ id: 'room', addresses: [{ kind: 'slack', address: 'T1:C1' }] }])
    expect(contacts.resolve('slack', message?.sender ?? verified('x'))).toBeUndefined()
  })

  it('[V3.3] case 40: an echo of an own message is marked, whatever it quotes', () => {
    expect(slack('The code is 482913', 'U9', { bot_id: 'B1', app_id: 'A1' }).messages).toMatchObject([{ own: true }])
  })
})
