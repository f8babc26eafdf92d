import assert from 'node:assert/strict'
import type { NewReply, ReplyRecord, ReplyStep } from '../contract/replies.ts'
import type { InboundClaim, NewInbound, WatchStore } from '../contract/watches.ts'
import { rounds } from './writers/race.ts'
import { planned } from './watch-fixture.ts'
import type { WatchCase } from './watches.ts'
import type { WatchWriterCase } from './writers/watches.ts'

const now = 1_700_000_000_000
const claim: InboundClaim = { channelIds: ['phone'], now: now + 10, until: now + 1_000, limit: 100 }
const error = { code: 'provider_error', status: 503, maybeSent: true }

function message(providerId: string, reply: Partial<NewReply> = {}, more: Partial<NewInbound> = {}): NewInbound {
  return {
    id: `${more.channelId ?? 'phone'}-${providerId}`, resourceId: 'resource-1', channelId: 'phone', kind: 'sms', providerId,
    sender: { address: '+15550001', verified: true }, conversation: 'room', content: { text: 'Are you there?' }, now,
    reply: { agentId: 'agent-1', threadId: 'thread-1', ...reply }, ...more,
  }
}

/** Stores messages and annotates them. */
async function receive(store: WatchStore, ...messages: NewInbound[]): Promise<void> {
  for (const { inbound: { seq } } of await store.addInbounds(messages)) await store.annotateInbound({ seq, categories: [], now })
}

async function states(store: WatchStore): Promise<string[]> {
  return (await store.listReplies({ limit: 100 })).replies.map(({ state }) => state)
}

/** Claims the one reply that is due, and settles it. */
async function settle(store: WatchStore, step: ReplyStep, at = now + 10): Promise<ReplyRecord> {
  const [claimed, ...others] = await store.claimReplies({ ...claim, now: at, until: at + 1_000 })
  assert.ok(claimed && others.length === 0, 'one reply is due')
  assert.equal(await store.settleReply({ id: claimed.reply.id, claim: claimed.claim, step, now: at }), true)
  const { reply: { id } } = claimed
  return (await store.getReply({ id })) as ReplyRecord
}

const asked: ReplyStep = { type: 'ask', checkAt: now + 20 }

/** Part of `watchConformance`. */
export const replyCases: WatchCase[] = [
  {
    name: '[V3.13] a message is stored with its reply, once; a program’s gets none, and one of a channel that only classifies has none',
    async run({ store: open }) {
      const store = await open()
      const quiet = message('quiet')
      delete quiet.reply
      await receive(store, message('a'), message('a'), message('bot', { automatic: true }), quiet)
      const { replies } = await store.listReplies({ limit: 10 })
      assert.deepEqual(replies.map(({ id, inboundId, state, reason }) => [id, inboundId, state, reason]), [
        ['reply:phone-a', 'phone-a', 'received', undefined], ['reply:phone-bot', 'phone-bot', 'none', 'automatic'],
      ])
      const [claimed] = await store.claimReplies(claim)
      assert.deepEqual([claimed?.inbound.id, claimed?.inbound.content.text, claimed?.inbound.conversation, claimed?.reply.threadId], [
        'phone-a', 'Are you there?', 'room', 'thread-1',
      ])
    },
  },
  {
    name: '[V3.13] messages of a channel are asked in the order of their thread, each when it is annotated and those before it are asked',
    async run({ store: open }) {
      const store = await open()
      const added = await store.addInbounds([message('a'), message('b'), message('c'), message('other', { threadId: 'thread-2' })])
      const [a = 0, b = 0, c = 0, other = 0] = added.map(({ inbound: { seq } }) => seq)
      const due = async () => {
        const claimed = await store.claimReplies(claim)
        return claimed.map(({ reply, inbound: { seq }, claim: number }) => ({ ...reply, seq, number }))
      }
      const settled = (id = '', number = 0, step: ReplyStep) => store.settleReply({ id, claim: number, step, now })
      await store.annotateInbound({ seq: b, categories: [], now })
      assert.equal(await store.nextDue([], [], ['phone']), undefined)
      // Another channel writes to the same thread.
      await receive(store, message('beside', {}, { channelId: 'desk' }))
      assert.equal(await store.nextDue([], [], ['desk']), now)
      await store.annotateInbound({ seq: other, categories: [], now })
      assert.equal(await store.nextDue([], [], ['phone']), now)
      assert.deepEqual((await due()).map(({ seq }) => seq), [other])
      await store.annotateInbound({ seq: a, categories: [], now })
      const [first] = await due()
      assert.deepEqual([first?.seq, await due()], [a, []])
      assert.equal(await settled(first?.id, first?.number, { ...asked, checkAt: now + 5_000 }), true)
      const [second] = await due()
      assert.equal(second?.seq, b)
      assert.equal(await settled(second?.id, second?.number, { type: 'end', reason: 'denied', policies: 'no-sms' }), true)
      assert.deepEqual(await due(), [])
      await store.annotateInbound({ seq: c, categories: [], now })
      assert.deepEqual((await due()).map(({ seq }) => seq), [c])
      assert.deepEqual((await store.getReply({ id: second?.id ?? '' }))?.policies, 'no-sms')
    },
  },
  {
    name: '[V3.16] a reply goes from the message to the sent text, with one text and one id, and is over then',
    async run({ store: open }) {
      const store = await open()
      await receive(store, message('a'))
      assert.deepEqual((await settle(store, asked)).state, 'asked')
      const pending = await settle(store, { type: 'answer', text: 'Yes.', truncated: true }, now + 20)
      assert.deepEqual([pending.state, pending.text, pending.truncated, pending.attempts], ['pending', 'Yes.', true, 0])
      const failed = await settle(store, { type: 'defer', dueAt: now + 50, error }, now + 30)
      assert.deepEqual([failed.state, failed.text, failed.attempts, failed.error], ['pending', 'Yes.', 1, error])
      assert.deepEqual(failed.dueAt, new Date(now + 50))
      assert.deepEqual(await store.claimReplies({ ...claim, now: now + 49 }), [])
      const [again] = await store.claimReplies({ ...claim, now: now + 50, until: now + 1_000 })
      assert.deepEqual([again?.reply.id, again?.reply.text, again?.reply.attempts], ['reply:phone-a', 'Yes.', 2])
      const late = { id: 'reply:phone-a', claim: again?.claim ?? 0, now: now + 60 }
      assert.equal(await store.settleReply({ ...late, step: { type: 'answer', text: 'No.' } }), false)
      assert.equal(await store.settleReply({ ...late, step: { type: 'send', providerId: 'SM1' } }), true)
      assert.equal(await store.settleReply({ ...late, step: { type: 'defer', dueAt: now } }), false)
      const sent = await store.getReply({ id: 'reply:phone-a', resourceId: 'resource-1' })
      assert.deepEqual([sent?.state, sent?.text, sent?.providerId, sent?.error], ['sent', 'Yes.', 'SM1', undefined])
      assert.deepEqual(sent?.settledAt, new Date(now + 60))
      assert.equal(await store.nextDue([], [], ['phone']), undefined)
      assert.equal(await store.getReply({ id: 'reply:phone-a', resourceId: 'resource-2' }), null)
    },
  },
  {
    name: '[V3.16] a reply is claimed by one, again when its claim has ended, and a settlement of an earlier claim has no effect',
    async run({ store: open }) {
      const store = await open()
      await receive(store, message('a'))
      const [first] = await store.claimReplies(claim)
      assert.deepEqual(await store.claimReplies(claim), [])
      const [again] = await store.claimReplies({ ...claim, now: claim.until, until: claim.until + 1_000 })
      assert.deepEqual([again?.reply.id, again?.reply.attempts], [first?.reply.id, 2])
      const id = first?.reply.id ?? ''
      assert.equal(await store.settleReply({ id, claim: first?.claim ?? 0, step: { type: 'end', reason: 'denied' }, now }), false)
      assert.equal(await store.settleReply({ id, claim: again?.claim ?? 0, step: asked, now }), true)
      // The claim of an `asked` one goes on. The end of a run ends it, so that a check which came too early does not defer the next one.
      await store.wakeReplies({ threadId: 'thread-1', now: now + 15 })
      assert.equal(await store.settleReply({ id, claim: again?.claim ?? 0, step: { type: 'defer', dueAt: now + 9_000 }, now }), false)
      const [checked] = await store.claimReplies({ ...claim, now: now + 15 })
      assert.equal(checked?.reply.state, 'asked')
      const closing: ReplyStep = { type: 'defer', dueAt: now + 16, uncounted: true }
      assert.equal(await store.settleReply({ id, claim: checked?.claim ?? 0, step: closing, now }), true)
      assert.equal((await store.getReply({ id }))?.attempts, 0)
      await store.wakeReplies({ threadId: 'thread-2', now: now + 12 })
      assert.equal(await store.nextDue([], [], ['phone']), now + 16)
    },
  },
  {
    name: '[V3.17] [V1.27] a reply that is given up is dead until a caller retries it, with its text and new attempts; it is pruned later',
    async run({ store: open }) {
      const store = await open()
      await receive(store, message('a'))
      await settle(store, asked)
      await settle(store, { type: 'answer', text: 'Yes.' }, now + 20)
      const dead = await settle(store, { type: 'give_up', error }, now + 30)
      assert.deepEqual([dead.state, dead.error, dead.dueAt], ['dead', error, undefined])
      assert.deepEqual((await store.listReplies({ state: 'dead', channelId: 'phone', limit: 1 })).replies, [dead])
      assert.deepEqual((await store.listReplies({ state: 'sent', limit: 1 })).replies, [])
      assert.equal(await store.retryReply({ id: dead.id, resourceId: 'resource-2' }, { now: now + 40 }), null)
      const retried = await store.retryReply({ id: dead.id }, { now: now + 40 })
      assert.deepEqual([retried?.state, retried?.text, retried?.attempts, retried?.error], ['pending', 'Yes.', 0, undefined])
      assert.deepEqual(await store.retryReply({ id: dead.id }, { now: now + 90 }), retried)
      assert.equal(await store.pruneWatches({ before: now + 90_000, limit: 10 }), 0, 'it is to be sent')
      assert.deepEqual((await settle(store, { type: 'send' }, now + 40)).state, 'sent')
      assert.equal(await store.pruneWatches({ before: now + 90_000, limit: 10 }), 1)
      assert.equal(await store.getReply({ id: dead.id }), null)
    },
  },
  {
    name: '[V3.19] a message with the provider’s id of a reply that the channel sent is an echo: it is not stored',
    async run({ store: open }) {
      const store = await open()
      await store.registerWatch({
        id: 'w', resourceId: 'resource-1', threadId: 'thread-9', agentId: 'agent-1', description: 'any',
        criteria: { categories: [], channels: ['sms'], contacts: [] }, mode: 'continuous', exclusive: false, mayEnd: false,
        expiresAt: now + 100_000, maxEvaluations: 5, since: now, threadCreatedAt: now, limit: 10, now,
      })
      await receive(store, message('a'))
      await settle(store, asked)
      await settle(store, { type: 'answer', text: 'Yes.' }, now + 20)
      await settle(store, { type: 'send', providerId: 'SM1' }, now + 30)
      assert.deepEqual((await store.addInbounds([message('SM1'), message('b')])).map(({ inbound }) => inbound.id), ['phone-b'])
      assert.equal((await store.addInbounds([message('SM1', {}, { channelId: 'another' })])).length, 1)
      assert.deepEqual((await store.listCandidates({ watchId: 'w', limit: 10 })).candidates.map(({ inboundId }) => inboundId), [
        'phone-a', 'phone-b', 'another-SM1',
      ])
    },
  },
  {
    name: '[V3.19] [V1.1] a message with the text of a reply is no echo in another conversation, of another sender or of another resource',
    async run({ store: open }) {
      const store = await open()
      const { conversation: _, ...direct } = message('a')
      for (const place of [{ channelId: 'rooms', conversation: 'room' }, { channelId: 'direct' }]) {
        const { channelId } = place
        const say = (id: string, more: Partial<NewInbound> = {}): NewInbound => ({
          ...direct, ...place, id: `${channelId}-${id}`, providerId: id, content: { text: 'Yes.' }, now: now + 40,
          reply: { agentId: 'agent-1', threadId: `${channelId}-${id}` }, ...more,
        })
        const others = (when: string) => [
          say(`elsewhere-${when}`, { conversation: 'another room' }),
          say(`theirs-${when}`, { resourceId: 'resource-2' }),
          ...(channelId === 'direct' ? [say(`nobody-${when}`, { sender: { address: '+15550002', verified: true } })] : []),
        ]
        const step = async (next: ReplyStep, at: number, meanwhile: NewInbound[] = []) => {
          const [claimed] = await store.claimReplies({ ...claim, channelIds: [channelId], now: at, until: at + 1_000 })
          await store.addInbounds(meanwhile)
          const due = await store.claimInbounds({ ...claim, channelIds: [channelId], now: now + 40 })
          assert.ok(claimed && (await store.settleReply({ id: claimed.reply.id, claim: claimed.claim, step: next, now: at })))
          return due.map(({ providerId }) => providerId)
        }
        await receive(store, say('first', { content: { text: 'Are you there?' } }))
        await step(asked, now + 10)
        await step({ type: 'answer', text: 'Yes.' }, now + 20)
        const free = await step({ type: 'send' }, now + 30, [...others('during'), say('echo-during')])
        assert.deepEqual(free, ['elsewhere-during', 'theirs-during'], 'they wait for no send')
        await store.addInbounds([...others('after'), say('echo-after')])
        const { replies } = await store.listReplies({ limit: 100, channelId })
        const stored = ['first', ...[...others('during'), ...others('after')].map(({ providerId }) => providerId)]
        assert.deepEqual(replies.map(({ threadId }) => threadId), stored.map((id) => `${channelId}-${id}`))
      }
    },
  },
  {
    name: '[V3.20] the replies of a deleted thread are removed; those of a thread that another resource gets are not answered',
    async run({ store: open }) {
      const store = await open()
      await receive(store, message('a'), message('b', { threadId: 'thread-2' }), message('c', { threadId: 'thread-2' }))
      await store.forgetThreads(['thread-1'], 'resource-2')
      assert.deepEqual(await states(store), ['received', 'received', 'received'])
      await store.forgetThreads(['thread-1'])
      assert.equal(await store.getReply({ id: 'reply:phone-a' }), null)
      await store.giveThread('thread-2', 'resource-2')
      const { replies } = await store.listReplies({ threadId: 'thread-2', resourceId: 'resource-1', limit: 10 })
      assert.deepEqual(replies.map(({ state, reason }) => [state, reason]), [['none', 'thread_forbidden'], ['none', 'thread_forbidden']])
      assert.deepEqual(await store.claimReplies({ ...claim, now: now + 90_000 }), [])
      const page = await store.listReplies({ limit: 1 })
      assert.deepEqual([page.replies.length, page.more], [1, true])
      assert.equal((await store.listReplies({ limit: 1, after: page.replies[0]?.seq ?? 0 })).more, false)
    },
  },
  {
    name: '[V3.23] a delivery to a thread that was given messages has a reply to the last of them, which is asked when it is confirmed',
    async run({ store: open }) {
      const store = await open()
      await receive(store, message('a'), message('b', { automatic: true }), message('c', {}, { conversation: 'other' }))
      await settle(store, asked)
      await settle(store, { type: 'end', reason: 'denied', policies: 'no-sms' })
      for (const [id, more] of Object.entries({ here: {}, apart: { threadId: 'thread-2' }, theirs: { agentId: 'agent-2' } })) {
        await store.registerWatch(planned(id, { channels: ['sms'], ...more }))
        await store.endWatch({ id }, { reason: 'cancelled', now })
      }
      const { replies } = await store.listReplies({ limit: 10 })
      assert.deepEqual(replies.map(({ signalId, inboundId, state }) => [signalId, inboundId, state]), [
        ['phone-a', 'phone-a', 'asked'], ['phone-b', 'phone-b', 'none'], ['phone-c', 'phone-c', 'none'],
        ['watch:here', 'phone-a', 'received'],
      ])
      const sent = await store.claimDeliveries({ now, until: now + 1, limit: 10, agentIds: ['agent-1', 'agent-2'] })
      assert.deepEqual(sent.filter(({ answered }) => answered).map(({ id }) => id), ['watch:here'])
      assert.equal(sent.length, 3)
      const later = { ...claim, now: now + 10_000, until: now + 20_000 }
      assert.deepEqual((await store.claimReplies({ ...later, limit: 1 })).map(({ reply: { signalId } }) => signalId), ['phone-a'])
      assert.deepEqual(await store.claimReplies(later), [])
      for (const { id } of sent) await store.confirmDelivery({ id, now: now + 2 })
      const [reply] = await store.claimReplies(later)
      assert.deepEqual([reply?.reply.id, reply?.reply.state, reply?.inbound.conversation], ['reply:watch:here', 'asked', 'room'])
      const step: ReplyStep = { type: 'answer', text: 'It is here.' }
      assert.equal(await store.settleReply({ id: 'reply:watch:here', claim: reply?.claim ?? 0, step, now: later.now }), true)
      assert.deepEqual((await store.getReply({ id: 'reply:watch:here' }))?.text, 'It is here.')
    },
  },
  {
    name: '[V3.23] the reply of a delivery that fails ends with it, and that of a thread that is deleted or given away is none',
    async run({ store: open }) {
      const store = await open()
      const end = async (id: string) => {
        await store.registerWatch(planned(id, { channels: ['sms'] }))
        await store.endWatch({ id }, { reason: 'cancelled', now })
        return store.getReply({ id: `reply:watch:${id}` })
      }
      await receive(store, message('a'))
      await settle(store, asked)
      assert.equal((await end('failing'))?.state, 'received')
      await store.claimDeliveries({ now, until: now + 1, limit: 10, agentIds: ['agent-1'] })
      await store.deferDelivery({ id: 'watch:failing', error: 'id_taken', now })
      assert.equal((await store.getReply({ id: 'reply:watch:failing' }))?.reason, 'id_taken')
      assert.equal((await end('open'))?.state, 'received')
      await store.registerWatch(planned('given', { channels: ['sms'] }))
      await store.giveThread('thread-1', 'resource-2')
      for (const id of ['open', 'given']) assert.equal((await store.getReply({ id: `reply:watch:${id}` }))?.reason, 'thread_forbidden')
      await store.forgetThreads(['thread-1'])
      assert.deepEqual((await store.listReplies({ limit: 10 })).replies, [])
    },
  },
]

/** Part of `watchWriterConformance`. */
export const replyWriterCases: WatchWriterCase[] = [
  {
    name: '[V3.16] [R1.6] a reply is claimed by one of two',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const own = { channelId: `phone-${nth}` }
      await receive(one, message('a', { threadId: `thread-${nth}` }, own))
      const channelIds = [own.channelId]
      const claims = await together(() => one.claimReplies({ ...claim, channelIds }), () => two.claimReplies({ ...claim, channelIds }))
      assert.equal(claims.flat().length, 1)
    }),
  },
  {
    name: '[V3.13] [R1.6] two messages of a thread that are annotated at once are asked in their order',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const own = { channelId: `phone-${nth}` }
      const thread = { threadId: `thread-${nth}` }
      const added = await one.addInbounds([message('a', thread, own), message('b', thread, own)])
      const [first = 0, second = 0] = added.map(({ inbound: { seq } }) => seq)
      const annotate = (store: WatchStore, seq: number) => store.annotateInbound({ seq, categories: [], now })
      await together(() => annotate(one, second), () => annotate(two, first))
      const due = await one.claimReplies({ ...claim, channelIds: [own.channelId] })
      assert.deepEqual(due.map(({ inbound: { seq } }) => seq), [first])
    }),
  },
  {
    name: '[V3.16] [R1.6] of two settlements of one claim one counts, and the text is that of one',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const own = { channelId: `phone-${nth}` }
      await receive(one, message('a', { threadId: `thread-${nth}` }, own))
      const channelIds = [own.channelId]
      const [claimed] = await one.claimReplies({ ...claim, channelIds })
      const made = { id: claimed?.reply.id ?? '', claim: claimed?.claim ?? 0, now }
      await one.settleReply({ ...made, step: asked })
      const settled = await together(
        () => one.settleReply({ ...made, step: { type: 'answer', text: 'one' } }),
        () => two.settleReply({ ...made, step: { type: 'answer', text: 'two' } }),
      )
      assert.equal(settled.filter(Boolean).length, 1)
      assert.equal((await two.getReply({ id: made.id }))?.text, settled[0] ? 'one' : 'two')
    }),
  },
]
