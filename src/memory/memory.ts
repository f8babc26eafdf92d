import { newId } from '../ids.ts'
import { HeedError } from '../errors.ts'
import type { JSONValue } from '../json.ts'
import { joinRows } from '../message/join.ts'
import type { Message } from '../message/message.ts'
import type { MemoryOptions } from '../run/options.ts'
import type { ThreadRow, ThreadStore } from '../store/contract.ts'
import type { Storage } from '../store/storage.ts'
import { defaultLastMessages, windowOf } from './window.ts'

export interface MemoryConfig extends MemoryOptions {
  /** Where this memory's threads are kept. Defaults to the storage of the agent's Heed. */
  storage?: Storage
  /** The same options, one level down. */
  options?: MemoryOptions
}

const known: ReadonlySet<string> = new Set(['lastMessages', 'window'])
/** Rows read at once while a whole thread is collected. */
const page = 1_000

/** The conversations of an agent: how much of them the model sees, and how programs read them. */
export class Memory {
  readonly storage: Storage | undefined
  readonly options: MemoryOptions
  #store: (() => Promise<ThreadStore>) | undefined

  constructor(config: MemoryConfig = {}) {
    const { storage, options, ...own } = config
    checkNames(own, ['storage', 'options', ...known])
    checkNames(options ?? {}, [...known])
    for (const key of Object.keys(own) as Array<keyof MemoryOptions>) {
      if (options?.[key] !== undefined && options[key] !== own[key]) {
        throw new HeedError('invalid_argument', `Memory was given '${key}' twice, with different values. Write it once.`, { details: { option: key } })
      }
    }
    this.storage = storage
    this.options = { ...own, ...options }
    windowOf(this.options)
  }

  /** @internal */
  bind(store: () => Promise<ThreadStore>): void {
    this.#store = store
  }

  async createThread(thread: { resourceId: string; threadId?: string; title?: string; metadata?: Record<string, JSONValue> }): Promise<ThreadRow> {
    const { threadId: id = newId(), ...rest } = thread
    const store = await this.#open()
    return (await store.createThread({ id, ...rest, now: Date.now() })).thread
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

  async #open(): Promise<ThreadStore> {
    if (!this.#store) throw new HeedError('invalid_argument', 'This memory belongs to no agent yet. Give it to one, or get it from one: agent.getMemory().')
    return this.#store()
  }
}

/** Refuses what is not an option of a memory, and values that can't be meant. */
export function checkMemoryOptions(options: unknown): void {
  if (typeof options !== 'object' || options === null) throw new HeedError('invalid_argument', 'The options of a memory must be an object.', { details: { option: 'memory.options' } })
  checkNames(options, [...known])
  windowOf(options)
}

function checkNames(options: object, names: readonly string[]): void {
  for (const [key, value] of Object.entries(options)) {
    if (value !== undefined && !known.has(key)) {
      throw new HeedError('unsupported_option', `Memory has no '${key}' yet. Known: ${names.join(', ')}.`, { details: { option: key } })
    }
  }
}
