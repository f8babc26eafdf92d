import { refused } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import type { NotificationStore } from './notifications.ts'
import type { RecallIndex } from './recall.ts'
import type { ScheduleStore } from './schedules.ts'
import type { SubscriptionStore } from './subscriptions.ts'
import type { ThreadDependents } from './thread-row.ts'
import type { ThreadStore } from './threads.ts'
import type { WatchStore } from './watches.ts'

/** The stores of a storage, by domain. Threads with everything that belongs to them are one domain, always in one database. */
export interface StoreDomains {
  memory: ThreadStore
  notifications: NotificationStore
  schedules: ScheduleStore
  subscriptions: SubscriptionStore
  /** Inbound messages of channels, and the watches that wait for them. */
  watches: WatchStore
  /** In the database of the threads: it indexes their messages. */
  recall: RecallIndex
}

/** A storage that has some or all of the domains. */
export interface DomainStorage {
  getStore<Domain extends keyof StoreDomains>(
    domain: Domain,
  ): StoreDomains[Domain] | undefined | Promise<StoreDomains[Domain] | undefined>
}

/** What a program passes as `storage`: a store of threads, or a storage that has one as its `memory` domain. */
export type Storage = ThreadStore | DomainStorage

/** Identifies the database of a storage: equal for storages on the same database. A storage without a `place` is identified by itself. */
export function storageKey(storage: Storage): unknown {
  return 'place' in storage && typeof storage.place === 'string' ? storage.place : storage
}

const namespaces = new WeakMap<ThreadStore, string>()

/** The namespace in which the runtimes of a store connect to a bus. A store without one gets a generated one. */
export function namespaceOf(store: ThreadStore): string {
  const namespace = store.namespace ?? namespaces.get(store)
  if (namespace !== undefined) return namespace
  const generated = `store:${newId()}`
  namespaces.set(store, generated)
  return generated
}

export function checkStorage(storage: unknown): asserts storage is Storage {
  const isStorage = typeof storage === 'object' && storage !== null && ('accept' in storage || 'getStore' in storage)
  if (!isStorage) throw refused('storage', "a store, such as new LibSQLStore({ url: 'file:./heed.db' }) or new InMemoryStore()")
}

export async function threadStoreOf(storage: Storage): Promise<ThreadStore> {
  const store = 'accept' in storage ? storage : await storage.getStore('memory')
  if (!store) throw new HeedError('invalid_argument', "The storage has no 'memory' domain. Give it one, or a default.")
  return store
}

/** The store of notifications, if the storage has one. */
export async function notificationStoreOf(storage: Storage): Promise<NotificationStore | undefined> {
  return 'getStore' in storage ? storage.getStore('notifications') : undefined
}

/** The store of schedules, if the storage has one. */
export async function scheduleStoreOf(storage: Storage): Promise<ScheduleStore | undefined> {
  return 'getStore' in storage ? storage.getStore('schedules') : undefined
}

/** The index of messages, if the storage has one. */
export async function recallIndexOf(storage: Storage): Promise<RecallIndex | undefined> {
  return 'getStore' in storage ? storage.getStore('recall') : undefined
}

/** The store of subscriptions, if the storage has one. */
export async function subscriptionStoreOf(storage: Storage): Promise<SubscriptionStore | undefined> {
  return 'getStore' in storage ? storage.getStore('subscriptions') : undefined
}

/** The store of watches, if the storage has one. */
export async function watchStoreOf(storage: Storage): Promise<WatchStore | undefined> {
  return 'getStore' in storage ? storage.getStore('watches') : undefined
}

/** The stores of a storage that have records of threads in another database. A thread store updates those in its own database by itself. */
export async function threadDependentsOf(storage: Storage): Promise<ThreadDependents[]> {
  const threads = await threadStoreOf(storage)
  if (threads === storage) return []
  const sameDatabase = 'getStore' in threads ? (threads as Storage) : undefined
  const dependents: ThreadDependents[] = []
  for (const find of [notificationStoreOf, scheduleStoreOf, subscriptionStoreOf, watchStoreOf]) {
    const store = await find(storage)
    if (!store || (sameDatabase && (await find(sameDatabase)) === store)) continue
    await store.open()
    dependents.push(store)
  }
  return dependents
}

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
