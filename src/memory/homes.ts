import { HeedError } from '../base/errors.ts'
import type { MemoryPlace } from './place.ts'

/** Where the agents of a memory keep their threads. Several places are no answer to who asks the memory itself. */
export class Homes {
  /** The place of the agent that came last, of each Heed or storage. */
  readonly #joined = new Map<object, MemoryPlace>()
  /** Of an agent that belongs to no Heed: where nothing else is known. */
  #otherwise: MemoryPlace | undefined

  /** Without an owner, of an agent that belongs to no Heed. */
  add(place: MemoryPlace, owner: object | undefined): void {
    if (owner === undefined) {
      this.#otherwise = place
      return
    }
    for (const [key, one] of this.#joined) if (key === owner || one.closed()) this.#joined.delete(key)
    this.#joined.set(owner, place)
  }

  /** Whether a place is the only one. */
  agree(place: MemoryPlace): boolean {
    const key = place.key()
    return this.#open().every((one) => one.key() === key)
  }

  /** The place of all of them; none when no agent has this memory. */
  one(): MemoryPlace | undefined {
    const last = this.#open().at(-1)
    if (!last || this.agree(last)) return last
    throw new HeedError('invalid_argument', 'This memory is that of agents whose threads are in different storages. Ask the memory of the one you mean: await agent.getMemory().', {
      details: { field: 'memory' },
    })
  }

  #open(): MemoryPlace[] {
    const joined = [...this.#joined.values()]
    const open = joined.filter((place) => !place.closed())
    if (open.length > 0) return open
    return [joined.at(-1) ?? this.#otherwise ?? []].flat()
  }
}
