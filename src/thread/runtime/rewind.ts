import { describe, HeedError } from '../../base/errors.ts'
import type { Rewound } from '../../store/contract/threads.ts'
import { resolveLocalWaiters } from '../send/outcomes.ts'
import { announceEnded } from './ended-threads.ts'
import type { ThreadRuntime } from './runtime.ts'

/** After how long it is tried again to release what the former owner has. */
const againMs = 1_000

/** Hears of threads that ended through the store, and of a database that went back. Returns a function that stops this. */
export async function listenToStore(runtime: ThreadRuntime): Promise<() => void> {
  const stopEnded = await runtime.store.onThreadsEnded?.((threadIds) => announceEnded(runtime, threadIds))
  const stopRewound = await runtime.store.onRewound?.((rewound) => onRewound(runtime, rewound))
  return () => {
    stopEnded?.()
    stopRewound?.()
  }
}

/**
 * The database went back. What this process knows of runs and streams may not be there any more, and leases that it has may be granted
 * again. So it goes on as a process that just started: under another name in leases, without runs, and with streams that start over.
 * Other processes find this out by themselves.
 */
function onRewound(runtime: ThreadRuntime, rewound: Rewound): void {
  if (runtime.closing) return
  const former = runtime.lease.beginAnew()
  report(runtime, rewound)
  const known = new Set(runtime.knownThreadIds())
  for (const threadId of known) {
    runtime.endHostsBefore(threadId, rewound.floor, lost(`The run of thread ${threadId} was stopped`))
    runtime.liveOf(threadId)?.beginLife(rewound.floor)
  }
  runtime.clock.after(rewound.restMs, () => void runtime.sweep().catch(() => {}), { background: true })
  void untilDone(runtime, () => goOn(runtime, former, known))
}

/** Repeats what fails, until the runtime closes: callers wait for it, and what is done twice has the effect of once. */
async function untilDone(runtime: ThreadRuntime, act: () => Promise<void>): Promise<void> {
  for (let attempt = 0; !runtime.closing; attempt += 1) {
    try {
      return await act()
    } catch (error) {
      if (runtime.isClosedBy(error)) return
      if (attempt === 0) runtime.logger.error('threads of before could not be released; this is tried again', { error: describe(error) })
    }
    await new Promise<void>((resolve) => runtime.clock.after(againMs, resolve, { background: true }))
  }
}

/** Becomes known under the new name, releases what the former one has in the database, and tells callers what became of their signals. */
async function goOn(runtime: ThreadRuntime, former: string, known: ReadonlySet<string>): Promise<void> {
  await runtime.lease.restart()
  await runtime.store.resign(former)
  for (const threadId of known) await resolveLocalWaiters(runtime, threadId, lost('The signal is not stored any more'))
}

function report({ logger }: ThreadRuntime, { lost: count, from, to, restMs }: Rewound): void {
  const fields = { code: 'store_rewound', lost: count, from, to, restMs }
  const then = 'runs continue from what is stored'
  if (count > 0) logger.error(`the database lost commits that it had confirmed to this process; ${then}`, fields)
  else logger.warn(`the database was replaced by another, which has the commits that this process remembers; ${then}`, fields)
}

/** The error of what the database lost, or of a run that relied on it. */
export function lost(what: string): HeedError {
  const why = 'the database was replaced by one that may lack its last commits.'
  return new HeedError('store_rewound', `${what}: ${why} Repeat it with the same ids.`, { retryable: true })
}
