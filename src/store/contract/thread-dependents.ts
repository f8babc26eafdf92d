import { notificationStoreOf, scheduleStoreOf, subscriptionStoreOf, threadStoreOf, type Storage } from './storage.ts'

/** What hangs on threads and may be in a database of its own. Both may be asked again: what is done is done. */
export interface Belongings {
  /** Removes all that these threads have here; with `resourceId`, what is that resource's. */
  forgetThreads(threadIds: readonly string[], resourceId?: string): Promise<void>
  /** Gives what this thread has here to another resource. */
  giveThread(threadId: string, resourceId: string): Promise<void>
}

/** The places of a storage where threads have belongings apart from them. Where all is one database, its store sees to them itself. */
export async function belongingsOf(storage: Storage): Promise<Belongings[]> {
  const threads = await threadStoreOf(storage)
  if (threads === storage) return []
  const own = 'getStore' in threads ? (threads as Storage) : undefined
  const places: Belongings[] = []
  for (const find of [notificationStoreOf, scheduleStoreOf, subscriptionStoreOf]) {
    const place = await find(storage)
    if (!place || (own && (await find(own)) === place)) continue
    await place.open()
    places.push(place)
  }
  return places
}
