import { describe, HeedError, isHeedError, readable } from '../../base/errors.ts'
import type { ChunkError } from '../../message/chunk.ts'
import type { LanguageModel } from './model.ts'

/**
 * The fields of a provider package's error that Heed reads. It never copies the request and its headers: they may contain secrets.
 * An error part in the middle of a stream has these fields too, and is no `Error`.
 */
export interface ProviderFailure {
  message?: string
  statusCode?: number
  isRetryable?: boolean
  responseHeaders?: Record<string, string>
}

const networkCodes = new Set([
  'ECONNRESET', 'ECONNREFUSED', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_SOCKET',
])

/** The `HeedError` for an error of a provider. `streaming`: part of the answer was published, so the stream is broken. */
export function providerError(thrown: unknown, model: LanguageModel, streaming: boolean): HeedError {
  const error = readable(thrown)
  if (isHeedError(error)) return error
  const failure = readFailure(error)
  const name = `${model.provider}/${model.modelId}`
  const status = typeof failure.statusCode === 'number' ? failure.statusCode : undefined
  const reason = typeof failure.message === 'string' ? failure.message : describe(error)
  return new HeedError(
    streaming ? 'stream_broken' : 'provider_error',
    streaming ? `The answer of ${name} broke off: ${reason}` : `${name} failed${status === undefined ? '' : ` (${status})`}: ${reason}`,
    {
      cause: error,
      retryable: typeof failure.isRetryable === 'boolean' ? failure.isRetryable : isNetworkError(error),
      details: { provider: model.provider, modelId: model.modelId, ...(status === undefined ? {} : { statusCode: status }) },
    },
  )
}

/** Reads each field once: the object is foreign, and a getter may throw. */
function readFailure(error: unknown): ProviderFailure {
  if (typeof error !== 'object' || error === null) return {}
  try {
    const { message, statusCode, isRetryable } = error as ProviderFailure
    return { message, statusCode, isRetryable }
  } catch {
    return {}
  }
}

function isNetworkError(error: unknown): boolean {
  for (let cause: unknown = error, depth = 0; cause instanceof Error && depth < 5; cause = cause.cause, depth++) {
    const { code } = cause as NodeJS.ErrnoException
    if (code !== undefined && networkCodes.has(code)) return true
    if (cause instanceof TypeError && /fetch failed|terminated|network/i.test(cause.message)) return true
  }
  return false
}

/** The thrown value as an `Error` whose message can be read. */
export function asError(error: unknown): Error {
  try {
    if (error instanceof Error && typeof error.message === 'string') return error
  } catch {
    // The message is a getter that throws.
  }
  return new Error(describe(error), { cause: error })
}

/** True for errors whose messages have the words of a provider. */
export function isProviderError(code: unknown): boolean {
  return code === 'provider_error' || code === 'stream_broken'
}

export function chunkError(error: unknown): ChunkError {
  if (isHeedError(error)) return { name: error.name, message: error.message, code: error.code, retryable: error.retryable }
  return { name: nameOf(error), message: describe(error) }
}

function nameOf(error: unknown): string {
  try {
    if (error instanceof Error) return String(error.name)
  } catch {
    // The name is a getter that throws.
  }
  return 'Error'
}
