import type { JSONObject, JSONValue } from '../base/json.ts'
import type { CloneThreadArgs } from '../memory/clones.ts'
import type { RecallArgs, RecalledMessages } from '../memory/recall.ts'
import type { ListThreadsArgs, ThreadList } from '../memory/threads.ts'
import type { AgentMessage } from '../message/read/input.ts'
import type { Message } from '../message/message.ts'
import type { UIMessage } from '../message/ui/ui-message.ts'
import type { WorkingMemoryUpdate, WorkingMemoryVersion } from '../memory/working-memory/access.ts'
import type { UpdateMessagesArgs } from '../memory/writing.ts'
import type { ThreadRow } from '../store/contract/threads.ts'
import type { Connection, OverWire } from './connection.ts'

export interface MemoryScope {
  /** The agent whose memory it is. Defaults to the server's first agent. */
  agentId?: string
  /** The resource whose threads are accessed. Optional if the principal has one resource only. */
  resourceId?: string
}

/** A message that matches a search. */
export interface FoundMessage {
  id: string
  role: string
  content: string
  threadId: string
  createdAt: string
  /** Between 0 and 1. */
  score: number
}

/** The memory of an agent, with the method names of `Memory`. */
export class MemoryClient {
  readonly #connection: Connection
  readonly #scope: MemoryScope

  /** @internal */
  constructor(connection: Connection, scope: MemoryScope) {
    this.#connection = connection
    this.#scope = scope
  }

  /** Its options: history, recall and working memory. */
  async config(): Promise<Record<string, JSONValue>> {
    return (await this.#get<{ config: Record<string, JSONValue> }>('/config')).config
  }

  /** Whether the agent has a memory. */
  async status(): Promise<boolean> {
    return (await this.#get<{ result: boolean }>('/status')).result
  }

  listThreads({ filter, page, perPage, orderBy, cursor }: ListThreadsArgs = {}): Promise<OverWire<ThreadList>> {
    return this.#get('/threads', { metadata: filter?.metadata, page, perPage, orderBy, cursor })
  }

  createThread(thread: { threadId?: string; title?: string; metadata?: Record<string, JSONValue> } = {}): Promise<OverWire<ThreadRow>> {
    return this.#post('/threads', { ...thread, resourceId: this.#scope.resourceId }, thread.threadId !== undefined)
  }

  getThreadById({ threadId }: { threadId: string }): Promise<OverWire<ThreadRow>> {
    return this.#get(threadPath(threadId))
  }

  updateThread({ id, ...patch }: { id: string; title?: string; metadata?: Record<string, JSONValue> }): Promise<OverWire<ThreadRow>> {
    return this.#connection.json(`/memory${threadPath(id)}`, { method: 'PATCH', query: { ...this.#scope }, body: patch, repeatable: true })
  }

  async deleteThread(threadId: string): Promise<void> {
    await this.#connection.json(`/memory${threadPath(threadId)}`, { method: 'DELETE', query: { ...this.#scope } })
  }

  cloneThread(
    { sourceThreadId, ...clone }: Omit<CloneThreadArgs, 'resourceId' | 'readMessages'>,
  ): Promise<{ thread: OverWire<ThreadRow> }> {
    return this.#post(threadPath(sourceThreadId, 'clone'), { ...clone, readMessages: false })
  }

  async listClones(threadId: string): Promise<Array<OverWire<ThreadRow>>> {
    return (await this.#get<{ threads: Array<OverWire<ThreadRow>> }>(threadPath(threadId, 'clones'))).threads
  }

  getSourceThread(threadId: string): Promise<OverWire<ThreadRow>> {
    return this.#get(threadPath(threadId, 'source'))
  }

  async getCloneHistory(threadId: string): Promise<Array<OverWire<ThreadRow>>> {
    return (await this.#get<{ threads: Array<OverWire<ThreadRow>> }>(threadPath(threadId, 'clone-history'))).threads
  }

  transferThread({ threadId, resourceId }: { threadId: string; resourceId: string }): Promise<OverWire<ThreadRow>> {
    return this.#post(threadPath(threadId, 'transfer'), { resourceId })
  }

  /** By default the newest page, in chronological order. A thread that does not exist yet has none. */
  listMessages(
    { threadId, page, perPage, orderBy, include, filter, cursor }:
      Omit<RecallArgs, 'threadId' | 'perPage' | 'resourceId' | 'total'> & { threadId: string; perPage?: number },
  ): Promise<OverWire<RecalledMessages> & { uiMessages: UIMessage[] }> {
    return this.#get(threadPath(threadId, 'messages'), { page, perPage, orderBy, include, filter, cursor })
  }

  /** The messages that match best, of all threads of the resource, or of the given thread. */
  search(
    query: { searchQuery: string; threadId?: string; limit?: number },
  ): Promise<{ results: FoundMessage[]; count: number; incomplete?: true }> {
    return this.#get('/search', query)
  }

  saveMessages({ messages }: { messages: readonly AgentMessage[] }): Promise<{ messages: Array<OverWire<Message>> }> {
    return this.#post('/save-messages', { messages })
  }

  async updateMessages({ messages }: { messages: UpdateMessagesArgs['messages'] }): Promise<Array<OverWire<Message>>> {
    return (await this.#post<{ messages: Array<OverWire<Message>> }>('/messages/update', { messages }, true)).messages
  }

  async deleteMessages({ threadId, messageIds }: { threadId?: string; messageIds: readonly string[] }): Promise<number> {
    return (await this.#post<{ deleted: number }>('/messages/delete', { threadId, messageIds })).deleted
  }

  async getWorkingMemory({ threadId }: { threadId: string }): Promise<string | JSONObject | null> {
    return (await this.#get<{ workingMemory: string | JSONObject | null }>(threadPath(threadId, 'working-memory'))).workingMemory
  }

  /** Resolves with the new version. */
  async updateWorkingMemory(
    { threadId, ...update }: Omit<WorkingMemoryUpdate, 'threadId' | 'resourceId'> & { threadId: string },
  ): Promise<number> {
    return (await this.#post<{ version: number }>(threadPath(threadId, 'working-memory'), update)).version
  }

  /** Newest first. */
  async listWorkingMemoryVersions(
    { threadId, ...query }: { threadId: string; limit?: number; before?: number },
  ): Promise<Array<OverWire<WorkingMemoryVersion>>> {
    return (await this.#get<{ versions: Array<OverWire<WorkingMemoryVersion>> }>(threadPath(threadId, 'working-memory/versions'), query))
      .versions
  }

  undoWorkingMemory(
    { threadId, ...body }: { threadId: string; version?: number; expectedVersion?: number },
  ): Promise<OverWire<WorkingMemoryVersion>> {
    return this.#post(threadPath(threadId, 'working-memory/undo'), body)
  }

  #get<T>(path: string, query: Record<string, unknown> = {}): Promise<T> {
    return this.#connection.json(`/memory${path}`, { query: { ...this.#scope, ...query } })
  }

  #post<T>(path: string, body: unknown, repeatable = false): Promise<T> {
    return this.#connection.json(`/memory${path}`, { query: { ...this.#scope }, body, repeatable })
  }
}

function threadPath(threadId: string, rest?: string): string {
  return `/threads/${encodeURIComponent(threadId)}${rest === undefined ? '' : `/${rest}`}`
}
