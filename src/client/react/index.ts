import { useEffect, useMemo, useSyncExternalStore } from 'react'
import type { AgentClient } from '../agent.ts'
import { HeedClient } from '../index.ts'
import type { ClientOptions } from '../connection.ts'
import { WatchedThread, type WatchedState } from '../view/watched-thread.ts'

export interface UseThreadOptions {
  threadId: string
  resourceId?: string
  /** The agent that answers here: its id with a `client`, or the agent itself. */
  agent: string | AgentClient
  client?: HeedClient | ClientOptions
}

export interface Thread extends WatchedState {
  /** Shown at once, stored when it resolves. */
  send: WatchedThread['send']
  queue: WatchedThread['queue']
  cancelQueued: WatchedThread['cancelQueued']
  reorderQueued: WatchedThread['reorderQueued']
  approve: WatchedThread['approve']
  decline: WatchedThread['decline']
  /** Answers a tool that waits for data. */
  resume: WatchedThread['resume']
  abort: WatchedThread['abort']
  /** Shows older messages, a page at a time, as long as `hasOlder`. */
  loadOlder: WatchedThread['loadOlder']
}

/**
 * A thread on a page: its messages as they are written, what waits, what asks for approval, and everything one can do to it. After a
 * reload it begins with what is there and goes on live.
 */
export function useThread({ threadId, resourceId, agent, client }: UseThreadOptions): Thread {
  const remote = typeof agent === 'string' ? clientOf(client).getAgent(agent) : agent
  // Pages make clients and agents anew at every render: it is another one when it asks elsewhere, or as somebody else.
  const watched = useMemo(() => new WatchedThread(remote, { threadId, ...(resourceId === undefined ? {} : { resourceId }) }), [remote.id, remote.place, threadId, resourceId])
  useEffect(() => {
    watched.agent = remote
  })
  const state = useSyncExternalStore(watched.subscribe, watched.getSnapshot, watched.getSnapshot)
  const actions = useMemo(() => actionsOf(watched), [watched])
  return { ...state, ...actions }
}

function clientOf(client: UseThreadOptions['client']): HeedClient {
  return client instanceof HeedClient ? client : new HeedClient(client ?? { baseUrl: '' })
}

function actionsOf(watched: WatchedThread): Omit<Thread, keyof WatchedState> {
  return {
    send: (...args) => watched.send(...args),
    queue: (...args) => watched.queue(...args),
    cancelQueued: (...args) => watched.cancelQueued(...args),
    reorderQueued: (...args) => watched.reorderQueued(...args),
    approve: (...args) => watched.approve(...args),
    decline: (...args) => watched.decline(...args),
    resume: (...args) => watched.resume(...args),
    abort: (...args) => watched.abort(...args),
    loadOlder: () => watched.loadOlder(),
  }
}

export { WatchedThread, type WatchedState } from '../view/watched-thread.ts'
export type { ThreadView, WaitingApproval } from '../view/thread-view.ts'
