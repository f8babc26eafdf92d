import type { Bus } from '../bus/contract.ts'
import type { Clock } from '../base/clock.ts'
import { HeedError } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import { Pruner } from '../heed/pruner.ts'
import { Inbox } from '../inbox/inbox.ts'
import { inboxSettings, type InboxSettings } from '../inbox/options.ts'
import { PassingRuns } from './passing-runs.ts'
import { Schedules } from '../schedule/schedules.ts'
import { defaultPlace, defaultStorage } from '../store/default.ts'
import { notificationStoreOf, placeOf, scheduleStoreOf, threadStoreOf, type Storage } from '../store/contract/storage.ts'
import { ThreadRuntime } from '../thread/runtime/runtime.ts'
import type { TracingOptions } from '../tracing/options.ts'

export interface RuntimesOptions {
  clock?: Clock
  logger?: Logger
  tracing?: TracingOptions | false | undefined
  storage?: Storage
  bus?: Bus
  inbox?: InboxSettings
}

const inboxes = new WeakMap<ThreadRuntime, Inbox>()
const schedules = new WeakMap<ThreadRuntime, Schedules>()
const passing = new WeakMap<ThreadRuntime, PassingRuns>()
const pruners = new WeakMap<ThreadRuntime, Pruner>()
const storages = new WeakMap<ThreadRuntime, () => Promise<Storage>>()
const places = new WeakMap<ThreadRuntime, unknown>()

/** A storage for each tenant is meant, one for each call is not. */
const maxStorages = 1_000

/** Storages that name one place are one, unless they keep things for different times. */
function keyOf(storage: Storage): unknown {
  const place = placeOf(storage)
  const kept = 'retention' in storage ? storage.retention : undefined
  return typeof place === 'string' && kept !== undefined ? `${place} ${JSON.stringify(kept)}` : place
}

function tooMany(): HeedError {
  return new HeedError('too_many_storages', `More than ${maxStorages} storages are open. Keep a storage and name it again, or keep tenants apart by their resourceId in one.`)
}

/** One runtime for each storage that is used, however many agents use it. */
export class Runtimes {
  readonly #made = new Map<unknown, ThreadRuntime>()
  #closed = false
  #default: string | undefined
  readonly #options: RuntimesOptions

  constructor(options: RuntimesOptions) {
    this.#options = options
  }

  /** The runtime of a storage, or of the default one. */
  of(given?: Storage): ThreadRuntime {
    const { clock, logger, tracing, bus } = this.#options
    const storage = given ?? this.#options.storage
    const place = storage ? keyOf(storage) : (this.#default ??= defaultPlace())
    let runtime = this.#made.get(place)
    // Its storage was closed under it. Who names the place again has another, or is told.
    if (runtime?.closing && !this.#closed) this.#made.delete(place)
    if (!runtime || (runtime.closing && !this.#closed)) {
      if (this.#made.size >= maxStorages) this.#forgetEnded()
      if (this.#made.size >= maxStorages) throw tooMany()
      let implicit: Promise<Storage> | undefined
      const found = () => (storage ? Promise.resolve(storage) : (implicit ??= defaultStorage()))
      runtime = new ThreadRuntime({ store: async () => threadStoreOf(await found()), ...(clock ? { clock } : {}), ...(logger ? { logger } : {}), tracing, ...(bus ? { bus } : {}) })
      const inbox = new Inbox(runtime, {
        store: async () => notificationStoreOf(await found()),
        settings: this.#options.inbox ?? inboxSettings(),
        ephemeral: storage !== undefined && 'ephemeral' in storage && storage.ephemeral === true,
      })
      runtime.attend(inbox)
      const runs = new PassingRuns()
      runtime.attend(runs)
      passing.set(runtime, runs)
      inboxes.set(runtime, inbox)
      const plans = new Schedules(runtime, {
        store: async () => scheduleStoreOf(await found()),
        settings: this.#options.inbox ?? inboxSettings(),
        ephemeral: storage !== undefined && 'ephemeral' in storage && storage.ephemeral === true,
      })
      runtime.attend(plans)
      schedules.set(runtime, plans)
      const pruner = new Pruner(runtime, found)
      runtime.attend(pruner)
      pruners.set(runtime, pruner)
      storages.set(runtime, found)
      places.set(runtime, place)
      this.#made.set(place, runtime)
      // It has nothing to end, and refuses whatever is asked of it.
      if (this.#closed) void runtime.close()
    }
    return runtime
  }

  /** Those whose storage was closed count no more. */
  #forgetEnded(): void {
    for (const [place, { closing }] of this.#made) if (closing) this.#made.delete(place)
  }

  /** Closes all of them, and those that are asked for later. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all(this.all().map((runtime) => runtime.close()))
  }

  get closed(): boolean {
    return this.#closed
  }

  all(): ThreadRuntime[] {
    return [...this.#made.values()]
  }
}

/** The inbox beside a runtime's threads. */
export function inboxOf(runtime: ThreadRuntime): Inbox {
  const inbox = inboxes.get(runtime)
  if (!inbox) throw new HeedError('closed', 'This runtime has no inbox.')
  return inbox
}

/** The runs beside a runtime's threads, of which nothing is stored. */
export function passingOf(runtime: ThreadRuntime): PassingRuns {
  const found = passing.get(runtime)
  if (!found) throw new HeedError('closed', 'This runtime runs threads alone.')
  return found
}

/** The schedules beside a runtime's threads. */
export function schedulesOf(runtime: ThreadRuntime): Schedules {
  const found = schedules.get(runtime)
  if (!found) throw new HeedError('closed', 'This runtime has no schedules.')
  return found
}

/** What removes what a runtime's storage keeps no longer. */
export function prunerOf(runtime: ThreadRuntime): Pruner {
  const found = pruners.get(runtime)
  if (!found) throw new HeedError('closed', 'This runtime has no storage.')
  return found
}

/** The storage of a runtime: its threads, and what else is kept. */
export async function storageOf(runtime: ThreadRuntime): Promise<Storage> {
  return (await storages.get(runtime)?.()) ?? runtime.store
}

/** Equal for runtimes of one storage, whichever Heed they are of. */
export function placeOfRuntime(runtime: ThreadRuntime): unknown {
  return places.get(runtime) ?? runtime
}

/** For agents that belong to no Heed. */
export const implicitRuntimes = new Runtimes({})
