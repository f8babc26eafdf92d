import { checkNames, refused } from '../base/arguments.ts'
import { isHeedError } from '../base/errors.ts'
import { backoff, pause, readEvents, retryAfterMs, type Connection } from './connection.ts'

/** How a stream that was lost is continued. */
export interface Reconnect {
  /** How many attempts in a row may fail. Defaults to no limit. */
  maxRetries?: number
  /** The first pause; it grows with every failure and is reset when a stream begins. Defaults to 500 ms. */
  delayMs?: number
  /** Called when the connection is lost, before it is opened again. */
  onLost?: () => void
  /** Called when a stream has begun, also the first time. */
  onOpen?: () => void
}

interface EventSource {
  open(): Response | Promise<Response>
  /** Called with each response, before its events are read. */
  onResponse?(response: Response): void
  /** Ends the stream. */
  closed: AbortSignal
}

function checkReconnect(reconnect: unknown): void {
  if (typeof reconnect === 'boolean') return
  checkNames('reconnect', reconnect, ['maxRetries', 'delayMs', 'onLost', 'onOpen'])
  const { maxRetries, delayMs, onLost, onOpen } = reconnect as { [Name in keyof Reconnect]: unknown }
  for (const [name, value] of Object.entries({ maxRetries, delayMs }))
    if (value !== undefined && !(typeof value === 'number' && value >= 0)) throw refused(`reconnect.${name}`, 'a number of at least 0')
  for (const [name, value] of Object.entries({ onLost, onOpen }))
    if (value !== undefined && typeof value !== 'function') throw refused(`reconnect.${name}`, 'a function')
}

/** The events of a stream of the server. With `reconnect`, it is opened again when the connection is lost, until `closed`. */
export async function* reconnecting(
  connection: Connection, source: EventSource, reconnect: boolean | Reconnect,
): AsyncGenerator<unknown, void> {
  checkReconnect(reconnect)
  const { maxRetries = Infinity, delayMs = 500, onLost, onOpen } = typeof reconnect === 'object' ? reconnect : {}
  const { signal } = connection
  const stopped = signal ? AbortSignal.any([source.closed, signal]) : source.closed
  let failures = 0
  while (!source.closed.aborted) {
    let failure: unknown
    let isCallbackError = false
    try {
      const response = await source.open()
      failures = 0
      try {
        onOpen?.()
      } catch (error) {
        isCallbackError = true
        await response.body?.cancel().catch(() => {})
        throw error
      }
      source.onResponse?.(response)
      yield* readEvents(response, connection.maxSilenceMs(response))
      if (reconnect === false) return
    } catch (error) {
      if (source.closed.aborted) return
      signal?.throwIfAborted()
      // An error of a callback is final. An error of the `headers` function is not: a token may be available later.
      if (isCallbackError || reconnect === false || failures >= maxRetries || isFinal(error)) throw error
      failure = error
    }
    if (failures++ >= maxRetries) return
    onLost?.()
    await pause(Math.max(backoff(failures - 1, delayMs, 30_000), retryAfterMs(failure)), stopped).catch(() => {})
  }
}

/** A new attempt would get the same error. */
function isFinal(error: unknown): boolean {
  return isHeedError(error) && !error.retryable
}
