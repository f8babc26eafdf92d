import { HeedError } from '../base/errors.ts'
import { defaultStorageKey } from '../store/default.ts'
import { storageKey, type Storage } from '../store/contract/storage.ts'
import { Site, type SiteOptions } from './site.ts'

export interface SitesOptions extends SiteOptions {
  /** Used where none is given. */
  storage?: Storage
}

/** A storage for each tenant is intended; a storage for each call is a mistake. */
const maxStorages = 1_000

/** Storages that name one database share a site, unless their retention differs. */
function siteKeyOf(storage: Storage): unknown {
  const key = storageKey(storage)
  const retention = 'retention' in storage ? storage.retention : undefined
  return typeof key === 'string' && retention !== undefined ? `${key} ${JSON.stringify(retention)}` : key
}

/** One site for each storage in use, shared by all agents that use it. */
export class Sites {
  readonly #open = new Map<unknown, Site>()
  readonly #options: SitesOptions
  #closed = false
  #defaultKey: string | undefined

  constructor(options: SitesOptions) {
    this.#options = options
  }

  /** The site of a storage, or of the default one. */
  of(given?: Storage): Site {
    const storage = given ?? this.#options.storage
    const key = storage ? siteKeyOf(storage) : (this.#defaultKey ??= defaultStorageKey())
    const found = this.#open.get(key)
    // Where the storage of a site was closed by other code, the next use opens another site.
    if (found && (!found.threads.closing || this.#closed)) return found
    this.#open.delete(key)
    return this.#add(key, storage)
  }

  #add(key: unknown, storage: Storage | undefined): Site {
    if (this.#open.size >= maxStorages) this.#dropClosed()
    if (this.#open.size >= maxStorages) {
      throw new HeedError(
        'too_many_storages',
        `More than ${maxStorages} storages are open. Keep a storage and pass it again, or separate tenants by resourceId in one storage.`,
      )
    }
    const site = new Site(key, storage, this.#options)
    this.#open.set(key, site)
    // It has opened nothing yet, and rejects every call from here on.
    if (this.#closed) void site.threads.close()
    return site
  }

  #dropClosed(): void {
    for (const [key, { threads }] of this.#open) if (threads.closing) this.#open.delete(key)
  }

  /** Closes all sites, and those that are asked for later. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all(this.all().map((site) => site.threads.close()))
  }

  get closed(): boolean {
    return this.#closed
  }

  all(): Site[] {
    return [...this.#open.values()]
  }
}

/** For agents that belong to no Heed. Module state, since nothing else is shared by agents that are made independently of each other. */
export const implicitSites = new Sites({})
