import type { CandidateRecord, UndeliveredRecord, WatchRecord, WatchStore } from '../store/contract/watches.ts'

/** A watch with the messages that were considered. */
export interface WatchDetails extends WatchRecord {
  remainingEvaluations: number
  /** 0 once it has ended. */
  remainingMs: number
  candidates: CandidateRecord[]
  moreCandidates: boolean
  /** What its thread has not received, the first hundred: `failed` where the thread has another message under the id of the signal. */
  undelivered: UndeliveredRecord[]
}

/** Candidates, and signals that are not delivered. */
const page = 100

export async function detailsOf(store: WatchStore, watch: WatchRecord, now: number): Promise<WatchDetails> {
  const { candidates, more } = await store.listCandidates({ watchId: watch.id, limit: page })
  const isOpen = watch.state === 'open'
  return {
    ...watch,
    remainingEvaluations: isOpen ? watch.maxEvaluations - watch.evaluations : 0,
    remainingMs: isOpen ? Math.max(0, watch.expiresAt.getTime() - now) : 0,
    candidates,
    moreCandidates: more,
    undelivered: await store.listUndelivered({ watchId: watch.id, limit: page }),
  }
}
