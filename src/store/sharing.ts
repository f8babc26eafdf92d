import type { ThreadStore } from './contract/threads.ts'

const users = new WeakMap<ThreadStore, number>()

/** Adds a user to a store that several Heeds may share. */
export function acquireStore(store: ThreadStore): void {
  users.set(store, (users.get(store) ?? 0) + 1)
}

/** Removes a user from a store, and closes it after the last one. */
export async function releaseStore(store: ThreadStore): Promise<void> {
  const left = (users.get(store) ?? 1) - 1
  users.set(store, left)
  if (left === 0) await store.close()
}
