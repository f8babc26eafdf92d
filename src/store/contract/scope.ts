/** The thread that a call addresses. In-process callers may leave out the resource; HTTP never does. */
export interface Scope {
  threadId: string
  resourceId?: string
}

/** Proof of a lease. It becomes stale as soon as another process claims the thread. */
export interface Fence {
  threadId: string
  owner: string
  epoch: number
}
