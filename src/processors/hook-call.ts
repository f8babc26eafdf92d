import { describe, HeedError } from '../base/errors.ts'
import type { Run } from '../run/loop/run.ts'
import { isPromise } from '../base/is-promise.ts'
import type { CreatedAgentSignal, SignalInput } from '../signals/signal.ts'
import { called } from './called.ts'
import type { Hook } from './hooks.ts'
import { inTime, isTimeout } from './in-time.ts'
import type { PartOfRun } from './part-of-run.ts'
import type { Processor, ProcessorContext } from './processor.ts'
import { refusal, TripwireAbort } from './tripwire.ts'

type Take<Args> = (returned: unknown, args: Args) => void | Promise<void>

/**
 * A call of a hook: what it may do meanwhile, and what its failure is called. A processor's calls in a run are one object for as long as they end well,
 * and what a hook has kept of an earlier one goes on to work: most hooks return at once, and what is made for each call is what such a hook costs.
 */
export class HookCall {
  declare readonly processor: Processor
  declare readonly state: Record<string, unknown>
  readonly abort: ProcessorContext['abort'] = (reason, options) => this.refuse(reason, options)
  readonly sendSignal: ProcessorContext['sendSignal'] = (signal) => this.send(signal)
  /** Of a call that the end of the run does not end. */
  declare private closing: AbortController | undefined
  declare private readonly run: Run
  declare private hook: Hook
  /** What the hook was asked about, where that may be why it fails. */
  declare private about: PartOfRun | undefined
  /** It has not ended, or it did not end well: the next is another. */
  declare private busy: boolean
  /** It was given up. */
  declare private over: boolean
  declare private refusal: TripwireAbort | undefined

  constructor(run: Run, processor: Processor, state: Record<string, unknown>) {
    this.run = run
    this.processor = processor
    this.state = state
    this.closing = undefined
    this.hook = 'processInput'
    this.about = undefined
    this.busy = false
    this.over = false
    this.refusal = undefined
  }

  /** The processor's next call: this one again if it has ended well. */
  next(hook: Hook, about?: PartOfRun): HookCall {
    // What was said before an abort is still looked at, by hooks that must not be told that it is over.
    const closing = hook === 'processOutputResult' && this.run.signal.aborted
    const call = this.busy || closing ? new HookCall(this.run, this.processor, this.state) : this
    if (closing) call.closing = new AbortController()
    call.busy = true
    call.hook = hook
    call.about = about
    call.refusal = undefined
    return call
  }

  get signal(): AbortSignal {
    return this.closing?.signal ?? this.run.signal
  }

  private refuse(reason: string | undefined, options: { retry?: boolean; metadata?: unknown } | undefined): never {
    throw (this.refusal = refusal(this.run, this.processor, reason, options))
  }

  private async send(signal: SignalInput): Promise<CreatedAgentSignal> {
    if (this.over) throw new HeedError('no_active_run', `Processor ${called(this.processor)} was given up in ${this.hook}: its signal comes too late.`)
    // A chunk is being looked at: the echo of a signal can't wait until that is over.
    return this.run.sendSignal(signal, this.hook === 'processOutputStream')
  }

  /** Asks, and hands over what was answered. A promise only where the hook, or what is done about its answer, makes one wait. */
  ask<Args>(hook: (args: Args) => unknown, args: Args, take: Take<Args>): Promise<void> | undefined {
    try {
      const returned = hook.call(this.processor, args)
      if (isPromise(returned)) return this.answer(returned, args, take)
      const taken = take(returned, args)
      if (taken) return this.settled(taken)
      this.end()
      return undefined
    } catch (error) {
      return this.fail(error)
    }
  }

  private async answer<Args>(returned: Promise<unknown>, args: Args, take: Take<Args>): Promise<void> {
    try {
      const answered = await inTime(this.run, this.processor, this.hook, returned, this.closing !== undefined)
      const taken = take(answered, args)
      if (taken) await taken
      this.end()
    } catch (error) {
      this.fail(error)
    }
  }

  private async settled(taken: Promise<void>): Promise<void> {
    try {
      await taken
      this.end()
    } catch (error) {
      this.fail(error)
    }
  }

  private end(): void {
    this.holdToRefusal()
    this.busy = false
  }

  /** A refusal counts, whatever the hook's own code made of it. */
  private holdToRefusal(): void {
    if (this.refusal) throw this.refusal
  }

  private fail(error: unknown): never {
    // One that wants the model to be asked again is not given up: the run goes on, and so does what was kept of its earlier calls.
    this.over = !this.refusal?.tripwire.retry
    this.busy = this.over
    this.closing?.abort()
    if (isTimeout(error) || isOfRun(this.run, error)) throw error
    this.holdToRefusal()
    if (error instanceof TripwireAbort) throw error
    const { id } = this.processor
    throw new HeedError('processor_failed', `Processor ${called(this.processor)} failed in ${this.hook}: ${describe(error)}`, {
      cause: error,
      details: { processorId: id, hook: this.hook, ...(this.about ? { messageIds: this.about.messages.map(({ id }) => id) } : {}) },
    })
  }
}

/** The run itself is over: it was aborted, or its host won't take any more of it. */
function isOfRun(run: Run, error: unknown): boolean {
  return (run.signal.aborted && error === run.signal.reason) || run.isLost(error)
}
