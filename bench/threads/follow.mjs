/**
 * Reads a subscription. `finish()` resolves at the end of the next run; ask before sending.
 *
 * @param onChunk called with each chunk
 */
export function follow(subscription, onChunk = () => {}) {
  let waiting
  const read = async () => {
    for await (const chunk of subscription.stream) {
      onChunk(chunk)
      if (chunk.type !== 'finish') continue
      waiting?.resolve()
      waiting = undefined
    }
  }
  read().catch((error) => {
    if (!waiting) throw error
    waiting.reject(error)
  })
  return {
    finish() {
      waiting ??= Promise.withResolvers()
      return waiting.promise
    },
    close: () => subscription.unsubscribe(),
  }
}
