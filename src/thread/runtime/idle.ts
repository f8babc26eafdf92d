import type { Clock } from '../../base/clock.ts'
import type { ThreadRuntime } from './runtime.ts'

/**
 * Resolves when the threads that are at work here, and were not `before`, have ended or are suspended. `rested` is called when one has:
 * what that starts on it is waited for too.
 */
export async function restOf(runtime: ThreadRuntime, before: ReadonlySet<string>, rested: (threadId: string) => Promise<void>): Promise<void> {
  await Promise.all([...runtime.work().keys()].filter((threadId) => !before.has(threadId)).map(async (threadId) => {
    for (let work = runtime.work().get(threadId); work && !runtime.closing; work = runtime.work().get(threadId)) {
      await work
      if (!runtime.closing) await rested(threadId)
    }
  }))
}

/** As long as that takes, or as long as there is time for it. */
export async function within(clock: Clock, timeoutMs: number | undefined, work: Promise<unknown>): Promise<void> {
  if (timeoutMs === undefined) {
    await work
    return
  }
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = clock.after(timeoutMs, resolve)
  try {
    await Promise.race([work, promise])
  } finally {
    timer.cancel()
    // What comes after it is for the log of whoever does it.
    work.catch(() => {})
  }
}
