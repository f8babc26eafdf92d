import type { ThreadStore } from './contract/threads.ts'

const users = new WeakMap<ThreadStore, number>()

/** Counts who uses a store: two Heeds may be given the same one. */
export function retain(store: ThreadStore): void {
  users.set(store, (users.get(store) ?? 0) + 1)
}

/** Closes the store when its last user leaves. */
export async function leave(store: ThreadStore): Promise<void> {
  const left = (users.get(store) ?? 1) - 1
  users.set(store, left)
  if (left === 0) await store.close()
}
