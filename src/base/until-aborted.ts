/**
 * Waits for work, but not beyond an abort: then it rejects with the signal's reason. What the work comes to afterwards goes to `late`,
 * or nowhere. When the signal had aborted before, work that needs no more than a turn of the event loop is still waited for.
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
