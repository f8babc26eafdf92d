import type { ThreadStore } from '../contract/threads.ts'

/** How the suite gets at the store it tries. */
export interface StoreHarness {
  /** A fresh one, empty and open. Whoever gives it out closes it after the case. */
  store(): Promise<ThreadStore>
  /** Closes the store and opens its data again. Absent where data doesn't outlive the store. */
  reopen?(store: ThreadStore): Promise<ThreadStore>
}

/** One promise, tried. The ids in brackets are those of the protocol. */
export interface StoreCase {
  name: string
  run(harness: StoreHarness): Promise<void>
}
