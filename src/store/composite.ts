import { HeedError } from '../base/errors.ts'
import { threadDependentsOf, threadStoreOf, type DomainStorage, type Storage, type StoreDomains } from './contract/storage.ts'
import { checkRetention, pruneStore, type PruneOptions, type PruneResult, type Retention } from './retention.ts'

type Domain = keyof StoreDomains

/** Which store has which domain. */
export interface CompositeStoreOptions {
  id?: string
  /** The store of each domain, or a storage that has it; `false`: this storage does not have the domain. */
  domains?: { [Name in Domain]?: StoreDomains[Name] | DomainStorage | false }
  /** The storage of all other domains. */
  default?: Storage
  /** How long records are kept. Expired records are removed while a Heed runs on this storage, or by `prune`. */
  retention?: Retention
}

const knownDomains: Record<Domain, true> = {
  memory: true, notifications: true, schedules: true, subscriptions: true, recall: true, watches: true,
}
/** Domains of other frameworks that Heed does not have. */
const missingDomains: Readonly<Record<string, string>> = {
  workflows: 'runs of workflows are with the threads',
  observability: 'Heed stores no traces: they go to OpenTelemetry',
}
const knownOptions: readonly string[] = ['id', 'domains', 'default', 'retention']

/** A storage that is composed of others, domain by domain. */
export class CompositeStore implements DomainStorage {
  readonly id: string
  readonly retention: Retention | undefined
  readonly #options: CompositeStoreOptions

  constructor(given: CompositeStoreOptions) {
    checkCompositeOptions(given)
    this.id = given.id ?? 'composite'
    this.retention = given.retention
    this.#options = given
  }

  async getStore<Name extends Domain>(domain: Name): Promise<StoreDomains[Name] | undefined> {
    const own = this.#options.domains?.[domain]
    if (own === false) return undefined
    // The recall index is in the database of the messages.
    const found = own ?? (domain === 'recall' ? (this.#options.domains?.memory || this.#options.default) : this.#options.default)
    if (!found) return undefined
    if ('getStore' in found) return found.getStore(domain)
    // A store that is not a storage of domains serves the domain that it was passed for; as the default, it serves threads.
    return own || domain === 'memory' ? (found as StoreDomains[Name]) : undefined
  }

  /** Removes what `retention` no longer keeps. */
  async prune(how: PruneOptions = {}): Promise<PruneResult> {
    const dependents = await threadDependentsOf(this)
    return pruneStore(await threadStoreOf(this), await this.getStore('watches'), {
      ...how,
      retention: how.retention ?? this.retention,
      async onPruned(gone) {
        if (gone.threadIds.length > 0) for (const store of dependents) await store.forgetThreads(gone.threadIds)
        await how.onPruned?.(gone)
      },
    })
  }

  /** Closes every store that it is composed of. */
  async close(): Promise<void> {
    const parts: unknown[] = [...Object.values(this.#options.domains ?? {}), this.#options.default]
    await Promise.all([...new Set(parts)].filter(canClose).map((part) => part.close()))
  }
}

function checkCompositeOptions(given: CompositeStoreOptions): void {
  for (const name of Object.keys(given)) {
    if (knownOptions.includes(name)) continue
    throw new HeedError('unsupported_option', `CompositeStore has no '${name}'. Known: ${knownOptions.join(', ')}.`, {
      details: { option: name },
    })
  }
  for (const [name, store] of Object.entries(given.domains ?? {})) {
    if (!Object.hasOwn(knownDomains, name)) {
      const why = Object.hasOwn(missingDomains, name) ? ` (${missingDomains[name]}: leave it out)` : ''
      throw new HeedError('unsupported_option', `There is no domain '${name}'${why}. Known: ${Object.keys(knownDomains).join(', ')}.`, {
        details: { option: `domains.${name}` },
      })
    }
    if (store !== undefined && store !== false && !isStore(store)) throw notAStore(`domains.${name}`)
  }
  if (given.default !== undefined && !isStore(given.default)) throw notAStore('default')
  if (!given.default && Object.values(given.domains ?? {}).every((store) => !store)) {
    throw new HeedError('invalid_argument', 'CompositeStore has no store. Pass domains, or a default.', { details: { option: 'domains' } })
  }
  if (given.retention !== undefined) checkRetention(given.retention)
}

function isStore(value: unknown): boolean {
  return typeof value === 'object' && value !== null && ('getStore' in value || 'open' in value)
}

function notAStore(option: string): HeedError {
  return new HeedError('invalid_argument', `${option} must be a store, such as new MemoryLibSQL({ url: 'file:./memory.db' }).`, {
    details: { option },
  })
}

function canClose(part: unknown): part is { close(): Promise<void> } {
  return typeof part === 'object' && part !== null && 'close' in part && typeof part.close === 'function'
}
