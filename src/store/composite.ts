import { HeedError } from '../base/errors.ts'
import { threadDependentsOf, threadStoreOf, type DomainStorage, type Storage, type StoreDomains } from './contract/storage.ts'
import { checkRetention, pruneStore, type PruneOptions, type PruneResult, type Retention } from './retention.ts'

type Domain = keyof StoreDomains

export interface CompositeStoreOptions {
  id?: string
  /** Where each domain is: its store, a storage that has it, or `false` for nowhere. */
  domains?: { [Name in Domain]?: StoreDomains[Name] | DomainStorage | false }
  /** Where all others are. */
  default?: Storage
  /** For how long things are kept. What is older goes by itself while a Heed runs on it, or with `prune`. */
  retention?: Retention
}

const known: Record<Domain, true> = { memory: true, notifications: true, schedules: true, subscriptions: true, recall: true }
const options: readonly string[] = ['id', 'domains', 'default', 'retention']

/** A storage that is put together from others, domain by domain. */
export class CompositeStore implements DomainStorage {
  readonly id: string
  readonly retention: Retention | undefined
  readonly #options: CompositeStoreOptions

  constructor(given: CompositeStoreOptions) {
    for (const name of Object.keys(given)) {
      if (!options.includes(name)) throw new HeedError('unsupported_option', `CompositeStore has no '${name}'. Known: ${options.join(', ')}.`, { details: { option: name } })
    }
    for (const [name, store] of Object.entries(given.domains ?? {})) {
      if (!Object.hasOwn(known, name)) {
        throw new HeedError('unsupported_option', `There is no domain '${name}' yet. Known: ${Object.keys(known).join(', ')}.`, { details: { option: `domains.${name}` } })
      }
      if (store !== undefined && store !== false && !isStore(store)) throw notAStore(`domains.${name}`)
    }
    if (given.default !== undefined && !isStore(given.default)) throw notAStore('default')
    if (!given.default && Object.values(given.domains ?? {}).every((store) => !store)) {
      throw new HeedError('invalid_argument', 'CompositeStore has no store. Give it domains, or a default.', { details: { option: 'domains' } })
    }
    if (given.retention !== undefined) checkRetention(given.retention)
    this.id = given.id ?? 'composite'
    this.retention = given.retention
    this.#options = given
  }

  async getStore<Name extends Domain>(domain: Name): Promise<StoreDomains[Name] | undefined> {
    const own = this.#options.domains?.[domain]
    if (own === false) return undefined
    // Messages are indexed where they are.
    const found = own ?? (domain === 'recall' ? (this.#options.domains?.memory || this.#options.default) : this.#options.default)
    if (!found) return undefined
    if ('getStore' in found) return found.getStore(domain)
    // What isn't a storage of domains is the store of the domain that it stands at; as the default, of threads.
    return own || domain === 'memory' ? (found as StoreDomains[Name]) : undefined
  }

  /** Removes what is older than `retention` keeps. */
  async prune(how: PruneOptions = {}): Promise<PruneResult> {
    const places = await threadDependentsOf(this)
    return pruneStore(await threadStoreOf(this), {
      ...how,
      retention: how.retention ?? this.retention,
      async onPruned(gone) {
        if (gone.threadIds.length > 0) for (const place of places) await place.forgetThreads(gone.threadIds)
        await how.onPruned?.(gone)
      },
    })
  }

  /** Closes every store that it was made of. */
  async close(): Promise<void> {
    const parts: unknown[] = [...Object.values(this.#options.domains ?? {}), this.#options.default]
    await Promise.all([...new Set(parts)].filter(canClose).map((part) => part.close()))
  }
}

function isStore(value: unknown): boolean {
  return typeof value === 'object' && value !== null && ('getStore' in value || 'open' in value)
}

function notAStore(option: string): HeedError {
  return new HeedError('invalid_argument', `${option} must be a store, such as new MemoryLibSQL({ url: 'file:./memory.db' }).`, { details: { option } })
}

function canClose(part: unknown): part is { close(): Promise<void> } {
  return typeof part === 'object' && part !== null && 'close' in part && typeof part.close === 'function'
}
