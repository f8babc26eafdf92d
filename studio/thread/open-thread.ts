import { useEffect, useMemo, useSyncExternalStore } from 'react'
import type { AgentClient } from 'heed/client'
import { WatchedThread, type Thread } from 'heed/react'
import { useAwake } from '../app/awake.ts'

const never = () => () => {}

/** The thread that a page shows, as `useThread()` has it; without a stream while the page is not visible. */
export function useOpenThread(agent: AgentClient, { threadId, resourceId }: { threadId: string; resourceId?: string }): Thread {
  const watched = useMemo(
    () => new WatchedThread(agent, { threadId, ...(resourceId === undefined ? {} : { resourceId }) }),
    [agent.id, agent.identity, threadId, resourceId],
  )
  useEffect(() => {
    watched.agent = agent
  })
  const state = useSyncExternalStore(useAwake() ? watched.subscribe : never, watched.getSnapshot)
  const actions = useMemo(() => actionsOf(watched), [watched])
  return { ...state, ...actions }
}

function actionsOf(watched: WatchedThread): Omit<Thread, keyof ReturnType<WatchedThread['getSnapshot']>> {
  return {
    send: (...args) => watched.send(...args),
    queue: (...args) => watched.queue(...args),
    retry: (...args) => watched.retry(...args),
    discard: (...args) => watched.discard(...args),
    cancelQueued: (...args) => watched.cancelQueued(...args),
    reorderQueued: (...args) => watched.reorderQueued(...args),
    approve: (...args) => watched.approve(...args),
    decline: (...args) => watched.decline(...args),
    resume: (...args) => watched.resume(...args),
    abort: (...args) => watched.abort(...args),
    loadOlder: () => watched.loadOlder(),
  }
}
