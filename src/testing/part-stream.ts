/**
 * A stream that says parts as they become due. Nothing is made before it is asked for; what is due at once is enqueued at
 * once. When the signal aborts, what was not read yet is dropped and the stream errors with the signal's reason.
 */
export function partStream<Source, Part>(
  parts: readonly Source[],
  due: (signal: AbortSignal) => AsyncGenerator<number, void, undefined>,
  form: { part: (source: Source) => Part | undefined; error: (error: unknown) => unknown },
  signal: AbortSignal | undefined,
): ReadableStream<Part> {
  const stop = new AbortController()
  const counts = due(stop.signal)
  let sent = 0
  let onAbort = () => {}
  const release = () => signal?.removeEventListener('abort', onAbort)

  return new ReadableStream<Part>(
    {
      start(controller) {
        onAbort = () => {
          stop.abort(signal?.reason)
          controller.error(signal?.reason)
        }
        if (signal?.aborted) onAbort()
        else signal?.addEventListener('abort', onAbort, { once: true })
      },
      async pull(controller) {
        try {
          for (let said = 0; said === 0; ) {
            const next = await counts.next()
            if (stop.signal.aborted) return
            if (next.done) {
              release()
              return controller.close()
            }
            for (; sent < next.value; sent++) {
              const part = form.part(parts[sent]!)
              if (part === undefined) continue
              controller.enqueue(part)
              said++
            }
          }
        } catch (error) {
          release()
          if (!stop.signal.aborted) controller.error(form.error(error))
        }
      },
      cancel(reason) {
        release()
        stop.abort(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
