import { describe, expect, it } from 'vitest'
import { Channel, Contacts, directChannel } from '../../src/channel/index.ts'
import { Agent, InMemoryStore, silentLogger } from '../../src/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { soon } from '../thread/said.ts'
import { call, message, opened, target, watching } from './watching.ts'

const minute = 60_000
/** The text decides what a message becomes. */
const canary = 'CANARY-9b1e'

describe('explain() of a watch', () => {
  it('[V1.25] names every message that was considered, and why it did or did not match', async () => {
    const clock = virtualClock()
    const [phone, mail] = [directChannel({ kind: 'sms' }), directChannel({ kind: 'email' })]
    const judging = scriptedModel(({ prompt }) => {
      const text = JSON.stringify(prompt.at(-1))
      if (text.includes('FAIL')) throw new Error(text)
      return text.includes('MATCH') ? call('report_signal', { result: { matched: true } }) : 'No.'
    })
    const agent = new Agent({ id: 'assistant', model: scriptedModel(() => 'Noted.'), watches: { model: judging } })
    const contacts = new Contacts([{ id: 'bank', addresses: [{ kind: 'sms', address: '+15550100' }] }, { id: 'shop', addresses: [{ kind: 'sms', address: '+15550200' }] }])
    opened({
      agents: { agent }, storage: new InMemoryStore(), clock, logger: silentLogger,
      channels: [new Channel({ id: 'phone', adapter: phone, resourceId: 'ada', contacts }), new Channel({ id: 'work', adapter: mail, resourceId: 'ada', contacts })],
      policies: {
        async authorize({ context }) {
          const isDenied = (context as { categories?: string[] } | undefined)?.categories?.includes('finance') === true
          return { allowed: !isDenied, policyIds: isDenied ? ['no_money'] : [], revision: '' }
        },
      },
    })
    await phone.deliver(message('before', `${canary} MATCH code 482913`))
    await clock.advance(minute)
    const { id } = await agent.awaitSignal(
      { description: 'codes of the bank', mode: 'continuous', expected_categories: ['verification_code'], expected_channels: ['sms'], expected_contacts: ['bank'], expires_in_minutes: 10 },
      target,
    )
    const texts: Array<[string, string?]> = [
      ['MATCH code 482913'], ['REJECT code 482913'], ['FAIL code 482913'], ['code 482913 for 500 EUR'], ['hello'], ['code 482913', '+15550200'],
      ['code 482913', '+15559999'],
    ]
    await phone.deliver(...texts.map(([text, from], nth) => message(String(nth), `${canary} ${text}`, from)))
    await mail.deliver(message('mail', `${canary} code 482913`, 'bank@example.com'))
    await soon(async () => {
      await clock.advance(2_000)
      return (await agent.getWatch({ id }))?.candidates.every(({ settledAt }) => settledAt !== undefined)
    }).toBe(true)
    await agent.cancelWatch({ id })
    await clock.advance(1)
    await phone.deliver(message('after', `${canary} MATCH code 482913`))
    const explained = await agent.explain({ watchId: id, resourceId: 'ada' })
    expect(explained?.messages.map(({ reason, score, detail }) => [reason, score, detail])).toEqual([
      ['matched', 1, undefined], ['rejected', 1, undefined], ['failed', 1, 'provider_error'], ['denied', 1, 'no_money'], ['category', 0, undefined],
      ['contact', 1, undefined], ['contact', 1, undefined], ['channel', 1, undefined],
    ])
    expect(explained).toMatchObject({ id, state: 'ended', reason: 'cancelled', more: false, messages: [{ attempts: 1, value: { matched: true } }, {}, { attempts: 3 }, {}, {}, {}, {}, {}] })
    expect(JSON.stringify(explained)).not.toContain(canary)
    const page = await agent.explain({ watchId: id, limit: 3 })
    expect([page?.messages.length, page?.more]).toEqual([3, true])
    const next = await agent.explain({ watchId: id, limit: 10, after: page!.messages.at(-1)!.seq })
    expect([...page!.messages, ...next!.messages]).toEqual(explained?.messages)
    expect(await agent.explain({ watchId: id, resourceId: 'bob' })).toBeNull()
    expect(await agent.explain({ watchId: 'unknown' })).toBeNull()
  })

  it('[V1.9] [V1.10] [V1.25] names the quota of a sender, the expiry, and a message that another watch has taken', async () => {
    const clock = virtualClock()
    const { agent, adapter } = watching({ clock, script: () => 'Noted.', judge: ({ prompt }) => (JSON.stringify(prompt).includes('MATCH') ? call('complete_task', { result: { matched: true } }) : 'No.') })
    const wait = { description: 'anything', expected_channels: ['sms'], expires_in_minutes: 1 }
    const { id } = await agent.awaitSignal({ ...wait, mode: 'continuous', max_evaluations: 8 }, { ...target, threadId: 'flooded' })
    await adapter.deliver(...Array.from({ length: 7 }, (_, nth) => message(String(nth), 'Spam.', '+15550999')))
    await soon(async () => (await agent.getWatch({ id }))?.evaluations).toBe(5)
    await clock.advance(minute)
    // The millisecond after the expiry, while the watch may still be open.
    await Promise.all([clock.advance(1), adapter.deliver(message('late', 'Late.'))])
    const flooded = await agent.explain({ watchId: id })
    expect(flooded?.messages.map(({ reason }) => reason).slice(0, 7)).toEqual(['rejected', 'rejected', 'rejected', 'rejected', 'rejected', 'quota', 'quota'])
    expect(flooded?.skipped).toBe(2)

    const first = await agent.awaitSignal(wait, { ...target, threadId: 'codes' })
    await adapter.deliver(message('code', 'MATCH.'))
    await soon(async () => (await agent.getWatch({ id: first.id }))?.reason).toBe('matched')
    const second = await agent.awaitSignal({ ...wait, look_back_seconds: 1 }, { ...target, threadId: 'codes' })
    expect((await agent.explain({ watchId: second.id }))?.messages.at(-1)).toMatchObject({ reason: 'taken' })
  })
})
