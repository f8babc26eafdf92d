import type { JSONValue } from '../../base/json.ts'
import type { ThreadStatus } from '../../machine.ts'
import type { InitialWorkingMemory } from './working-memory.ts'

/** A thread as its store returns it. */
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
  /** Written with the thread, if this call creates it. */
  workingMemory?: InitialWorkingMemory
  now: number
}

export interface ThreadQuery {
  resourceId?: string
  metadata?: Record<string, string | number | boolean | null>
  status?: ThreadStatus[]
  /** Clones of this thread. */
  cloneOf?: string
  /** Child threads of this thread; `null`: threads that have no parent. Default: both. */
  parentId?: string | null
  orderBy?: { field: 'createdAt' | 'updatedAt'; direction: 'ASC' | 'DESC' }
  limit: number
  /** Keyset paging: the last thread of the previous page. */
  after?: { at: number; id: string }
  offset?: number
  total?: boolean
}
