import { checkNames } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import type { JSONObject } from '../base/json.ts'
import type { Message } from '../message/message.ts'
import type { TextEmbedder } from '../recall/embedder.ts'
import type { MemoryOptions } from '../run/options.ts'
import type { ThreadDependents } from '../store/contract/thread-row.ts'
import type { ThreadRow, ThreadStore } from '../store/contract/threads.ts'
import type { RecallProgress, RecallStatus } from '../store/contract/recall.ts'
import { checkReindex, parseScope } from './arguments.ts'
import { cloneHistory, clonesOf, cloneThread, sourceOf, type ClonedThread, type CloneThreadArgs, type UnreadClone } from './clones.ts'
import { recall, type RecallArgs, type RecalledMessages } from './recall.ts'
import { seekMessages, type SeekArgs, type SoughtMessages } from './seek.ts'
import { explainRecall, type ExplainedRecall, type ExplainRecallArgs } from './semantic/explain.ts'
import { isSearch, openIndex, searchMessages } from './semantic/search.ts'
import { createThread, deleteThread, listNames, listThreads, updateThread } from './threads.ts'
import type { ListThreadsArgs, NewThreadArgs, ThreadList, ThreadUpdate } from './threads.ts'
import { defaultLastMessages } from './options.ts'
import { listVersions, readWorkingMemory, undoWorkingMemory, updateWorkingMemory } from './working-memory/access.ts'
import type { WorkingMemoryTarget, WorkingMemoryUpdate, WorkingMemoryVersion } from './working-memory/access.ts'
import { parseWorkingMemory, requireWorkingMemory } from './working-memory/setting.ts'
import { deleteMessages, saveMessages, updateMessages } from './writing.ts'
import type { DeleteMessagesArgs, SaveMessagesArgs, UpdateMessagesArgs, Writer } from './writing.ts'

/** What `Memory` passes to the memory of a resource. */
interface StoreAccess {
  store(): Promise<ThreadStore>
  belongings(): Promise<ThreadDependents[]>
  now(): number
}

/** Arguments whose `resourceId` may be left out. */
type Own<Args> = Omit<Args, 'resourceId'> & { resourceId?: string }

/**
 * A memory restricted to one resource. Each call passes the resource to the store, which rejects what belongs to another: a program may
 * pass on ids that it received from its user. Get it from `memory.forResource(id)`.
 */
export class ResourceMemory {
  readonly resourceId: string
  readonly #access: StoreAccess
  readonly #options: MemoryOptions
  readonly #embedder: TextEmbedder | undefined
  #writer: Writer

  /** @internal */
  constructor(resourceId: string, access: StoreAccess, options: MemoryOptions, embedder?: TextEmbedder) {
    this.resourceId = resourceId
    this.#access = access
    this.#options = options
    this.#embedder = embedder
    this.#writer = { resourceId }
  }

  /** @internal For a user who may not instruct models: messages of the role `system` are neither saved nor changed. */
  withoutSystemRole(): ResourceMemory {
    const memory = new ResourceMemory(this.resourceId, this.#access, this.#options, this.#embedder)
    memory.#writer = { resourceId: this.resourceId, except: 'system' }
    return memory
  }

  async createThread(thread: Own<NewThreadArgs> = {}): Promise<ThreadRow> {
    return createThread(await this.#store(), this.#own(thread), this.#access.now(), parseWorkingMemory(this.#options))
  }

  async getThreadById(thread: { threadId: string }): Promise<ThreadRow | null> {
    checkNames('getThreadById()', thread, ['threadId', 'resourceId'])
    const { threadId } = this.#own<{ threadId: string; resourceId?: string }>(thread)
    return (await this.#store()).getThread(parseScope(threadId, this.resourceId))
  }

  async listThreads(args: ListThreadsArgs = {}): Promise<ThreadList> {
    checkNames('listThreads()', args, listNames)
    const { filter, resourceId, ...rest } = args
    this.#check(resourceId)
    this.#check(filter?.resourceId)
    return listThreads(await this.#store(), { ...rest, filter: { ...filter, resourceId: this.resourceId } })
  }

  async updateThread(update: ThreadUpdate): Promise<ThreadRow> {
    return updateThread(await this.#store(), this.#own(update), parseWorkingMemory(this.#options))
  }

  async deleteThread(thread: string | { threadId: string }): Promise<boolean> {
    if (typeof thread !== 'string') checkNames('deleteThread()', thread, ['threadId', 'resourceId'])
    const { threadId } = typeof thread === 'string' ? { threadId: thread } : this.#own<{ threadId: string; resourceId?: string }>(thread)
    return deleteThread(await this.#store(), parseScope(threadId, this.resourceId), this.#access.belongings)
  }

  async seekMessages(args: SeekArgs): Promise<SoughtMessages> {
    return seekMessages(await this.#store(), this.#own(args))
  }

  async recall(args: RecallArgs): Promise<RecalledMessages> {
    const own = this.#own(args)
    const { lastMessages = this.#options.lastMessages } = own.threadConfig ?? {}
    const store = await this.#access.store()
    return isSearch(own)
      ? searchMessages(store, own, this.#options, this.#embedder)
      : recall(store, own, lastMessages || defaultLastMessages)
  }

  /** Why `recall()` finds these messages for a `vectorSearchString`, or why it does not find one of them. */
  async explainRecall(args: Own<ExplainRecallArgs>): Promise<ExplainedRecall> {
    return explainRecall(await this.#store(), this.#own(args), this.#options, this.#embedder)
  }

  /** The progress of indexing for recall, of all resources of the storage together, and the failures that delay it. */
  async recallStatus(): Promise<RecallStatus> {
    return (await openIndex(await this.#store(), this.#embedder)).status()
  }

  /** Indexes all messages of the storage again, those of all resources. Searches use the present index meanwhile. */
  async reindex(options: { onProgress?: (progress: RecallProgress) => void } = {}): Promise<void> {
    checkReindex(options)
    return (await openIndex(await this.#store(), this.#embedder)).reindex(options)
  }

  listMessages(args: RecallArgs): Promise<RecalledMessages> {
    return this.recall(args)
  }

  async saveMessages(args: SaveMessagesArgs): Promise<{ messages: Message[] }> {
    return { messages: await saveMessages(await this.#store(), this.#own(args), this.#access.now(), this.#writer) }
  }

  async updateMessages(args: UpdateMessagesArgs): Promise<Message[]> {
    return updateMessages(await this.#store(), this.#own(args), this.#writer)
  }

  async deleteMessages(args: DeleteMessagesArgs): Promise<number> {
    if (typeof args === 'object' && args !== null && 'resourceId' in args) this.#check(args.resourceId)
    return deleteMessages(await this.#store(), args, this.resourceId)
  }

  /** The clone belongs to this resource too. */
  cloneThread(args: UnreadClone): Promise<Pick<ClonedThread, 'thread'>>
  cloneThread(args: CloneThreadArgs): Promise<ClonedThread>
  async cloneThread(args: CloneThreadArgs): Promise<Pick<ClonedThread, 'thread'>> {
    return cloneThread(await this.#store(), this.#own(args), this.#access.now(), this.resourceId)
  }

  async getSourceThread(threadId: string): Promise<ThreadRow | null> {
    return sourceOf(await this.#store(), threadId, this.resourceId)
  }

  async listClones(sourceThreadId: string): Promise<ThreadRow[]> {
    return clonesOf(await this.#store(), sourceThreadId, this.resourceId)
  }

  async getCloneHistory(threadId: string): Promise<ThreadRow[]> {
    return cloneHistory(await this.#store(), threadId, this.resourceId)
  }

  /** The working memory of this resource, or of one of its threads when its scope is `thread`. */
  async getWorkingMemory<T = string | JSONObject>(target: WorkingMemoryTarget = {}): Promise<T | null> {
    const found = await readWorkingMemory(await this.#store(), requireWorkingMemory(this.#options), this.#own(target))
    return (found?.workingMemory ?? null) as T | null
  }

  async updateWorkingMemory(update: WorkingMemoryUpdate): Promise<WorkingMemoryVersion> {
    return updateWorkingMemory(await this.#store(), requireWorkingMemory(this.#options), this.#own(update))
  }

  async listWorkingMemoryVersions(target: WorkingMemoryTarget & { limit?: number; before?: number } = {}): Promise<WorkingMemoryVersion[]> {
    return listVersions(await this.#store(), requireWorkingMemory(this.#options), this.#own(target))
  }

  async undoWorkingMemory(
    target: WorkingMemoryTarget & { version?: number; expectedVersion?: number } = {},
  ): Promise<WorkingMemoryVersion> {
    return undoWorkingMemory(await this.#store(), requireWorkingMemory(this.#options), this.#own(target))
  }

  #store(): Promise<ThreadStore> {
    return this.#access.store()
  }

  #own<Args extends { resourceId?: string }>(args: Args): Args & { resourceId: string } {
    this.#check(args?.resourceId)
    return { ...args, resourceId: this.resourceId }
  }

  #check(resourceId: string | undefined): void {
    if (resourceId === undefined || resourceId === this.resourceId) return
    const why = `This memory is restricted to resource ${this.resourceId}. Call memory.forResource() with the other one.`
    throw new HeedError('thread_forbidden', why, { details: { resourceId: this.resourceId } })
  }
}
