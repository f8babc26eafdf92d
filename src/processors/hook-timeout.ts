import { HeedError, isHeedError } from '../base/errors.ts'
import { isPromise } from '../base/is-promise.ts'
import type { Run } from '../run/loop/run.ts'
import { processorLabel } from './hooks.ts'
import type { Processor } from './processor.ts'

const defaultTimeoutMs = 300_000
/** After an abort, the hooks that still check the output get at most this long. */
const closingMs = 10_000

const timeouts = new WeakSet<HeedError>()

const pending = Symbol('pending')
const resolvedPending = Promise.resolve(pending)

/**
 * Waits for the promise of a hook: until an abort of the run, and at most until its timeout. The promise of an async function that awaits
 * nothing is resolved already and needs no timer. `closing`: the run is aborted, and the hook checks its output.
 */
export async function withHookTimeout<T>(run: Run, processor: Processor, hook: string, returned: Promise<T>, closing = false): Promise<T> {
  // Converted once: a thenable may start its work with every call of `then`.
  const promise = Promise.resolve(returned)
  const first = await Promise.race([promise, resolvedPending])
  return first === pending ? raceTimeout(run, processor, hook, promise, closing) : first
}

async function raceTimeout<T>(run: Run, processor: Processor, hook: string, returned: Promise<T>, closing: boolean): Promise<T> {
  // An aborted run does not wait, so it needs no timer.
  if (!closing && run.signal.aborted) return run.unlessAborted(returned)
  const { timeoutMs: allowed = defaultTimeoutMs } = processor
  const timeoutMs = closing ? Math.min(allowed, closingMs) : allowed
  return new Promise((resolve, reject) => {
    const timer = run.clock.after(timeoutMs, () => {
      const message = `Processor ${processorLabel(processor)} did not finish ${hook} within ${timeoutMs} ms. `
        + 'Give it a larger timeoutMs, or let it listen to abortSignal.'
      const error = new HeedError('processor_timeout', message, { details: { processorId: processor.id, hook, timeoutMs } })
      timeouts.add(error)
      reject(error)
    })
    const finish = <Value>(then: (value: Value) => void) => (value: Value) => {
      timer.cancel()
      then(value)
    }
    Promise.resolve(closing ? returned : run.unlessAborted(returned)).then(finish(resolve), finish(reject))
  })
}

/** Maps a value: at once, or when its promise resolves. */
export function whenResolved<T, Result>(value: T | Promise<T>, map: (value: T) => Result | Promise<Result>): Result | Promise<Result> {
  return isPromise(value) ? value.then(map) : map(value)
}

/** True for a timeout of this file: a processor may throw the same code itself. */
export function isTimeout(error: unknown): boolean {
  return isHeedError(error) && timeouts.has(error)
}
