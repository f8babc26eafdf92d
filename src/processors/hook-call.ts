import { describe, HeedError } from '../errors.ts'
import type { Run } from '../run/run.ts'
import type { CreatedAgentSignal, SignalInput } from '../signals/signal.ts'
import { called } from './called.ts'
import type { Hook } from './hooks.ts'
import { inTime, isPromise, isTimeout } from './in-time.ts'
import type { PartOfRun } from './part-of-run.ts'
import type { Processor, ProcessorContext } from './processor.ts'
import { refusal, TripwireAbort } from './tripwire.ts'

type Take<Args> = (returned: unknown, args: Args) => void | Promise<void>

/** One call of a hook: what it may do meanwhile, and what its failure is called. Made as often as what the hook is given, and in the same way. */
export class HookCall {
  /** Of a call that the end of the run does not end. */
  declare readonly closing: AbortController | undefined
  declare readonly abort: ProcessorContext['abort']
  declare readonly sendSignal: ProcessorContext['sendSignal']
  declare private readonly run: Run
  declare private readonly processor: Processor
  declare private readonly hook: Hook
  /** What the hook was asked about, where that may be why it fails. */
  declare private readonly about: PartOfRun | undefined
  /** It was given up. */
  declare private over: boolean
  declare private refusal: TripwireAbort | undefined

  constructor(run: Run, processor: Processor, hook: Hook, about?: PartOfRun) {
    // What was said before an abort is still looked at, by hooks that must not be told that it is over.
    this.closing = hook === 'processOutputResult' && run.signal.aborted ? new AbortController() : undefined
    this.abort = (reason, options) => this.refuse(reason, options)
    this.sendSignal = (signal) => this.send(signal)
    this.run = run
    this.processor = processor
    this.hook = hook
    this.about = about
    this.over = false
    this.refusal = undefined
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
      if (isPromise(returned)) return this.settled(this.answer(returned, args, take))
      const taken = take(returned, args)
      if (taken) return this.settled(taken)
      this.holdToRefusal()
      return undefined
    } catch (error) {
      return this.fail(error)
    }
  }

  private async answer<Args>(returned: Promise<unknown>, args: Args, take: Take<Args>): Promise<void> {
    await take(await inTime(this.run, this.processor, this.hook, returned, this.closing !== undefined), args)
  }

  private async settled(answered: Promise<void>): Promise<void> {
    try {
      await answered
      this.holdToRefusal()
    } catch (error) {
      this.fail(error)
    }
  }

  /** A refusal counts, whatever the hook's own code made of it. */
  private holdToRefusal(): void {
    if (this.refusal) throw this.refusal
  }

  private fail(error: unknown): never {
    this.over = true
    this.closing?.abort()
    if (isTimeout(error) || isOfRun(this.run, error)) throw error
    this.holdToRefusal()
    if (error instanceof TripwireAbort) throw error
    throw new HeedError('processor_failed', `Processor ${called(this.processor)} failed in ${this.hook}: ${describe(error)}`, {
      cause: error,
      details: { processorId: this.processor.id, hook: this.hook, ...(this.about ? { messageIds: this.about.messages.map(({ id }) => id) } : {}) },
    })
  }
}

/** The run itself is over: it was aborted, or its host won't take any more of it. */
function isOfRun(run: Run, error: unknown): boolean {
  return (run.signal.aborted && error === run.signal.reason) || run.isLost(error)
}
