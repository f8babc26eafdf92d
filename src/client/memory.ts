import { checkNames, refused } from '../base/arguments.ts'
import type { JSONObject, JSONValue } from '../base/json.ts'
import type { CloneThreadArgs } from '../memory/clones.ts'
import type { RecallArgs, RecalledMessages } from '../memory/recall.ts'
import type { SeekArgs, SoughtMessages } from '../memory/seek.ts'
import type { ExplainedRecall, ExplainRecallArgs } from '../memory/semantic/explain.ts'
import type { ListThreadsArgs, ThreadList } from '../memory/threads.ts'
import type { AgentMessage } from '../message/read/input.ts'
import type { Message } from '../message/message.ts'
import type { UIMessage } from '../message/ui/ui-message.ts'
import type { WorkingMemoryUpdate, WorkingMemoryVersion } from '../memory/working-memory/access.ts'
import type { UpdateMessagesArgs } from '../memory/writing.ts'
import type { RecallHit } from '../store/contract/recall.ts'
import type { ThreadRow } from '../store/contract/threads.ts'
import type { Connection, OverWire } from './connection.ts'

/** The agent and the resource whose memory is meant. */
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
  /** What contributed to the score: numbers from 0 to 1, where 1 is the best of all messages. Older servers send none. */
  reasons?: RecallHit['reasons']
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

  async listThreads(args: ListThreadsArgs = {}): Promise<OverWire<ThreadList>> {
    checkNames('listThreads()', args, ['filter', 'children', 'resourceId', 'orderBy', 'page', 'perPage', 'cursor', 'total'])
    if (args.filter !== undefined) checkNames('filter', args.filter, ['resourceId', 'metadata', 'parentId'])
    const { filter, resourceId = filter?.resourceId, ...query } = args
    const { metadata, parentId } = filter ?? {}
    for (const named of [filter?.resourceId, this.#scope.resourceId])
      if (named !== undefined && resourceId !== undefined && named !== resourceId)
        throw refused('resourceId', 'the same in filter, in the call and in memory(), or left out')
    return this.#get('/threads', { ...query, metadata, parentId, ...(resourceId === undefined ? {} : { resourceId }) })
  }

  async createThread(
    thread: { threadId?: string; title?: string; metadata?: Record<string, JSONValue> } = {},
  ): Promise<OverWire<ThreadRow>> {
    checkNames('createThread()', thread, ['threadId', 'title', 'metadata'])
    return this.#post('/threads', { ...thread, resourceId: this.#scope.resourceId }, thread.threadId !== undefined)
  }

  async getThreadById(thread: { threadId: string }): Promise<OverWire<ThreadRow>> {
    checkNames('getThreadById()', thread, ['threadId'])
    return this.#get(threadPath(thread.threadId))
  }

  async updateThread(update: { id: string; title?: string; metadata?: Record<string, JSONValue> }): Promise<OverWire<ThreadRow>> {
    checkNames('updateThread()', update, ['id', 'title', 'metadata'])
    const { id, ...patch } = update
    return this.#connection.json(`/memory${threadPath(id)}`, { method: 'PATCH', query: { ...this.#scope }, body: patch, repeatable: true })
  }

  async deleteThread(threadId: string): Promise<void> {
    await this.#connection.json(`/memory${threadPath(threadId)}`, { method: 'DELETE', query: { ...this.#scope } })
  }

  async cloneThread(args: Omit<CloneThreadArgs, 'resourceId' | 'readMessages'>): Promise<{ thread: OverWire<ThreadRow> }> {
    checkNames('cloneThread()', args, ['sourceThreadId', 'newThreadId', 'title', 'metadata', 'options'])
    const { sourceThreadId, ...clone } = args
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

  async transferThread(transfer: { threadId: string; resourceId: string }): Promise<OverWire<ThreadRow>> {
    checkNames('transferThread()', transfer, ['threadId', 'resourceId'])
    const { threadId, resourceId } = transfer
    return this.#post(threadPath(threadId, 'transfer'), { resourceId })
  }

  /** By default the newest page, in chronological order. A thread that does not exist yet has none. */
  async listMessages(
    args: Pick<RecallArgs, 'page' | 'orderBy' | 'include' | 'filter' | 'cursor'> & { threadId: string; perPage?: number },
  ): Promise<OverWire<RecalledMessages> & { uiMessages: UIMessage[] }> {
    checkNames('listMessages()', args, ['threadId', 'page', 'perPage', 'orderBy', 'include', 'filter', 'cursor'])
    const { threadId, ...query } = args
    return this.#get(threadPath(threadId, 'messages'), query)
  }

  /** A page of a thread around, before or after a message, or from a place on. */
  async seekMessages(args: Omit<SeekArgs, 'resourceId'>): Promise<OverWire<SoughtMessages> & { uiMessages: UIMessage[] }> {
    checkNames('seekMessages()', args, ['threadId', 'around', 'before', 'after', 'at', 'perPage'])
    const { threadId, ...query } = args
    return this.#get(threadPath(threadId, 'messages'), query)
  }

  /** The messages that match best, of all threads of the resource, or of the given thread. */
  async search(
    query: { searchQuery: string; threadId?: string; limit?: number },
  ): Promise<{ results: FoundMessage[]; count: number; incomplete?: true; incompleteReason?: RecalledMessages['incompleteReason'] }> {
    checkNames('search()', query, ['searchQuery', 'threadId', 'limit'])
    return this.#get('/search', query)
  }

  /** Why `search()` finds its messages, or why it does not find one: `message`, by default of the thread `threadId`. */
  async explainRecall(
    query: { searchQuery: string; threadId?: string; limit?: number; message?: ExplainRecallArgs['message'] },
  ): Promise<ExplainedRecall> {
    checkNames('explainRecall()', query, ['searchQuery', 'threadId', 'limit', 'message'])
    const { message, ...search } = query
    if (message !== undefined) checkNames('message', message, ['id', 'threadId'])
    return this.#get('/search/explanation', { ...search, messageId: message?.id, messageThreadId: message?.threadId })
  }

  async saveMessages(saved: { messages: readonly AgentMessage[] }): Promise<{ messages: Array<OverWire<Message>> }> {
    checkNames('saveMessages()', saved, ['messages'])
    return this.#post('/save-messages', saved)
  }

  async updateMessages(update: { messages: UpdateMessagesArgs['messages'] }): Promise<Array<OverWire<Message>>> {
    checkNames('updateMessages()', update, ['messages'])
    return (await this.#post<{ messages: Array<OverWire<Message>> }>('/messages/update', update, true)).messages
  }

  async deleteMessages(deleted: { threadId?: string; messageIds: readonly string[] }): Promise<number> {
    checkNames('deleteMessages()', deleted, ['threadId', 'messageIds'])
    return (await this.#post<{ deleted: number }>('/messages/delete', deleted)).deleted
  }

  async getWorkingMemory(target: { threadId: string }): Promise<string | JSONObject | null> {
    checkNames('getWorkingMemory()', target, ['threadId'])
    const { threadId } = target
    return (await this.#get<{ workingMemory: string | JSONObject | null }>(threadPath(threadId, 'working-memory'))).workingMemory
  }

  /** Resolves with the new version. */
  async updateWorkingMemory(args: Omit<WorkingMemoryUpdate, 'threadId' | 'resourceId'> & { threadId: string }): Promise<number> {
    checkNames('updateWorkingMemory()', args, ['threadId', 'workingMemory', 'replace', 'delete', 'expectedVersion'])
    const { threadId, ...update } = args
    return (await this.#post<{ version: number }>(threadPath(threadId, 'working-memory'), update)).version
  }

  /** Newest first. */
  async listWorkingMemoryVersions(
    target: { threadId: string; limit?: number; before?: number },
  ): Promise<Array<OverWire<WorkingMemoryVersion>>> {
    checkNames('listWorkingMemoryVersions()', target, ['threadId', 'limit', 'before'])
    const { threadId, ...query } = target
    return (await this.#get<{ versions: Array<OverWire<WorkingMemoryVersion>> }>(threadPath(threadId, 'working-memory/versions'), query))
      .versions
  }

  async undoWorkingMemory(
    target: { threadId: string; version?: number; expectedVersion?: number },
  ): Promise<OverWire<WorkingMemoryVersion>> {
    checkNames('undoWorkingMemory()', target, ['threadId', 'version', 'expectedVersion'])
    const { threadId, ...body } = target
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
