import type { Bus } from '../bus/contract.ts'
import type { Clock } from '../base/clock.ts'
import { Inbox } from '../inbox/inbox.ts'
import { inboxSettings, type InboxSettings } from '../inbox/options.ts'
import type { Logger } from '../base/logger.ts'
import { Pruner } from './pruner.ts'
import { Schedules } from '../schedule/schedules.ts'
import { defaultStorage } from '../store/default.ts'
import { notificationStoreOf, scheduleStoreOf, threadStoreOf, type Storage } from '../store/contract/storage.ts'
import type { RunEnvironment } from '../thread/runtime/runnable.ts'
import { ThreadRuntime } from '../thread/runtime/runtime.ts'
import type { TracingOptions } from '../tracing/options.ts'
import { EphemeralRuns } from './ephemeral-runs.ts'

export interface SiteOptions {
  clock?: Clock
  logger?: Logger
  tracing?: TracingOptions | false | undefined
  bus?: Bus
  inbox?: InboxSettings
}

/** The objects of one storage in one process. They are made here and nowhere else. */
export class Site implements RunEnvironment {
  /** Equal for sites of one storage, also where they belong to different Heeds. */
  readonly key: unknown
  readonly threads: ThreadRuntime
  readonly newId: () => string
  readonly inbox: Inbox
  readonly schedules: Schedules
  readonly pruner: Pruner
  readonly ephemeralRuns = new EphemeralRuns()
  readonly #given: Storage | undefined
  #default: Promise<Storage> | undefined

  /** Without a storage, the default one is opened when it is first used. */
  constructor(key: unknown, storage: Storage | undefined, options: SiteOptions) {
    const { clock, logger, tracing, bus, inbox: settings = inboxSettings() } = options
    this.key = key
    this.#given = storage
    this.threads = new ThreadRuntime({
      store: async () => threadStoreOf(await this.storage()),
      environment: this,
      tracing,
      ...(clock ? { clock } : {}),
      ...(logger ? { logger } : {}),
      ...(bus ? { bus } : {}),
    })
    this.newId = this.threads.newId
    const ephemeral = storage !== undefined && 'ephemeral' in storage && storage.ephemeral === true
    this.inbox = new Inbox(this.threads, { store: async () => notificationStoreOf(await this.storage()), settings, ephemeral })
    this.schedules = new Schedules(this.threads, { store: async () => scheduleStoreOf(await this.storage()), settings, ephemeral })
    this.pruner = new Pruner(this.threads, () => this.storage())
    for (const attendant of [this.inbox, this.ephemeralRuns, this.schedules, this.pruner]) this.threads.attend(attendant)
  }

  /** The storage of the threads and of everything beside them. */
  storage(): Promise<Storage> {
    return this.#given ? Promise.resolve(this.#given) : (this.#default ??= defaultStorage())
  }

  get clock(): Clock {
    return this.threads.clock
  }

  get logger(): Logger {
    return this.threads.logger
  }

  get tracing(): TracingOptions | false | undefined {
    return this.threads.tracing
  }
}
