import { HeedError, isHeedError } from '../base/errors.ts'
import type { Run } from '../run/loop/run.ts'
import { isPromise } from '../base/is-promise.ts'
import { called } from './called.ts'
import type { Processor } from './processor.ts'

const defaultTimeoutMs = 300_000
/** Whoever aborts a run waits for no more than this until what was said is checked. */
const closingMs = 10_000

const ours = new WeakSet<HeedError>()

const notYet = Symbol('not yet')
const known = Promise.resolve(notYet)

/**
 * Waits for what a hook returned: not beyond an abort of the run, and not longer than it may take. What an async function that awaits nothing returned
 * is there already, and is not worth a timer. `closing`: the run is aborted already and this is still wanted.
 */
export async function inTime<T>(run: Run, processor: Processor, hook: string, returned: Promise<T>, closing = false): Promise<T> {
  // Once: what only looks like a promise may begin its work whenever somebody waits for it.
  const promise = Promise.resolve(returned)
  const first = await Promise.race([promise, known])
  return first === notYet ? unlessLate(run, processor, hook, promise, closing) : first
}

async function unlessLate<T>(run: Run, processor: Processor, hook: string, returned: Promise<T>, closing: boolean): Promise<T> {
  // Then it is not waited for, and no timer need say so.
  if (!closing && run.signal.aborted) return run.unlessAborted(returned)
  const { timeoutMs: allowed = defaultTimeoutMs } = processor
  const timeoutMs = closing ? Math.min(allowed, closingMs) : allowed
  return new Promise((resolve, reject) => {
    const timer = run.clock.after(timeoutMs, () => {
      const error = new HeedError('processor_timeout', `Processor ${called(processor)} did not come to an end in ${hook} within ${timeoutMs} ms. Give it a larger timeoutMs, or let it listen to abortSignal.`, {
        details: { processorId: processor.id, hook, timeoutMs },
      })
      ours.add(error)
      reject(error)
    })
    const settle = <Value>(then: (value: Value) => void) => (value: Value) => {
      timer.cancel()
      then(value)
    }
    Promise.resolve(closing ? returned : run.unlessAborted(returned)).then(settle(resolve), settle(reject))
  })
}

/** Goes on with a value when it is there: at once, if that is now. */
export function whenKnown<T, Next>(value: T | Promise<T>, goOn: (value: T) => Next | Promise<Next>): Next | Promise<Next> {
  return isPromise(value) ? value.then(goOn) : goOn(value)
}

/** The same code thrown by a processor itself says nothing of this run. */
export function isTimeout(error: unknown): boolean {
  return isHeedError(error) && ours.has(error)
}
