import { AsyncLocalStorage } from 'node:async_hooks'
import { HeedError } from '../../base/errors.ts'

/** What is stored of one resource, or of all. `bytes`: of messages, pending signals, notifications, metadata, working memory. */
export interface Usage {
  threads: number
  bytes: number
}

/**
 * The most that may be stored after a write. A store checks it in the transaction of the write, so that writes which arrive together,
 * also from several processes, do not exceed it; a write that would is rejected with `quota_exceeded` and stores nothing. Child threads,
 * and what a run writes, are counted and not rejected: a run that has begun is not cut off.
 */
export interface Quota {
  /** Of the resource that the write belongs to. */
  resource?: QuotaLimits
  /** Of all resources together. */
  all?: QuotaLimits
}

/** `schedules`: that are not done. `watches`: that are open. */
export type QuotaLimits = Partial<Usage> & { schedules?: number; watches?: number }

/** What a write adds, at least. */
export type Added = QuotaLimits

/** Throws `quota_exceeded` if what is used would exceed the quota. */
export function checkQuota(part: 'resource' | 'all', limits: QuotaLimits | undefined, used: Added, added: Added): void {
  if (!limits) return
  for (const name of ['threads', 'bytes', 'schedules', 'watches'] as const) {
    const limit = limits[name]
    const more = added[name] ?? 0
    if (limit === undefined || more === 0 || (used[name] ?? 0) + more <= limit) continue
    throw quotaExceeded(name, part, limit)
  }
}

const remedies = {
  threads: 'Delete threads that are not needed',
  bytes: 'Delete threads or messages that are not needed',
  schedules: 'Remove schedules that are not needed',
  watches: 'Cancel watches that are not needed',
}

function quotaExceeded(name: keyof typeof remedies, part: 'resource' | 'all', limit: number): HeedError {
  const whose = part === 'resource' ? 'a resource' : 'this server'
  const counted = name === 'watches' ? 'open watches' : name
  const message = `The limit of ${whose} is ${limit} ${counted}. Nothing was stored. ${remedies[name]}, or ask the operator for more.`
  return new HeedError('quota_exceeded', message, { details: { quota: name, of: part, limit } })
}

interface QuotaScope {
  readonly quota: Quota
  /** The request was answered: what goes on in its context is work of the server. */
  ended: boolean
}

const scopes = new AsyncLocalStorage<QuotaScope>()

/** Calls `work` with a quota for what it writes until its promise settles. */
export async function withQuota<Result>(quota: Quota, work: () => Result | Promise<Result>): Promise<Result> {
  const scope: QuotaScope = { quota, ended: false }
  try {
    return await scopes.run(scope, work)
  } finally {
    scope.ended = true
  }
}

/** The quota of the caller whose request is being handled, as a part of a write; nothing where no quota applies. */
export function callerQuota(): { quota?: Quota } {
  const scope = scopes.getStore()
  return scope && !scope.ended ? { quota: scope.quota } : {}
}
