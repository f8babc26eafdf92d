/**
 * Marks of threads that need a title. Part of `ThreadStore`: the transaction that ends a run marks its thread, so that the title is
 * generated even if the process ends first.
 */
export interface TitleStore {
  /** Claims marks that are due, oldest first, for `owner` until `until`: no other process gets them before then. */
  claimTitles(claim: TitleClaim): Promise<WantedTitle[]>
  /** Releases a mark, which is due again from `dueAt` on; null removes it. Setting a title removes it too. */
  returnTitle(threadId: string, dueAt: number | null): Promise<void>
}

export interface TitleClaim {
  owner: string
  now: number
  until: number
  limit: number
  agentIds: readonly string[]
}

export interface WantedTitle {
  threadId: string
  /** The agent whose run marked the thread. */
  agentId: string
  /** How often the mark was claimed, this time included. */
  attempts: number
}
