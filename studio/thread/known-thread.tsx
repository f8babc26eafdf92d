import type { ReactNode } from 'react'
import { isHeedError } from 'heed/client'
import { useQuery } from '../app/query.ts'
import { usePlace } from '../app/router.tsx'
import { useSession } from '../app/session.tsx'
import { Empty, Failed, Loading } from '../parts/states.tsx'

/** A thread of an address, and the agent that is asked about it. */
export interface KnownThread {
  threadId: string
  resourceId: string | undefined
  agentId: string
  title: string
}

/** Finds the thread of an address. One that does not exist yet has the agent and the resource that the address names. */
export function WithThread({ threadId, children }: { threadId: string; children: (thread: KnownThread) => ReactNode }) {
  const { client, agents } = useSession()
  const { query } = usePlace()
  const row = useQuery(`thread ${threadId}`, () =>
    client
      .memory()
      .getThreadById({ threadId })
      .catch((error: unknown) => {
        if (isHeedError(error) && error.code === 'thread_not_found') return null
        throw error
      }),
  )
  if (row.isLoading) return <Loading rows={6} />
  if (row.error !== undefined)
    return (
      <div className="page">
        <Failed error={row.error} onRetry={row.reload} />
      </div>
    )
  const agentId = query.get('agent') ?? row.data?.agentId ?? agents[0]?.id
  if (agentId === undefined)
    return (
      <Empty title="This server has no agents.">
        <p>Add one to the Heed that it serves.</p>
      </Empty>
    )
  const resourceId = row.data?.resourceId ?? query.get('resource') ?? undefined
  return children({ threadId, resourceId, agentId, title: row.data?.title ?? '' })
}

/** The scope of requests about a thread. */
export function scopeOf({ threadId, resourceId }: KnownThread): { threadId: string; resourceId?: string } {
  return { threadId, ...(resourceId === undefined ? {} : { resourceId }) }
}
