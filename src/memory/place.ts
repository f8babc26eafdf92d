import type { ThreadStore } from '../store/contract/threads.ts'
import type { Storage } from '../store/contract/storage.ts'

/** Where an agent keeps what its memory is asked for, and whom that concerns. */
export interface MemoryPlace {
  store(): Promise<ThreadStore>
  /** Equal for those who keep their threads in one storage. */
  key(): unknown
  /** By the clock of its Heed. */
  now(): number
  /** Whether its Heed is. */
  closed(): boolean
  /** The store of threads and what stands beside it. */
  storage(): Promise<Storage>
  /** A thread is another's now: those who watch it for its old resource see no more of it. */
  transferred(threadId: string, resourceId: string): void
}
