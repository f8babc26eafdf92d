/** Ends the run with the caller's signal; answers how to stop listening to it. */
export function follow(stop: AbortController, signal: AbortSignal | undefined): () => void {
  if (!signal) return () => {}
  const onAbort = () => stop.abort(signal.reason)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  return () => signal.removeEventListener('abort', onAbort)
}
