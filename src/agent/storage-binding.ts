import { HeedError } from '../base/errors.ts'
import type { Heed } from '../heed/heed.ts'
import { implicitSites, type Site } from '../heed/site.ts'
import type { Storage } from '../store/contract/storage.ts'
import type { Runnable } from '../thread/runtime/runnable.ts'

/**
 * Which storage the threads of an agent are in. In this order: the site that a request chose, the storage of its memory or its processors,
 * the storage of its Heed, the site of the agent that called it last, the default storage.
 */
export class StorageBinding {
  readonly #storage: Storage | undefined
  readonly #fixed: Site | undefined
  #heed: Heed | undefined
  #inherited: Site | undefined

  constructor(storage: Storage | undefined, heed: Heed | undefined, fixed?: Site) {
    this.#storage = storage
    this.#heed = heed
    this.#fixed = fixed
  }

  get heed(): Heed | undefined {
    return this.#heed
  }

  /** The storage of the agent's memory or of one of its processors. */
  get storage(): Storage | undefined {
    return this.#storage
  }

  /** Chosen for a request, so that no other lookup applies. */
  get isFixed(): boolean {
    return this.#fixed !== undefined
  }

  site(): Site {
    if (this.#fixed) return this.#fixed
    if (!this.#heed && !this.#storage && this.#inherited) return this.#inherited
    return this.siteOf(this.#storage)
  }

  siteOf(storage: Storage | undefined): Site {
    return (this.#heed?.sites ?? implicitSites).of(storage)
  }

  /** The same binding at a site that a request chose. */
  fixedAt(site: Site | undefined): StorageBinding {
    return new StorageBinding(this.#storage, this.#heed, site)
  }

  get fixed(): Site | undefined {
    return this.#fixed
  }

  inherit(site: Site): void {
    this.#inherited = site
  }

  join(heed: Heed, key: string): void {
    if (this.#heed && !this.#heed.closed) {
      throw new HeedError(
        'invalid_agent',
        `The agent '${key}' belongs to another Heed, which is open. Create an agent for each, or close the other Heed first.`,
        { details: { key } },
      )
    }
    this.#heed = heed
  }
}

/** The site of an agent, which can run its threads from here on. */
export function registered(agent: Runnable & { site(): Site }): Site {
  const site = agent.site()
  site.threads.register(agent)
  return site
}
