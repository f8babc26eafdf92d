import type { MemoryClient } from 'heed/client'
import { useLive } from '../app/live.tsx'
import { useQuery, type Query } from '../app/query.ts'
import { useSession } from '../app/session.tsx'

type ThreadList = Awaited<ReturnType<MemoryClient['listThreads']>>
export type ThreadItem = ThreadList['threads'][number]

/** How often lists are read again whose changes nothing announces. */
export const listMs = 3_000

/** The threads that changed last, first. */
export function useThreads({ perPage, page = 0, resourceId }: { perPage: number; page?: number; resourceId?: string }): Query<ThreadList> {
  const { client } = useSession()
  return useQuery(
    `threads ${perPage} ${page} ${resourceId ?? ''}`,
    () =>
      client.memory().listThreads({
        perPage,
        page,
        orderBy: { field: 'updatedAt', direction: 'DESC' },
        ...(resourceId === undefined ? {} : { resourceId }),
      }),
    useLive(),
  )
}
