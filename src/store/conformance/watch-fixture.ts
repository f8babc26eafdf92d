import assert from 'node:assert/strict'
import type { Verdict } from '../../watch/machine.ts'
import type { DueClaim } from '../contract/notifications.ts'
import type { CandidateState, ClaimedCandidate, NewInbound, NewWatch, WatchStore } from '../contract/watches.ts'

/** Gives the suite a new store of watches, empty and open. The harness closes it after the case. */
export interface WatchHarness {
  store(): Promise<WatchStore>
  /** A second connection to the database of `store`, as for `StoreHarness`. */
  another?(store: WatchStore): Promise<WatchStore>
}

export const now = 1_700_000_000_000
export const hour = 3_600_000

interface Criteria {
  categories?: string[]
  channels?: string[]
  contacts?: string[]
}

type WatchChange = Partial<Omit<NewWatch, 'criteria'>> & Criteria

export function planned(id: string, { categories = [], channels = [], contacts = [], ...more }: WatchChange = {}): NewWatch {
  const isEmpty = channels.length + categories.length + contacts.length === 0
  const criteria = { categories, channels: isEmpty ? ['sms'] : channels, contacts }
  return {
    id, resourceId: 'resource-1', threadId: 'thread-1', agentId: 'agent-1', description: 'Wait for the code.', criteria, mode: 'once',
    exclusive: false, mayEnd: false, expiresAt: now + hour, maxEvaluations: 50, since: now - 60_000, threadCreatedAt: now - hour,
    limit: 100, now, ...more,
  }
}

export function inbound(providerId: string, more: Partial<NewInbound> = {}): NewInbound {
  return {
    id: `inbound-${more.channelId ?? 'phone'}-${providerId}`, resourceId: 'resource-1', channelId: 'phone', kind: 'sms', providerId,
    sender: { address: '+15550001', verified: true }, content: { text: 'Your code is 123456.' }, now, ...more,
  }
}

export const claim: DueClaim = { now: now + 10, until: now + 1_000, limit: 100, agentIds: ['agent-1'] }
export const match: Verdict = { action: 'match', value: '123456' }

export async function annotate(store: WatchStore, seq: number, ...categories: string[]): Promise<void> {
  assert.equal(await store.annotateInbound({ seq, categories, now }), true)
}

export async function add(store: WatchStore, ...inbounds: NewInbound[]): Promise<number[]> {
  return (await store.addInbounds(inbounds)).map(({ inbound: { seq } }) => seq)
}

export async function candidates(store: WatchStore, watchId: string): Promise<Array<[number, CandidateState]>> {
  return (await store.listCandidates({ watchId, limit: 1_000 })).candidates.map(({ seq, state }) => [seq, state])
}

export async function settle(
  store: WatchStore, { watch, inbound: { seq }, attempt }: ClaimedCandidate, verdict: Verdict, at = now + 20,
): Promise<boolean> {
  return store.settleCandidate({ watchId: watch.id, seq, attempt, verdict, now: at })
}

/** Claims one candidate and settles it. */
export async function judge(store: WatchStore, verdict: Verdict, at = now + 10): Promise<void> {
  const [claimed] = await store.claimCandidates({ ...claim, now: at, until: at + 1_000, limit: 1 })
  assert.ok(claimed, 'a candidate is due')
  assert.equal(await settle(store, claimed, verdict, at), true)
}

/** Claims the deliveries that are due, and confirms them. */
export async function delivered(store: WatchStore, at = now + hour * 2): Promise<Array<[string, string, unknown]>> {
  const deliveries = await store.claimDeliveries({ ...claim, now: at, until: at + 1_000 })
  for (const { id } of deliveries) await store.confirmDelivery({ id, now: at })
  return deliveries.map(({ id, reason, value }) => [id, reason, value])
}
