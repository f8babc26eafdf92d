/** True for a promise of any kind. */
export function isPromise<T>(value: T | Promise<T>): value is Promise<T>
export function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T>
export function isPromise(value: unknown): boolean {
  return typeof (value as Partial<PromiseLike<unknown>> | null | undefined)?.then === 'function'
}

export function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value
}

/**
 * Awaits work until the signal aborts: then rejects with the signal's reason, and a later result goes to `late`. When the signal was
 * aborted before the call, work that ends within one turn of the event loop still counts.
 */
export function untilAborted<T>(work: PromiseLike<T>, signal: AbortSignal, late?: (value: T) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    let over = false
    const settle = (then: () => void) => {
      over = true
      signal.removeEventListener('abort', onAbort)
      then()
    }
    const onAbort = () => {
      if (!over) settle(() => reject(signal.reason))
    }
    if (signal.aborted) setImmediate(onAbort)
    else signal.addEventListener('abort', onAbort, { once: true })
    work.then(
      (value) => (over ? late?.(value) : settle(() => resolve(value))),
      (error: unknown) => {
        if (!over) settle(() => reject(error))
      },
    )
  })
}

/** Aborts `stop` when `signal` aborts. Returns a function that ends this. */
export function linkAbort(stop: AbortController, signal: AbortSignal | undefined): () => void {
  if (!signal) return () => {}
  const onAbort = () => stop.abort(signal.reason)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  return () => signal.removeEventListener('abort', onAbort)
}

/** Counts operations that must end before the process may close. Each `begin` has its `end`. */
export class InFlight {
  #count = 0
  #idle: PromiseWithResolvers<void> | undefined

  begin(): void {
    this.#count++
  }

  end(): void {
    if (--this.#count > 0) return
    this.#idle?.resolve()
    this.#idle = undefined
  }

  get isIdle(): boolean {
    return this.#count === 0
  }

  /** Resolves when no operation is in flight. */
  whenIdle(): Promise<void> {
    if (this.#count === 0) return Promise.resolve()
    this.#idle ??= Promise.withResolvers()
    return this.#idle.promise
  }
}

/** What the stores of this process have under way. A virtual clock waits for it: no timer of the clock tells when a disk is done. */
export const storeWork = new InFlight()

/** The longest delay of a timer. */
const maxTimerMs = 2 ** 31 - 1

/**
 * Keeps the process alive while code waits for what a thread publishes next: a program that only reads has no other handle open. Each
 * `begin` has its `end`.
 */
export class KeepAlive {
  #waiting = 0
  #handle: NodeJS.Timeout | undefined
  #closed = false

  begin(): void {
    if (this.#waiting++ > 0 || this.#closed) return
    if (this.#handle) this.#handle.ref()
    else this.#handle = setInterval(() => {}, maxTimerMs)
  }

  end(): void {
    if (--this.#waiting === 0) this.#handle?.unref()
  }

  /** From here on waiting code no longer keeps the process alive. */
  close(): void {
    this.#closed = true
    clearInterval(this.#handle)
    this.#handle = undefined
  }
}

/** One promise shared by all that wait for the same event. While it is awaited, the process stays alive. */
export class Notifier {
  readonly #keepAlive: KeepAlive | undefined
  #next: PromiseWithResolvers<void> | undefined

  constructor(keepAlive: KeepAlive | undefined) {
    this.#keepAlive = keepAlive
  }

  next(): Promise<void> {
    if (!this.#next) {
      this.#next = Promise.withResolvers()
      this.#keepAlive?.begin()
    }
    return this.#next.promise
  }

  notify(): void {
    if (!this.#next) return
    this.#next.resolve()
    this.#next = undefined
    this.#keepAlive?.end()
  }
}

/** Runs the work of one key one after the other, and of different keys at once. A key without work takes no memory. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<void>>()

  run<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(key)
    const result = before ? before.then(work) : work()
    const done = result.then(() => {}, () => {}).finally(() => {
      if (this.#last.get(key) === done) this.#last.delete(key)
    })
    this.#last.set(key, done)
    return result
  }
}
