/**
 * Which threads are to have a title and have none yet. Part of `ThreadStore`: a run that ends marks its thread in the same transaction,
 * so that a title comes also when the process goes before it was made.
 */
export interface TitleStore {
  /** Takes marks that are due, oldest first, for `owner` until `until`: nobody else is given them before that. */
  claimTitles(claim: TitleClaim): Promise<WantedTitle[]>
  /** Gives a mark back, to be taken from `dueAt` on; null takes it away. Setting a title does too. */
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
  /** How often the mark was taken, this time included. */
  attempts: number
}
