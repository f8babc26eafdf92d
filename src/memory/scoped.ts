import { HeedError } from '../base/errors.ts'
import type { JSONObject } from '../base/json.ts'
import type { Message } from '../message/message.ts'
import type { TextEmbedder } from '../recall/embedder.ts'
import type { MemoryOptions } from '../run/options.ts'
import type { Belongings } from '../store/contract/thread-dependents.ts'
import type { ThreadRow, ThreadStore } from '../store/contract/threads.ts'
import type { RecallProgress, RecallStatus } from '../store/contract/recall.ts'
import { checkNames, checkReindex, scopeOf } from './arguments.ts'
import { cloneHistory, clonesOf, cloneThread, sourceOf, type ClonedThread, type CloneThreadArgs, type UnreadClone } from './clones.ts'
import { recall, type RecallArgs, type RecalledMessages } from './recall.ts'
import { indexOf, isSearch, searchMessages } from './semantic/search.ts'
import { createThread, deleteThread, listNames, listThreads, updateThread, type ListThreadsArgs, type NewThreadArgs, type ThreadList, type ThreadUpdate } from './threads.ts'
import { defaultLastMessages } from './window.ts'
import { listVersions, readWorkingMemory, undoWorkingMemory, updateWorkingMemory } from './working-memory/access.ts'
import type { WorkingMemoryTarget, WorkingMemoryUpdate, WorkingMemoryVersion } from './working-memory/access.ts'
import { workingMemoryIn, workingMemoryOf } from './working-memory/setting.ts'
import { deleteMessages, saveMessages, updateMessages, type DeleteMessagesArgs, type SaveMessagesArgs, type UpdateMessagesArgs, type Writer } from './writing.ts'

interface OwnPlace {
  store(): Promise<ThreadStore>
  belongings(): Promise<Belongings[]>
  now(): number
}

/** Of what names a resource, only this one may be named. */
type Own<Args> = Omit<Args, 'resourceId'> & { resourceId?: string }

/**
 * A memory of one resource. Every call carries the resource to the store, which refuses what belongs to another: a program may pass ids
 * on as it got them from its user. Get it from `memory.forResource(id)`.
 */
export class ResourceMemory {
  readonly resourceId: string
  readonly #place: OwnPlace
  readonly #options: MemoryOptions
  readonly #embedder: TextEmbedder | undefined
  #writer: Writer

  /** @internal */
  constructor(resourceId: string, place: OwnPlace, options: MemoryOptions, embedder?: TextEmbedder) {
    this.resourceId = resourceId
    this.#place = place
    this.#options = options
    this.#embedder = embedder
    this.#writer = { resourceId }
  }

  /** @internal The same for whoever may not instruct its models: messages of the role `system` are neither saved nor changed. */
  uninstructing(): ResourceMemory {
    const memory = new ResourceMemory(this.resourceId, this.#place, this.#options, this.#embedder)
    memory.#writer = { resourceId: this.resourceId, except: 'system' }
    return memory
  }

  async createThread(thread: Own<NewThreadArgs> = {}): Promise<ThreadRow> {
    return createThread(await this.#store(), this.#own(thread), this.#place.now(), workingMemoryIn(this.#options))
  }

  async getThreadById(thread: { threadId: string }): Promise<ThreadRow | null> {
    checkNames('getThreadById()', thread, ['threadId', 'resourceId'])
    const { threadId } = this.#own<{ threadId: string; resourceId?: string }>(thread)
    return (await this.#store()).getThread(scopeOf(threadId, this.resourceId))
  }

  async listThreads(args: ListThreadsArgs = {}): Promise<ThreadList> {
    checkNames('listThreads()', args, listNames)
    const { filter, resourceId, ...rest } = args
    this.#check(resourceId)
    this.#check(filter?.resourceId)
    return listThreads(await this.#store(), { ...rest, filter: { ...filter, resourceId: this.resourceId } })
  }

  async updateThread(update: ThreadUpdate): Promise<ThreadRow> {
    return updateThread(await this.#store(), this.#own(update), workingMemoryIn(this.#options))
  }

  async deleteThread(thread: string | { threadId: string }): Promise<boolean> {
    if (typeof thread !== 'string') checkNames('deleteThread()', thread, ['threadId', 'resourceId'])
    const { threadId } = typeof thread === 'string' ? { threadId: thread } : this.#own<{ threadId: string; resourceId?: string }>(thread)
    return deleteThread(await this.#store(), scopeOf(threadId, this.resourceId), this.#place.belongings)
  }

  async recall(args: RecallArgs): Promise<RecalledMessages> {
    const own = this.#own(args)
    const { lastMessages = this.#options.lastMessages } = own.threadConfig ?? {}
    const store = await this.#place.store()
    return isSearch(own) ? searchMessages(store, own, this.#options, this.#embedder) : recall(store, own, lastMessages || defaultLastMessages)
  }

  /** How far messages of its storage are indexed for recall, those of all resources together, and what holds it up. */
  async recallStatus(): Promise<RecallStatus> {
    return (await indexOf(await this.#store(), this.#embedder)).status()
  }

  /** Indexes all messages of its storage again, those of all resources, while what is there serves. */
  async reindex(options: { onProgress?: (progress: RecallProgress) => void } = {}): Promise<void> {
    checkReindex(options)
    return (await indexOf(await this.#store(), this.#embedder)).reindex(options)
  }

  listMessages(args: RecallArgs): Promise<RecalledMessages> {
    return this.recall(args)
  }

  async saveMessages(args: SaveMessagesArgs): Promise<{ messages: Message[] }> {
    return { messages: await saveMessages(await this.#store(), this.#own(args), this.#place.now(), this.#writer) }
  }

  async updateMessages(args: UpdateMessagesArgs): Promise<Message[]> {
    return updateMessages(await this.#store(), this.#own(args), this.#writer)
  }

  async deleteMessages(args: DeleteMessagesArgs): Promise<number> {
    if (typeof args === 'object' && args !== null && 'resourceId' in args) this.#check(args.resourceId)
    return deleteMessages(await this.#store(), args, this.resourceId)
  }

  /** The copy is this resource's too. */
  cloneThread(args: UnreadClone): Promise<Pick<ClonedThread, 'thread'>>
  cloneThread(args: CloneThreadArgs): Promise<ClonedThread>
  async cloneThread(args: CloneThreadArgs): Promise<Pick<ClonedThread, 'thread'>> {
    return cloneThread(await this.#store(), this.#own(args), this.#place.now(), this.resourceId)
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

  /** What is kept in mind of this resource, or of one of its threads where working memory is that of a thread. */
  async getWorkingMemory<T = string | JSONObject>(target: WorkingMemoryTarget = {}): Promise<T | null> {
    const found = await readWorkingMemory(await this.#store(), workingMemoryOf(this.#options), this.#own(target))
    return (found?.workingMemory ?? null) as T | null
  }

  async updateWorkingMemory(update: WorkingMemoryUpdate): Promise<WorkingMemoryVersion> {
    return updateWorkingMemory(await this.#store(), workingMemoryOf(this.#options), this.#own(update))
  }

  async listWorkingMemoryVersions(target: WorkingMemoryTarget & { limit?: number; before?: number } = {}): Promise<WorkingMemoryVersion[]> {
    return listVersions(await this.#store(), workingMemoryOf(this.#options), this.#own(target))
  }

  async undoWorkingMemory(target: WorkingMemoryTarget & { version?: number; expectedVersion?: number } = {}): Promise<WorkingMemoryVersion> {
    return undoWorkingMemory(await this.#store(), workingMemoryOf(this.#options), this.#own(target))
  }

  #store(): Promise<ThreadStore> {
    return this.#place.store()
  }

  #own<Args extends { resourceId?: string }>(args: Args): Args & { resourceId: string } {
    this.#check(args?.resourceId)
    return { ...args, resourceId: this.resourceId }
  }

  #check(resourceId: string | undefined): void {
    if (resourceId === undefined || resourceId === this.resourceId) return
    throw new HeedError('thread_forbidden', `This memory is of resource ${this.resourceId} and can't be asked for another. Use memory.forResource() with that one.`, {
      details: { resourceId: this.resourceId },
    })
  }
}
