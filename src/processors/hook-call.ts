import { describe, HeedError, isHeedError } from '../base/errors.ts'
import { isPromise } from '../base/promises.ts'
import type { Run } from '../run/loop/run.ts'
import type { CreatedAgentSignal, SignalInput } from '../signals/signal.ts'
import type { HookMessages } from './hook-messages.ts'
import { processorLabel, type Hook } from './hooks.ts'
import type { Processor, ProcessorContext } from './processor.ts'
import { createTripwire, TripwireAbort } from './tripwire.ts'

type Apply<Args> = (returned: unknown, args: Args) => void | Promise<void>

/**
 * The calls of one processor's hooks in a run: what a hook may do during its call, and the errors of its failures. One object serves all
 * calls of a processor as long as each succeeds, and functions that a hook has kept from an earlier call stay valid: most hooks return at
 * once, so the objects created for a call are most of its cost.
 */
export class HookCall {
  declare readonly processor: Processor
  declare readonly state: Record<string, unknown>
  readonly abort: ProcessorContext['abort'] = (reason, options) => this.reject(reason, options)
  readonly sendSignal: ProcessorContext['sendSignal'] = (signal) => this.send(signal)
  /** Set for a call that an abort of the run doesn't end. */
  declare private closing: AbortController | undefined
  declare private readonly run: Run
  declare private hook: Hook
  /** The messages that the hook receives, where the error of a failure names them. */
  declare private about: HookMessages | undefined
  /** The call is running or has failed: the next call gets another object. */
  declare private busy: boolean
  /** The call has failed: its `sendSignal` rejects. */
  declare private abandoned: boolean
  declare private rejection: TripwireAbort | undefined

  constructor(run: Run, processor: Processor, state: Record<string, unknown>) {
    this.run = run
    this.processor = processor
    this.state = state
    this.closing = undefined
    this.hook = 'processInput'
    this.about = undefined
    this.busy = false
    this.abandoned = false
    this.rejection = undefined
  }

  /** The object of the next call: this one, unless its call is running or has failed. */
  next(hook: Hook, about?: HookMessages): HookCall {
    // The output before an abort is still checked, by hooks that must not see the abort.
    const closing = hook === 'processOutputResult' && this.run.signal.aborted
    const call = this.busy || closing ? new HookCall(this.run, this.processor, this.state) : this
    if (closing) call.closing = new AbortController()
    call.busy = true
    call.hook = hook
    call.about = about
    call.rejection = undefined
    return call
  }

  get signal(): AbortSignal {
    return this.closing?.signal ?? this.run.signal
  }

  private reject(reason: string | undefined, options: { retry?: boolean; metadata?: unknown } | undefined): never {
    throw (this.rejection = createTripwire(this.run, this.processor, reason, options))
  }

  private async send(signal: SignalInput): Promise<CreatedAgentSignal> {
    if (this.abandoned) {
      const message = `Processor ${processorLabel(this.processor)} failed in ${this.hook} or timed out: its signal comes too late.`
      throw new HeedError('no_active_run', message)
    }
    // The stream waits for this hook, so the echo of the signal can't wait for the stream.
    return this.run.sendSignal(signal, this.hook === 'processOutputStream')
  }

  /** Calls the hook and applies its result. Returns a promise only where the hook or `apply` returned one. */
  invoke<Args>(hook: (args: Args) => unknown, args: Args, apply: Apply<Args>): Promise<void> | undefined {
    try {
      const returned = hook.call(this.processor, args)
      if (isPromise(returned)) return this.awaitResult(returned, args, apply)
      const applied = apply(returned, args)
      if (applied) return this.awaitApplied(applied)
      this.end()
      return undefined
    } catch (error) {
      return this.fail(error)
    }
  }

  private async awaitResult<Args>(returned: Promise<unknown>, args: Args, apply: Apply<Args>): Promise<void> {
    try {
      const result = await withHookTimeout(this.run, this.processor, this.hook, returned, this.closing !== undefined)
      const applied = apply(result, args)
      if (applied) await applied
      this.end()
    } catch (error) {
      this.fail(error)
    }
  }

  private async awaitApplied(applied: Promise<void>): Promise<void> {
    try {
      await applied
      this.end()
    } catch (error) {
      this.fail(error)
    }
  }

  private end(): void {
    this.throwRejection()
    this.busy = false
  }

  /** A rejection counts, also when the hook caught the error of `abort()`. */
  private throwRejection(): void {
    if (this.rejection) throw this.rejection
  }

  private fail(error: unknown): never {
    // After a rejection with `retry` the run continues, and functions that the hook has kept stay valid.
    this.abandoned = !this.rejection?.tripwire.retry
    this.busy = this.abandoned
    this.closing?.abort()
    if (isTimeout(error) || isOfRun(this.run, error)) throw error
    this.throwRejection()
    if (error instanceof TripwireAbort) throw error
    const { id } = this.processor
    throw new HeedError('processor_failed', `Processor ${processorLabel(this.processor)} failed in ${this.hook}: ${describe(error)}`, {
      cause: error,
      details: { processorId: id, hook: this.hook, ...(this.about ? { messageIds: this.about.ids } : {}) },
    })
  }
}

/** True when the run itself has ended: it was aborted, or its host accepts no more of its output. */
function isOfRun(run: Run, error: unknown): boolean {
  return (run.signal.aborted && error === run.signal.reason) || run.isLost(error)
}

/** The processors of one run, each bound to its calls. */
export interface BoundProcessors {
  input: readonly HookCall[]
  output: readonly HookCall[]
}

/** Binds each processor once, also one that is in both lists or twice in one. */
export function bindProcessors(run: Run, input: readonly Processor[], output: readonly Processor[]): BoundProcessors {
  const first = bindList(run, input, [])
  return { input: first, output: bindList(run, output, first) }
}

function bindList(run: Run, processors: readonly Processor[], before: readonly HookCall[]): HookCall[] {
  const bound = before.length === processors.length ? before.slice() : []
  for (let index = 0; index < processors.length; index++) {
    const processor = processors[index] as Processor
    // Most processors are in both lists, at the same index.
    if (bound[index]?.processor === processor) continue
    bound[index] = findBound(processor, before) ?? findBound(processor, bound) ?? new HookCall(run, processor, {})
  }
  return bound
}

/** A run has few processors: a linear search costs less than a map. */
function findBound(processor: Processor, bound: readonly HookCall[]): HookCall | undefined {
  for (let index = 0; index < bound.length; index++) if (bound[index]?.processor === processor) return bound[index]
  return undefined
}

/** All processors of a run, each once. */
export function allBound({ input, output }: BoundProcessors): readonly HookCall[] {
  return [...new Set([...input, ...output])]
}

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
async function withHookTimeout<T>(run: Run, processor: Processor, hook: string, returned: Promise<T>, closing = false): Promise<T> {
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
function isTimeout(error: unknown): boolean {
  return isHeedError(error) && timeouts.has(error)
}
