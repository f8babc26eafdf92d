import type { JSONValue } from '../../base/json.ts'
import type { ThreadStatus } from '../../machine.ts'
import type { InitialWorkingMemory } from './working-memory.ts'

/** A thread as its store tells of it. */
export interface ThreadRow {
  id: string
  resourceId: string
  title: string
  metadata: Record<string, JSONValue>
  parentId?: string
  createdAt: Date
  updatedAt: Date
  status: ThreadStatus
  epoch: number
  owner?: string
  runId?: string
  agentId?: string
}

export interface NewThread {
  id: string
  resourceId: string
  title?: string
  metadata?: Record<string, JSONValue>
  parentId?: string
  /** Written with the thread, when it is created. */
  workingMemory?: InitialWorkingMemory
  now: number
}

export interface ThreadQuery {
  resourceId?: string
  metadata?: Record<string, string | number | boolean | null>
  status?: ThreadStatus[]
  /** Clones of this thread. */
  cloneOf?: string
  /** Threads below this one, in which agents were asked that it called; `null`: those that are below none. All unless told. */
  parentId?: string | null
  orderBy?: { field: 'createdAt' | 'updatedAt'; direction: 'ASC' | 'DESC' }
  limit: number
  /** Keyset paging: the last thread of the page before. */
  after?: { at: number; id: string }
  offset?: number
  total?: boolean
}
