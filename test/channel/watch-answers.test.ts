import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { CedarPolicies } from '../../src/policy/index.ts'
import { InMemoryStore, Memory, silentLogger } from '../../src/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { gate, soon } from '../thread/said.ts'
import { call } from '../watch/watching.ts'
import { answering, said } from './answering.ts'

const wait = { description: 'a parcel', expected_contacts: ['shop'] }
const judged = { watches: { model: scriptedModel(({ prompt }) => (JSON.stringify(prompt).includes('parcel is here') ? call('complete_task', { result: { matched: true } }) : 'No.')) } }
const asksToWait = [call('await_signal', { description: 'a parcel', expected_channels: ['sms'] }), 'I will tell you.', 'Your parcel is here.']
const inRoom = { conversation: 'room' }

describe('what a thread of a channel answers to a watch', () => {
  it('[V3.23] is sent in the conversation in which the wait was asked for, once, with a key of its own', async () => {
    const { heed, agent, adapter, sent, replies, states } = answering({ script: asksToWait, agent: judged })
    await adapter.deliver(said('1', 'Tell me when the parcel comes.', inRoom))
    await soon(states).toEqual(['sent I will tell you.'])
    const { watches: [watch] } = await agent.listWatches()
    await adapter.deliver({ ...said('2', 'The parcel is here', { sender: { address: '+15550199', verified: true } }), automatic: true })
    await soon(states).toEqual(['sent I will tell you.', 'none automatic', 'sent Your parcel is here.'])
    const [first, , last] = await replies()
    expect(last).toMatchObject({ id: `reply:watch:${watch?.id}`, signalId: `watch:${watch?.id}`, inboundId: first?.inboundId, threadId: first?.threadId, attempts: 1 })
    expect(sent).toEqual([
      { to: '+15550100', conversation: 'room', text: 'I will tell you.', idempotencyKey: first?.id },
      { to: '+15550100', conversation: 'room', text: 'Your parcel is here.', idempotencyKey: last?.id },
    ])
    const page = await heed.channels.listReplies({ after: (await replies())[1]?.seq ?? 0 })
    expect(page.replies.map(({ id }) => id)).toEqual([last?.id])
  })

  it('[V3.23] is a run of its own after the one that goes on: each message and each result has its reply', async () => {
    const held = gate()
    const { agent, adapter, states, replies } = answering({
      agent: judged,
      script: async ({ prompt, index }) => {
        if (index === 0) return call('await_signal', { description: 'a parcel', expected_channels: ['sms'] })
        if (index === 1) return 'I will tell you.'
        const last = JSON.stringify(prompt.at(-1))
        if (last.includes('How are you')) await held.promise
        return last.includes('<watch') ? 'Your parcel is here.' : 'I am well.'
      },
    })
    await adapter.deliver(said('1', 'Tell me when the parcel comes.', inRoom))
    await soon(states).toEqual(['sent I will tell you.'])
    await adapter.deliver(said('2', 'How are you?', inRoom))
    await soon(async () => (await replies())[1]?.state).toBe('asked')
    await adapter.deliver({ ...said('3', 'The parcel is here', { sender: { address: '+15550199', verified: true } }), automatic: true })
    await soon(async () => (await agent.listWatches()).watches[0]?.state).toBe('ended')
    held.open()
    await soon(states).toEqual(['sent I will tell you.', 'sent I am well.', 'none automatic', 'sent Your parcel is here.'])
  })

  it('[V3.23] [V3.18] a run that fails gives no reply, an expiry is answered too, and threads without a channel have none', async () => {
    const clock = virtualClock()
    const { agent, adapter, states } = answering({
      clock, agent: judged,
      script: ({ prompt, index }) => {
        if (index === 0) return call('await_signal', { ...wait, expected_contacts: ['mum'] })
        const last = JSON.stringify(prompt.at(-1))
        if (last.includes('exhausted')) throw new Error('down')
        return last.includes('expired') ? 'No parcel came.' : 'Fine.'
      },
    })
    await adapter.deliver(said('1', 'Tell me when the parcel comes.'))
    await soon(states).toEqual(['sent Fine.'])
    await agent.awaitSignal({ description: 'x', expected_channels: ['sms'], expires_in_minutes: 1 }, { threadId: 'plain', resourceId: 'ada' })
    await clock.advance(3_700_000)
    await soon(states).toEqual(['sent Fine.', 'sent No parcel came.'])
  })

  it('[V3.23] goes to the sender that asked, also where another one wrote to the thread since; one of the program to the last one', async () => {
    const { agent, adapter, sent, states } = answering({
      agent: judged, channel: { threadId: () => 'shared' },
      script: ({ prompt, index }) => (index === 0 ? call('await_signal', { description: 'a parcel', expected_contacts: ['mum'] }) : JSON.stringify(prompt.at(-1)).includes('<watch') ? 'It is over.' : 'Fine.'),
    })
    await adapter.deliver(said('1', 'Tell me when the parcel comes.', inRoom))
    await soon(states).toEqual(['sent Fine.'])
    await adapter.deliver(said('2', 'What is new?', { sender: { address: '+15550666', verified: true }, conversation: 'elsewhere' }))
    await soon(states).toEqual(['sent Fine.', 'sent Fine.'])
    const { watches: [watch] } = await agent.listWatches()
    await agent.cancelWatch({ id: watch?.id ?? '' })
    await soon(() => sent.length).toBe(3)
    const { id } = await agent.awaitSignal({ description: 'x', expected_channels: ['sms'] }, { threadId: 'shared', resourceId: 'ada' })
    await agent.cancelWatch({ id })
    await soon(() => sent.length).toBe(4)
    expect(sent.map(({ to, conversation, text }) => [to, conversation, text])).toEqual([
      ['+15550100', 'room', 'Fine.'], ['+15550666', 'elsewhere', 'Fine.'], ['+15550100', 'room', 'It is over.'], ['+15550666', 'elsewhere', 'It is over.'],
    ])
  })

  it('[V3.23] [V3.16] the next process sends what one that closed had asked for: one run, one reply', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'heed-watch-answers-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const [file, held] = [join(folder, 'one.db'), gate()]
    const first = answering({
      file, agent: judged,
      script: async ({ index }) => {
        if (index === 2) await held.promise
        return asksToWait[Math.min(index, 2)] ?? ''
      },
    })
    await first.adapter.deliver(said('1', 'Tell me when the parcel comes.', inRoom))
    await soon(first.states).toEqual(['sent I will tell you.'])
    await first.adapter.deliver({ ...said('2', 'The parcel is here', { sender: { address: '+15550199', verified: true } }), automatic: true })
    await soon(async () => (await first.replies())[2]?.state).toBe('asked')
    const closed = first.heed.close()
    held.open()
    await closed
    const next = answering({ file, agent: judged, script: () => 'It is here at last.' })
    await next.heed.start()
    await soon(async () => (await next.states())[2]).toMatch(/^sent /)
    expect([first.sent.length + next.sent.length, new Set([...first.sent, ...next.sent].map(({ idempotencyKey }) => idempotencyKey)).size]).toEqual([2, 2])
  })

  it('[V4.18] with a policy about a category, a message whose annotator fails is answered when that answers, and denied if it never does', async () => {
    const clock = virtualClock()
    const rule = 'forbid(principal, action == Policy::Action::"receive_message", resource) when { context.categories.contains("payroll") };'
    const annotator = scriptedModel(({ prompt, index }) => {
      if (index < 8 || JSON.stringify(prompt).includes('POISON')) throw new Error('down')
      return call('annotate_message', { categories: [] })
    })
    const policies = new CedarPolicies({ policies: { rule }, logger: silentLogger })
    // The virtual clock would pass the deadline of policies while the package is loaded.
    await policies.load('ada')
    const { adapter, states, model } = answering({ clock, channel: { annotator }, policies })
    await adapter.deliver(said('1', 'Are you there?', inRoom), said('2', 'POISON', { conversation: 'elsewhere' }))
    await clock.advance(8_000)
    expect([await states(), model.callCount]).toEqual([['received', 'received'], 0])
    await clock.advance(600_000)
    await soon(states).toEqual(['sent Fine.', 'received'])
    await clock.advance(3_600_000)
    await soon(states).toEqual(['sent Fine.', 'none denied'])
    expect(model.callCount).toBe(1)
  })

  it('[V3.23] [V3.15] never goes to the sender of a message that was denied', async () => {
    const denyOther = 'forbid(principal, action == Policy::Action::"receive_message", resource) unless { resource has sender };'
    const { agent, adapter, sent, states } = answering({
      script: asksToWait, agent: judged, channel: { threadId: () => 'shared' }, policies: new CedarPolicies({ policies: { denyOther }, logger: silentLogger }),
    })
    await adapter.deliver(said('1', 'Tell me when the parcel comes.', inRoom))
    await soon(states).toEqual(['sent I will tell you.'])
    await adapter.deliver(said('2', 'I am nobody.', { sender: { address: '+15550666', verified: true }, conversation: 'elsewhere' }))
    await soon(states).toEqual(['sent I will tell you.', 'none denied'])
    const { watches: [watch] } = await agent.listWatches()
    await agent.cancelWatch({ id: watch?.id ?? '' })
    await soon(states).toEqual(['sent I will tell you.', 'none denied', 'sent Your parcel is here.'])
    expect(sent.map(({ conversation }) => conversation)).toEqual(['room', 'room'])
  })

  it('[V3.23] [V3.20] ends with its thread, and stays with the resource that asked when the thread is given away', async () => {
    const storage = new InMemoryStore()
    const { agent, adapter, sent, states, replies } = answering({ script: ({ index }) => asksToWait[Math.min(index, 2)] ?? '', agent: judged, storage })
    await adapter.deliver(said('1', 'Tell me when the parcel comes.', inRoom))
    await soon(states).toEqual(['sent I will tell you.'])
    const threadId = (await replies())[0]?.threadId ?? ''
    await new Memory({ storage }).transferThread({ threadId, resourceId: 'bob', from: 'ada' })
    await soon(async () => (await agent.listWatches()).watches[0]?.reason).toBe('cancelled')
    await soon(states).toEqual(['sent I will tell you.', 'none thread_forbidden'])
    expect(sent).toHaveLength(1)
  })
})
