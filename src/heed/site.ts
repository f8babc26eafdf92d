import type { Clock } from '../base/clock.ts'
import { HeedError } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import type { Bus } from '../bus/contract.ts'
import type { RunEditor } from '../editor/contract.ts'
import { Inbox } from '../inbox/inbox.ts'
import { inboxSettings, type InboxSettings } from '../inbox/options.ts'
import type { ToolPolicy } from '../run/loop/run-contract.ts'
import { Schedules } from '../schedule/schedules.ts'
import type { ScorerLike } from '../scorers/contract.ts'
import { Scoring } from '../scorers/scoring.ts'
import { notificationStoreOf, scheduleStoreOf, storageKey, threadStoreOf, watchStoreOf, type Storage } from '../store/contract/storage.ts'
import { defaultStorageKey, defaultStorage } from '../store/default.ts'
import type { RunEnvironment } from '../thread/runtime/runnable.ts'
import type { RunSlotPool } from '../thread/runtime/run-slots.ts'
import { ThreadRuntime } from '../thread/runtime/runtime.ts'
import { ThreadChanges } from '../thread/stream/thread-changes.ts'
import type { TracingOptions } from '../tracing/options.ts'
import type { AnsweringModel } from '../voice/contract.ts'
import { Watches, type ReceivePolicy, type WatchesOptions } from '../watch/watches.ts'
import { EphemeralRuns } from './ephemeral-runs.ts'
import { Pruner } from './pruner.ts'

interface SiteOptions {
  clock?: Clock
  logger?: Logger
  tracing?: TracingOptions | false | undefined
  bus?: Bus
  runSlots?: RunSlotPool
  editor?: RunEditor | undefined
  /** The scorers of the Heed, by their ids. */
  scorers?: ReadonlyMap<string, ScorerLike>
  inbox?: InboxSettings
  receivePolicy?: ReceivePolicy | undefined
  /** The categories that the policies of a resource name. */
  policyCategories?: WatchesOptions['policyCategories']
  toolPolicy?: ToolPolicy | undefined
  /** Whether the Heed has channels: their messages are in its own storage. */
  hasChannels?: (() => boolean) | undefined
  /** Called when a storage is first used. */
  onOpen?: (() => void) | undefined
}

/** Names the runs of an agent on a thread. */
export function answeringKey(agentId: string, threadId: string): string {
  return JSON.stringify([agentId, threadId])
}

/** The objects of one storage in one process. They are made here and nowhere else. */
export class Site implements RunEnvironment {
  /** Equal for sites of one storage, also where they belong to different Heeds. */
  readonly key: unknown
  readonly threads: ThreadRuntime
  readonly newId: () => string
  readonly clock: Clock
  readonly inbox: Inbox
  readonly schedules: Schedules
  readonly watches: Watches
  readonly pruner: Pruner
  readonly threadChanges: ThreadChanges
  /** The scorers of the Heed, by their ids. */
  readonly scorers: ReadonlyMap<string, ScorerLike>
  /** Scores the runs of agents that have scorers. */
  readonly scoring: Scoring
  readonly ephemeralRuns = new EphemeralRuns()
  /** Models of voice sessions, which answer on their threads in place of those of the agents. By `answeringKey()`. */
  readonly answering = new Map<string, AnsweringModel>()
  /** Absent where agents are not edited. */
  readonly editor: RunEditor | undefined
  /** Absent where no policies are configured. */
  readonly toolPolicy: ToolPolicy | undefined
  readonly #given: Storage | undefined
  readonly #logDefault: Logger['info']
  #default: Promise<Storage> | undefined

  /** Without a storage, the default one is opened when it is first used. */
  constructor(key: unknown, storage: Storage | undefined, options: SiteOptions) {
    const { clock, logger, tracing, bus, runSlots, onOpen, inbox: settings = inboxSettings() } = options
    this.key = key
    this.editor = options.editor
    this.toolPolicy = options.toolPolicy
    this.scorers = options.scorers ?? new Map()
    this.#given = storage
    this.threads = new ThreadRuntime({
      store: async () => threadStoreOf(await this.storage()),
      environment: this,
      tracing,
      ...(clock ? { clock } : {}),
      ...(logger ? { logger } : {}),
      ...(bus ? { bus } : {}),
      ...(runSlots ? { runSlots } : {}),
    })
    // The agents of a Heed are expected there; an agent that belongs to none may have been forgotten.
    this.#logDefault = (message, fields) => this.threads.logger[onOpen ? 'info' : 'warn'](message, fields)
    this.newId = this.threads.newId
    this.clock = this.threads.clock
    const ephemeral = storage !== undefined && 'ephemeral' in storage && storage.ephemeral === true
    this.inbox = new Inbox(this.threads, { store: async () => notificationStoreOf(await this.storage()), settings, ephemeral })
    this.schedules = new Schedules(this.threads, { store: async () => scheduleStoreOf(await this.storage()), settings, ephemeral })
    this.watches = new Watches(this.threads, {
      store: async () => watchStoreOf(await this.storage()), settings, ephemeral, policy: options.receivePolicy,
      policyCategories: options.policyCategories,
      hasChannelsElsewhere: options.hasChannels,
    })
    this.pruner = new Pruner(this.threads, () => this.storage())
    this.scoring = new Scoring(this.threads, settings, this.scorers)
    this.threadChanges = new ThreadChanges(async () => {
      await this.threads.open()
      return this.threads
    })
    const services = [this.inbox, this.ephemeralRuns, this.schedules, this.watches, this.scoring, this.pruner, this.threadChanges]
    for (const service of services) this.threads.addService(service)
    if (onOpen) this.threads.addService({ onOpen, close: async () => {} })
  }

  /** The storage of the threads and of everything beside them. */
  storage(): Promise<Storage> {
    return this.#given ? Promise.resolve(this.#given) : (this.#default ??= defaultStorage(this.#logDefault))
  }

  /** The program gave no storage: the first use creates the default file. */
  get isDefault(): boolean {
    return this.#given === undefined
  }

  get logger(): Logger {
    return this.threads.logger
  }

  get tracing(): TracingOptions | false | undefined {
    return this.threads.tracing
  }
}

interface SitesOptions extends SiteOptions {
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

  /** Lets the runs of all sites go on to their next boundary, or until the promise has resolved. */
  async drain(until: Promise<void>): Promise<void> {
    await Promise.all(this.all().map((site) => site.threads.drain(until)))
  }

  /** Closes all sites, and those that are asked for later. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all(this.all().map((site) => site.threads.close()))
  }

  get closed(): boolean {
    return this.#closed
  }

  /** The bus of all sites; by default, each has that of its storage. */
  get bus(): Bus | undefined {
    return this.#options.bus
  }

  all(): Site[] {
    return [...this.#open.values()]
  }
}

/** For agents that belong to no Heed. Module state, since nothing else is shared by agents that are made independently of each other. */
export const implicitSites = new Sites({})
