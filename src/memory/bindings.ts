import { HeedError } from '../base/errors.ts'
import type { Storage } from '../store/contract/storage.ts'
import type { ThreadStore } from '../store/contract/threads.ts'

/** Binds a memory to the storage that one of its agents uses. */
export interface MemoryBinding {
  store(): Promise<ThreadStore>
  /** Equal for bindings to the same storage. */
  key(): unknown
  /** The time of the Heed's clock. */
  now(): number
  /** Whether the Heed is closed. */
  closed(): boolean
  /** The storage with all its stores. */
  storage(): Promise<Storage>
  /** Called after a thread was transferred: subscribers of its former resource are stopped. */
  transferred(threadId: string, resourceId: string): void
}

/** The bindings of a memory that several agents may share. Calls on the memory itself need all of them to be of one storage. */
export class MemoryBindings {
  /** The last binding of each Heed or storage. */
  readonly #byOwner = new Map<object, MemoryBinding>()
  /** The binding of an agent without a Heed, used when there is no other. */
  #unowned: MemoryBinding | undefined

  /** `owner` is undefined for an agent without a Heed. */
  add(binding: MemoryBinding, owner: object | undefined): void {
    if (owner === undefined) {
      this.#unowned = binding
      return
    }
    for (const [key, one] of this.#byOwner) if (key === owner || one.closed()) this.#byOwner.delete(key)
    this.#byOwner.set(owner, binding)
  }

  isOnlyStorage(binding: MemoryBinding): boolean {
    const key = binding.key()
    return this.#open().every((one) => one.key() === key)
  }

  /** The binding to the storage that all agents share; undefined when no agent has this memory. */
  current(): MemoryBinding | undefined {
    const last = this.#open().at(-1)
    if (!last || this.isOnlyStorage(last)) return last
    const why = 'The agents of this memory keep their threads in different storages. Call the memory of one agent: await agent.getMemory().'
    throw new HeedError('invalid_argument', why, { details: { field: 'memory' } })
  }

  #open(): MemoryBinding[] {
    const all = [...this.#byOwner.values()]
    const open = all.filter((binding) => !binding.closed())
    if (open.length > 0) return open
    return [all.at(-1) ?? this.#unowned ?? []].flat()
  }
}
