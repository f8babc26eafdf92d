import type { ThreadStore } from '../contract/threads.ts'

/** How the suite gets at the store it tries. */
export interface StoreHarness {
  /** A fresh one, empty and open. Whoever gives it out closes it after the case. */
  store(): Promise<ThreadStore>
  /** Closes the store and opens its data again. Absent where data doesn't outlive the store. */
  reopen?(store: ThreadStore): Promise<ThreadStore>
  /**
   * Opens a second connection to the database of `store`, with its own transactions, locks and caches, as another process has them.
   * Absent if the database has one connection only, as in memory: the cases for two writers do not apply to it.
   */
  another?(store: ThreadStore): Promise<ThreadStore>
}

/** One promise, tried. The ids in brackets are those of the protocol. */
export interface StoreCase {
  name: string
  run(harness: StoreHarness): Promise<void>
}

/** A harness whose database can be opened twice. */
export type TwoWriters<Harness extends { another?: unknown }> = Harness & { another: NonNullable<Harness['another']> }

/** One promise, tried by two connections at the same time. */
export interface StoreWriterCase {
  name: string
  run(harness: TwoWriters<StoreHarness>): Promise<void>
}
