import { useEffect, useMemo, useSyncExternalStore } from 'react'
import { checkNames } from '../../base/arguments.ts'
import type { AgentClient } from '../agent.ts'
import type { ClientOptions } from '../connection.ts'
import { checkPage } from '../fields.ts'
import { HeedClient } from '../index.ts'
import { WatchedThread, type WatchedState } from '../view/watched-thread.ts'

/** The thread that a component shows. */
export interface UseThreadOptions {
  threadId: string
  resourceId?: string
  /** The agent that receives messages: its id, with a `client`, or the agent itself. */
  agent: string | AgentClient
  client?: HeedClient | ClientOptions
}

/** The state of a thread, and what a page can do with it. */
export interface Thread extends WatchedState {
  /** Shows the message at once; resolves when it is stored. One that could not be sent stays, with `metadata.sendError`. */
  send: WatchedThread['send']
  queue: WatchedThread['queue']
  /** Sends a message again that could not be sent. */
  retry: WatchedThread['retry']
  /** Removes a message that could not be sent. */
  discard: WatchedThread['discard']
  cancelQueued: WatchedThread['cancelQueued']
  reorderQueued: WatchedThread['reorderQueued']
  approve: WatchedThread['approve']
  decline: WatchedThread['decline']
  /** Gives a suspended tool the data that it waits for. */
  resume: WatchedThread['resume']
  abort: WatchedThread['abort']
  /** Loads the next page of older messages. `hasOlder`: there is one. */
  loadOlder: WatchedThread['loadOlder']
}

/**
 * A thread in a React component: its messages as they are written, its queue and approvals, and the actions on it. After a reload it
 * begins with a snapshot and continues live.
 */
export function useThread(options: UseThreadOptions): Thread {
  checkNames('useThread()', options, ['threadId', 'resourceId', 'agent', 'client'])
  const { threadId, resourceId, agent, client } = options
  if (typeof agent !== 'string') checkPage('useThread()', { agent })
  const remote = typeof agent === 'string' ? clientOf(client).getAgent(agent) : agent
  // Components may create the client and agent in every render: only another server or other headers make it another thread.
  const watched = useMemo(
    () => new WatchedThread(remote, { threadId, ...(resourceId === undefined ? {} : { resourceId }) }),
    [remote.id, remote.identity, threadId, resourceId],
  )
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

export { WatchedThread, type WatchedState } from '../view/watched-thread.ts'
export type { ThreadView, WaitingApproval } from '../view/thread-view.ts'
