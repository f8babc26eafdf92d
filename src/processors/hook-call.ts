import { describe, HeedError } from '../errors.ts'
import type { Run } from '../run/run.ts'
import type { CreatedAgentSignal, SignalInput } from '../signals/signal.ts'
import type { Hook, HookArgs } from './hooks.ts'
import { inTime, isPromise, isTimeout } from './in-time.ts'
import type { PartOfRun } from './part-of-run.ts'
import type { Processor } from './processor.ts'
import { refusal, TripwireAbort } from './tripwire.ts'

/** One call of a hook: what it may do meanwhile, and what its failure is called. */
export class HookCall<Name extends Hook = Hook> {
  /** Of a call that the end of the run does not end. */
  readonly closing: AbortController | undefined
  readonly #run: Run
  readonly #processor: Processor
  readonly #hook: Name
  /** It was given up. */
  #over = false
  #refusal: TripwireAbort | undefined
  /** What the hook was asked about, where that may be why it fails. */
  readonly #about: PartOfRun | undefined

  constructor(run: Run, processor: Processor, hook: Name, about?: PartOfRun) {
    this.#run = run
    this.#processor = processor
    this.#hook = hook
    this.#about = about
    // What was said before an abort is still looked at, by hooks that must not be told that it is over.
    this.closing = hook === 'processOutputResult' && run.signal.aborted ? new AbortController() : undefined
  }

  readonly abort = (reason?: string, options?: { retry?: boolean; metadata?: unknown }): never => {
    throw (this.#refusal = refusal(this.#run, this.#processor, reason, options))
  }

  readonly sendSignal = async (signal: SignalInput): Promise<CreatedAgentSignal> => {
    if (this.#over) throw new HeedError('no_active_run', `Processor '${this.#processor.id}' was given up in ${this.#hook}: its signal comes too late.`)
    // A chunk is being looked at: the echo of a signal can't wait until that is over.
    return this.#run.sendSignal(signal, this.#hook === 'processOutputStream')
  }

  /** Asks, and hands over what was answered. A promise only where the hook, or what is done about its answer, makes one wait. */
  ask<Args extends HookArgs<Name>>(args: Args, take: (returned: unknown, args: Args) => void | Promise<void>): Promise<void> | undefined {
    try {
      const hook = this.#processor[this.#hook] as (this: Processor, args: HookArgs<Name>) => unknown
      const returned = hook.call(this.#processor, args)
      if (isPromise(returned)) return this.#settled(this.#answer(returned, args, take))
      const taken = take(returned, args)
      if (taken) return this.#settled(taken)
      this.#holdToRefusal()
      return undefined
    } catch (error) {
      return this.#fail(error)
    }
  }

  async #answer<Args>(returned: Promise<unknown>, args: Args, take: (returned: unknown, args: Args) => void | Promise<void>): Promise<void> {
    await take(await inTime(this.#run, this.#processor, this.#hook, returned, this.closing !== undefined), args)
  }

  async #settled(answered: Promise<void>): Promise<void> {
    try {
      await answered
      this.#holdToRefusal()
    } catch (error) {
      this.#fail(error)
    }
  }

  /** A refusal counts, whatever the hook's own code made of it. */
  #holdToRefusal(): void {
    if (this.#refusal) throw this.#refusal
  }

  #fail(error: unknown): never {
    this.#over = true
    this.closing?.abort()
    if (isTimeout(error) || isOfRun(this.#run, error)) throw error
    this.#holdToRefusal()
    if (error instanceof TripwireAbort) throw error
    throw new HeedError('processor_failed', `Processor '${this.#processor.id}' failed in ${this.#hook}: ${describe(error)}`, {
      cause: error,
      details: { processorId: this.#processor.id, hook: this.#hook, ...(this.#about ? { messageIds: this.#about.messages.map(({ id }) => id) } : {}) },
    })
  }
}

/** The run itself is over: it was aborted, or its host won't take any more of it. */
function isOfRun(run: Run, error: unknown): boolean {
  return (run.signal.aborted && error === run.signal.reason) || run.isLost(error)
}
