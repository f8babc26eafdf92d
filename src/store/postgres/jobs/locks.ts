import type { SqlStatement } from '../../sql/replay/known-answers.ts'
import { SpeculationFailed, type ReplayDriver } from '../../sql/replay/replay.ts'
import type { LockedDomain, ThreadsLock } from '../../sql/statements.ts'
import type { Dialect } from '../dialect.ts'
import { lockDomain, lockThreads } from '../transaction.ts'

/** What a work locks before its first statement. */
export class Locks {
  /** Writes that have a name in common run one after the other. */
  readonly names = new Set<string>()
  readonly threads = new Set<string>()
  readonly #notifications = new Set<string>()
  #inbox: string | undefined
  #other = false

  addThreads({ ids, below, owner }: ThreadsLock): void {
    for (const id of ids) {
      this.threads.add(id)
      this.names.add(`thread ${id}`)
    }
    if (owner !== undefined) this.names.add(`owner ${owner}`)
    if (below || owner !== undefined) this.#other = true
  }

  addDomain(domain: LockedDomain, names: readonly string[] = ['*'], inbox?: string): void {
    for (const name of names) this.names.add(`${domain} ${name}`)
    if (domain !== 'notifications' || inbox === undefined) {
      this.#other = true
      return
    }
    for (const name of names) this.#notifications.add(name)
    this.#inbox ??= inbox
    if (this.#inbox !== inbox) this.#other = true
  }

  /** The only thread that is locked, if nothing else is. */
  get only(): string | undefined {
    const [threadId] = this.threads
    return this.names.size === 1 ? threadId : undefined
  }

  /** Of its kind, those that lock different records may share a transaction; undefined: it has its own. */
  get kind(): string | undefined {
    if (this.#other) return undefined
    if (this.only !== undefined) return 'threads'
    return this.#notifications.size === 1 && this.threads.size === 0 ? 'notifications' : undefined
  }

  get notifications(): ReadonlySet<string> {
    return this.#notifications
  }

  /** What its transaction locks while it writes: the id of a new thread, or the counter of an inbox. */
  get written(): string {
    return this.only ?? this.#inbox ?? ''
  }
}

/** Works that share a transaction write in one order in all processes, so that no two transactions wait for each other. */
export function inOrder(one: Locks | undefined, other: Locks | undefined): number {
  return Buffer.compare(Buffer.from(one?.written ?? ''), Buffer.from(other?.written ?? ''))
}

/** The statements that take the locks of several works, and a driver for works that need no other ones. */
export function heldLocks(
  dialect: Dialect, all: readonly Locks[],
): { statements: SqlStatement[]; driver: Pick<ReplayDriver, 'lockThreads' | 'lockDomain'> } {
  const threads = new Set(all.flatMap((locks) => [...locks.threads]))
  const notifications = new Set(all.flatMap((locks) => [...locks.notifications]))
  return {
    statements: [
      ...(threads.size > 0 ? [lockThreads(dialect, { ids: [...threads] })] : []),
      ...(notifications.size > 0 ? [lockDomain(dialect, 'notifications', [...notifications])] : []),
    ],
    driver: {
      lockThreads({ ids, below, owner }) {
        if (below || owner !== undefined || ids.some((id) => !threads.has(id))) throw new SpeculationFailed('a work of several locks more')
        return undefined
      },
      lockDomain(domain, names) {
        if (domain !== 'notifications' || !names || names.some((name) => !notifications.has(name))) {
          throw new SpeculationFailed('a work of several locks more')
        }
        return undefined
      },
    },
  }
}
