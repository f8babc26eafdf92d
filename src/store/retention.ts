import { HeedError } from '../base/errors.ts'
import type { Conversations, PrunePolicy, Pruned } from './contract/messages.ts'

/** A span of time: milliseconds, or a number with its unit. */
export type Age = number | `${number}${'s' | 'm' | 'h' | 'd' | 'w'}`

/** For how long things are kept. What isn't named is kept for ever. */
export interface Retention {
  /** Idle threads, from when something last happened on them. */
  threads?: Age
  /** Messages of threads that stay. */
  messages?: Age
  /** Settled signals and runs that are over. A send that is repeated later than this is a new one. */
  records?: Age
}

export interface PruneOptions {
  /** In place of the storage's own. */
  retention?: Retention
  now?: number
  /** Stops between two transactions. */
  signal?: AbortSignal
  /** Told after each transaction, so that others can let go of what they hold of it, such as vectors. */
  onPruned?(gone: Pick<Pruned, 'threadIds' | 'messages'>): void | Promise<void>
}

export interface PruneResult {
  threads: number
  messages: number
  records: number
}

const units = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }
const names: readonly string[] = ['threads', 'messages', 'records']
/** With one transaction; others go in between. */
const atOnce = 200

/** Removes what is older than `retention` keeps, in small transactions. */
export async function pruneStore(store: Pick<Conversations, 'pruneSome'>, { retention, now = Date.now(), signal, onPruned }: PruneOptions): Promise<PruneResult> {
  checkRetention(retention)
  const result: PruneResult = { threads: 0, messages: 0, records: 0 }
  const policy = policyOf(retention, now)
  for (let after: number | undefined = 0; after !== undefined;) {
    signal?.throwIfAborted()
    const pruned: Pruned = await store.pruneSome({ ...policy, after })
    result.threads += pruned.threadIds.length
    result.messages += pruned.messages.length
    result.records += pruned.records
    if (pruned.threadIds.length > 0 || pruned.messages.length > 0) await onPruned?.({ threadIds: pruned.threadIds, messages: pruned.messages })
    after = pruned.next
  }
  return result
}

/** What a retention means at this time, for one small transaction. */
export function policyOf({ threads, messages, records }: Retention, now: number): PrunePolicy {
  return {
    ...(threads !== undefined && { threadsBefore: now - millisecondsOf(threads) }),
    ...(messages !== undefined && { messagesBefore: now - millisecondsOf(messages) }),
    ...(records !== undefined && { recordsBefore: now - millisecondsOf(records) }),
    limit: atOnce,
  }
}

/** The first of these that has one. */
export function retentionOf(...stores: readonly object[]): Retention | undefined {
  for (const store of stores) {
    if (!('retention' in store) || store.retention === undefined) continue
    const retention = store.retention as Retention
    checkRetention(retention)
    return retention
  }
  return undefined
}

/** Refuses what can't be meant, when a storage is made and before anything is removed. */
export function checkRetention(retention: Retention | undefined): asserts retention is Retention {
  if (typeof retention !== 'object' || retention === null) {
    throw new HeedError('invalid_argument', "There is no retention. Say what is kept for how long: { messages: '90d' }.", { details: { option: 'retention' } })
  }
  for (const [name, age] of Object.entries(retention)) {
    if (!names.includes(name)) throw new HeedError('unsupported_option', `retention has no '${name}'. Known: ${names.join(', ')}.`, { details: { option: `retention.${name}` } })
    if (age !== undefined) millisecondsOf(age, name)
  }
}

function millisecondsOf(age: Age, name = 'age'): number {
  const [, count, unit] = typeof age === 'string' ? (/^(\d+(?:\.\d+)?)([smhdw])$/.exec(age) ?? []) : []
  const milliseconds = typeof age === 'number' ? age : count === undefined ? Number.NaN : Number(count) * units[unit as keyof typeof units]
  if (milliseconds >= 0 && Number.isFinite(milliseconds)) return milliseconds
  throw new HeedError('invalid_argument', `retention.${name} must be milliseconds, or a number with s, m, h, d or w: '90d'.`, { details: { option: `retention.${name}` } })
}
