import { newId } from '../ids.ts'
import { HeedError } from '../errors.ts'
import type { JSONObject, JSONValue } from '../json.ts'
import { joinRows } from '../message/join.ts'
import type { Message } from '../message/message.ts'
import type { MemoryOptions } from '../run/options.ts'
import type { ThreadRow, ThreadStore } from '../store/contract.ts'
import type { Storage } from '../store/storage.ts'
import { checkMemoryOptions, checkNames } from './options.ts'
import { defaultLastMessages } from './window.ts'
import { listVersions, readWorkingMemory, undoWorkingMemory, updateWorkingMemory } from './working-memory/access.ts'
import type { WorkingMemoryTarget, WorkingMemoryUpdate, WorkingMemoryVersion } from './working-memory/access.ts'
import { splitMetadata } from './working-memory/initial.ts'
import { workingMemoryIn, type WorkingMemorySetting } from './working-memory/setting.ts'

export interface MemoryConfig extends MemoryOptions {
  /** Where this memory's threads are kept. Defaults to the storage of the agent's Heed. */
  storage?: Storage
  /** The same options, one level down. */
  options?: MemoryOptions
}

/** Rows read at once while a whole thread is collected. */
const page = 1_000

/** The conversations of an agent: how much of them the model sees, and how programs read them. */
export class Memory {
  readonly storage: Storage | undefined
  readonly options: MemoryOptions
  #store: (() => Promise<ThreadStore>) | undefined

  constructor(config: MemoryConfig = {}) {
    const { storage, options, ...own } = config
    checkNames(own, ['storage', 'options'])
    checkNames(options ?? {})
    for (const key of Object.keys(own) as Array<keyof MemoryOptions>) {
      if (options?.[key] !== undefined && options[key] !== own[key]) {
        throw new HeedError('invalid_argument', `Memory was given '${key}' twice, with different values. Write it once.`, { details: { option: key } })
      }
    }
    this.storage = storage
    this.options = { ...own, ...options }
    checkMemoryOptions(this.options)
  }

  /** @internal */
  bind(store: () => Promise<ThreadStore>): void {
    this.#store = store
  }

  async createThread(thread: { resourceId: string; threadId?: string; title?: string; metadata?: Record<string, JSONValue> }): Promise<ThreadRow> {
    const { threadId: id = newId(), metadata, ...rest } = thread
    const described = await splitMetadata(workingMemoryIn(this.options), metadata)
    const store = await this.#open()
    return (await store.createThread({ id, ...rest, ...described, now: Date.now() })).thread
  }

  async getThreadById({ threadId, resourceId }: { threadId: string; resourceId?: string }): Promise<ThreadRow | null> {
    return (await this.#open()).getThread({ threadId, ...(resourceId === undefined ? {} : { resourceId }) })
  }

  /** The newest messages in chronological order; all of them with `perPage: false`. A thread that isn't there has none. */
  async recall({ threadId, resourceId, perPage }: { threadId: string; resourceId?: string; perPage?: number | false }): Promise<{ messages: Message[] }> {
    const store = await this.#open()
    const scope = { threadId, ...(resourceId === undefined ? {} : { resourceId }) }
    if (!(await store.getThread(scope))) return { messages: [] }
    const rows = []
    for (let after = -1, more = true; more; after = rows.at(-1)?.seq ?? after) {
      const batch = await store.listRows(scope, { after, limit: page })
      rows.push(...batch.rows)
      more = batch.more
    }
    const messages = joinRows(rows)
    const count = perPage ?? (this.options.lastMessages || defaultLastMessages)
    return { messages: count === false ? messages : messages.slice(Math.max(0, messages.length - count)) }
  }

  /** What is kept in mind: the text, or the object when there is a schema. Null when nothing ever was. */
  async getWorkingMemory<T = string | JSONObject>(target: WorkingMemoryTarget): Promise<T | null> {
    const found = await readWorkingMemory(await this.#open(), this.#setting(), target)
    return (found?.workingMemory ?? null) as T | null
  }

  /** Replaces the text; with a schema, merges the fields, all at once: changes of others are kept. */
  async updateWorkingMemory(update: WorkingMemoryUpdate): Promise<WorkingMemoryVersion> {
    return updateWorkingMemory(await this.#open(), this.#setting(), update)
  }

  /** Its versions, newest first. The last hundred are kept. */
  async listWorkingMemoryVersions(target: WorkingMemoryTarget & { limit?: number; before?: number }): Promise<WorkingMemoryVersion[]> {
    return listVersions(await this.#open(), this.#setting(), target)
  }

  /** Goes back to a version, or to the one before the present. */
  async undoWorkingMemory(target: WorkingMemoryTarget & { version?: number; expectedVersion?: number }): Promise<WorkingMemoryVersion> {
    return undoWorkingMemory(await this.#open(), this.#setting(), target)
  }

  #setting(): WorkingMemorySetting {
    const setting = workingMemoryIn(this.options)
    if (setting) return setting
    throw new HeedError('invalid_argument', 'This memory has no working memory. Turn it on: new Memory({ workingMemory: { enabled: true } }).', { details: { option: 'workingMemory' } })
  }

  async #open(): Promise<ThreadStore> {
    if (!this.#store) throw new HeedError('invalid_argument', 'This memory belongs to no agent yet. Give it to one, or get it from one: agent.getMemory().')
    return this.#store()
  }
}
