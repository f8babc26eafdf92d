import { checkNames } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import type { Conversations, PrunePolicy, Pruned } from './contract/messages.ts'
import type { WatchStore } from './contract/watches.ts'

/** A duration: milliseconds, or a number with its unit. */
export type Age = number | `${number}${'s' | 'm' | 'h' | 'd' | 'w'}`

/** How long records are kept. A kind that is not named is kept forever. */
export interface Retention {
  /** Idle threads, from their last activity. */
  threads?: Age
  /** Messages of threads that are kept. */
  messages?: Age
  /** Signals in a final state and ended runs. A send that is repeated after this time is a new one. */
  records?: Age
  /**
   * Watches, from their end, and messages of channels, from their arrival. A message that its provider repeats after this time is a new
   * one; those that an open watch considers are kept.
   */
  watches?: Age
}

/** What is removed, and when to stop. */
export interface PruneOptions {
  /** Replaces the storage's own. */
  retention?: Retention
  now?: number
  /** Stops between two transactions. */
  signal?: AbortSignal
  /** Called after each transaction, so that the caller can remove what it stores elsewhere for these records, such as vectors. */
  onPruned?(gone: Pick<Pruned, 'threadIds' | 'messages'>): void | Promise<void>
}

/** How much was removed. */
export interface PruneResult {
  threads: number
  messages: number
  records: number
  /** Watches and messages of channels, where their retention is set. */
  watches?: number
}

const units = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }
const kinds: readonly string[] = ['threads', 'messages', 'records', 'watches']
/** The limit of one transaction; other writes may run between two. */
const recordsPerTransaction = 200

/** Removes what `retention` no longer keeps, in small transactions. */
export async function pruneStore(
  store: Pick<Conversations, 'pruneSome'>, watches: PrunedWatches | undefined, options: PruneOptions,
): Promise<PruneResult> {
  checkNames('prune()', options, ['retention', 'now', 'signal', 'onPruned'])
  const { retention, now = Date.now(), signal, onPruned } = options
  checkRetention(retention)
  const result: PruneResult = { threads: 0, messages: 0, records: 0 }
  const policy = prunePolicy(retention, now)
  for (let after: number | undefined = 0; after !== undefined;) {
    signal?.throwIfAborted()
    const { threadIds, messages, records, next }: Pruned = await store.pruneSome({ ...policy, after })
    result.threads += threadIds.length
    result.messages += messages.length
    result.records += records
    if (threadIds.length > 0 || messages.length > 0) await onPruned?.({ threadIds, messages })
    after = next
  }
  if (retention.watches === undefined || !watches) return result
  const before = now - parseAge(retention.watches)
  let removed = 0
  for (let some = -1; some !== 0; removed += some) {
    signal?.throwIfAborted()
    some = await pruneWatches(watches, before)
  }
  return { ...result, watches: removed }
}

type PrunedWatches = Pick<WatchStore, 'open' | 'pruneWatches'>

/** Removes some watches that ended, and messages of channels that were stored, before this time. Returns how many. */
async function pruneWatches(watches: PrunedWatches, before: number): Promise<number> {
  await watches.open()
  return watches.pruneWatches({ before, limit: recordsPerTransaction })
}

/** One transaction of the retention of watches at this time. Returns how many it removed. */
export async function pruneSomeWatches(watches: PrunedWatches, { watches: age }: Retention, now: number): Promise<number> {
  return age === undefined ? 0 : pruneWatches(watches, now - parseAge(age))
}

/** The policy for one transaction that applies a retention at this time. */
export function prunePolicy({ threads, messages, records }: Retention, now: number): PrunePolicy {
  return {
    ...(threads !== undefined && { threadsBefore: now - parseAge(threads) }),
    ...(messages !== undefined && { messagesBefore: now - parseAge(messages) }),
    ...(records !== undefined && { recordsBefore: now - parseAge(records) }),
    limit: recordsPerTransaction,
  }
}

/** The retention of the first of these stores that has one. */
export function findRetention(...stores: readonly object[]): Retention | undefined {
  for (const store of stores) {
    if (!('retention' in store) || store.retention === undefined) continue
    const retention = store.retention as Retention
    checkRetention(retention)
    return retention
  }
  return undefined
}

/** Rejects an invalid retention, when a storage is constructed and before records are removed. */
export function checkRetention(retention: Retention | undefined): asserts retention is Retention {
  if (typeof retention !== 'object' || retention === null) {
    throw new HeedError('invalid_argument', "retention is missing. Name what is kept and for how long: { messages: '90d' }.", {
      details: { option: 'retention' },
    })
  }
  for (const [name, age] of Object.entries(retention)) {
    if (!kinds.includes(name)) {
      throw new HeedError('unsupported_option', `retention has no '${name}'. Known: ${kinds.join(', ')}.`, {
        details: { option: `retention.${name}` },
      })
    }
    if (age !== undefined) parseAge(age, name)
  }
}

/** The duration in milliseconds. */
function parseAge(age: Age, name = 'age'): number {
  const [, count, unit] = typeof age === 'string' ? (/^(\d+(?:\.\d+)?)([smhdw])$/.exec(age) ?? []) : []
  const milliseconds = typeof age === 'number' ? age : count === undefined ? Number.NaN : Number(count) * units[unit as keyof typeof units]
  if (milliseconds >= 0 && Number.isFinite(milliseconds)) return milliseconds
  throw new HeedError('invalid_argument', `retention.${name} must be milliseconds, or a number with s, m, h, d or w: '90d'.`, {
    details: { option: `retention.${name}` },
  })
}
