import type { Bus } from '../../bus/contract.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { ThreadStore } from '../../store/contract/threads.ts'
import type { RunEnvironment } from './runnable.ts'
import type { TracingOptions } from '../../tracing/options.ts'

export interface ThreadRuntimeOptions {
  /** The store, or how to get it when it is first needed. */
  store: ThreadStore | (() => Promise<ThreadStore>)
  /** Connects the processes on the store. Defaults to the store's own bus. */
  bus?: Bus
  clock?: Clock
  logger?: Logger
  /** `false`: nothing is traced, also where an SDK is registered. */
  tracing?: TracingOptions | false | undefined
  newId?: () => string
  /** What agents are given to prepare a run. The runtime itself unless told. */
  environment?: RunEnvironment
  /** How long a process counts as alive after its last heartbeat. Defaults to 10 s; it renews three times as often. */
  leaseMs?: number
  /** How often threads that nobody runs are looked for. Defaults to 5 s. */
  sweepMs?: number
}
