import { refused } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import type { ThreadStore } from './threads.ts'
import type { NotificationStore } from './notifications.ts'
import type { ScheduleStore } from './schedules.ts'
import type { RecallIndex } from './recall.ts'
import type { SubscriptionStore } from './subscriptions.ts'

/**
 * What a storage keeps, by domain. Threads with all that belongs to them are one of them and always in one database: see
 * `ThreadStore`.
 */
export interface StoreDomains {
  memory: ThreadStore
  notifications: NotificationStore
  schedules: ScheduleStore
  subscriptions: SubscriptionStore
  /** Where the threads are: it indexes their messages. */
  recall: RecallIndex
}

/** A place that has some of the domains, or all. */
export interface DomainStorage {
  getStore<Domain extends keyof StoreDomains>(domain: Domain): StoreDomains[Domain] | undefined | Promise<StoreDomains[Domain] | undefined>
}

/** What a program passes as `storage`: a store of threads, or something that has one as its `memory` domain. */
export type Storage = ThreadStore | DomainStorage

/**
 * Which place a storage names: storages that name the same one have the same. One that can't say is a place of its own.
 */
export function placeOf(storage: Storage): unknown {
  return 'place' in storage && typeof storage.place === 'string' ? storage.place : storage
}

const namespaces = new WeakMap<ThreadStore, string>()

/** The namespace in which the runtimes of a store connect to a bus. A store that names none has one of its own. */
export function namespaceOf(store: ThreadStore): string {
  const named = store.namespace ?? namespaces.get(store)
  if (named !== undefined) return named
  const made = `store:${newId()}`
  namespaces.set(store, made)
  return made
}

export function checkStorage(storage: unknown): asserts storage is Storage {
  const fits = typeof storage === 'object' && storage !== null && ('accept' in storage || 'getStore' in storage)
  if (!fits) throw refused('storage', "a store, such as new LibSQLStore({ url: 'file:./heed.db' }) or new InMemoryStore()")
}

export async function threadStoreOf(storage: Storage): Promise<ThreadStore> {
  const store = 'accept' in storage ? storage : await storage.getStore('memory')
  if (!store) throw new HeedError('invalid_argument', "The storage has no 'memory' domain. Give it one, or a default.")
  return store
}

/** The inbox of a storage, if it has one. */
export async function notificationStoreOf(storage: Storage): Promise<NotificationStore | undefined> {
  if (!('getStore' in storage)) return undefined
  return storage.getStore('notifications')
}

/** The schedules of a storage, if it keeps any. */
export async function scheduleStoreOf(storage: Storage): Promise<ScheduleStore | undefined> {
  return 'getStore' in storage ? storage.getStore('schedules') : undefined
}

/** What finds messages of a storage by what they say, if it has that. */
export async function recallIndexOf(storage: Storage): Promise<RecallIndex | undefined> {
  if (!('getStore' in storage)) return undefined
  return storage.getStore('recall')
}

/** What the threads of a storage want to hear of, if it keeps that. */
export async function subscriptionStoreOf(storage: Storage): Promise<SubscriptionStore | undefined> {
  return 'getStore' in storage ? storage.getStore('subscriptions') : undefined
}
