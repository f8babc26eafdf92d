/** A store with records that belong to threads, and that may be in another database. Repeating either call has no further effect. */
export interface ThreadDependents {
  /** Removes all records of these threads; with `resourceId`, only those of that resource. */
  forgetThreads(threadIds: readonly string[], resourceId?: string): Promise<void>
  /** Moves the records of this thread to another resource. */
  giveThread(threadId: string, resourceId: string): Promise<void>
}
