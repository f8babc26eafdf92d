import { useMemo } from 'react'
import type { AgentClient, ParkedRun } from 'heed/client'
import { useLive } from '../app/live.tsx'
import { useQuery } from '../app/query.ts'
import { useSession } from '../app/session.tsx'

export type SuspendedRun = Awaited<ReturnType<AgentClient['listSuspendedRuns']>>['runs'][number]

interface Attention {
  suspended: readonly SuspendedRun[]
  parked: readonly ParkedRun[]
  total: number
  error: unknown
  isLoading: boolean
  reload: () => void
}

/** The suspended calls and the parked runs of all agents: a person has to decide about them. */
export function useAttention(): Attention {
  const { client, agents } = useSession()
  const ids = useMemo(() => agents.map(({ id }) => id), [agents])
  const { data, error, isLoading, reload } = useQuery(
    `attention ${ids.join(' ')}`,
    async () => {
      const all = await Promise.all(
        ids.map(async (id) => {
          const agent = client.getAgent(id)
          const [suspended, parked] = await Promise.all([agent.listSuspendedRuns({ perPage: 50 }), agent.listParkedRuns({ perPage: 50 })])
          return { suspended: suspended.runs, parked: parked.runs }
        }),
      )
      return { suspended: all.flatMap((one) => one.suspended), parked: all.flatMap((one) => one.parked) }
    },
    useLive(),
  )
  const { suspended = [], parked = [] } = data ?? {}
  const calls = suspended.reduce((sum, run) => sum + run.toolCalls.length, 0)
  return { suspended, parked, total: calls + parked.length, error, isLoading, reload }
}
