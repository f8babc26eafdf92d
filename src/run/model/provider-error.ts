import { describe, HeedError, isHeedError } from '../../base/errors.ts'
import { retryAfter } from '../../base/retry-after.ts'
import type { LanguageModel } from './model.ts'
import type { ChunkError } from '../chunk.ts'

/**
 * The parts of a provider package's error that Heed reads. Its request and headers stay where they are: they may hold secrets. What
 * comes in the middle of a stream has these fields too, but is no `Error`.
 */
interface ProviderFailure {
  message?: string
  statusCode?: number
  isRetryable?: boolean
  responseHeaders?: Record<string, string>
}

const networkCodes = new Set(['ECONNRESET', 'ECONNREFUSED', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_SOCKET'])

/** One error for whatever a provider failed with. `shown`: part of the answer was already out, so it is a broken stream. */
export function providerError(error: unknown, model: LanguageModel, shown: boolean): HeedError {
  if (isHeedError(error)) return error
  const failure = failureIn(error)
  const where = `${model.provider}/${model.modelId}`
  const status = typeof failure.statusCode === 'number' ? failure.statusCode : undefined
  const what = typeof failure.message === 'string' ? failure.message : describe(error)
  return new HeedError(
    shown ? 'stream_broken' : 'provider_error',
    shown ? `The answer of ${where} broke off: ${what}` : `${where} failed${status === undefined ? '' : ` (${status})`}: ${what}`,
    {
      cause: error,
      retryable: typeof failure.isRetryable === 'boolean' ? failure.isRetryable : isNetworkError(error),
      details: { provider: model.provider, modelId: model.modelId, ...(status === undefined ? {} : { statusCode: status }) },
    },
  )
}

/** Read once: it is a stranger's object, and reading it may throw. */
function failureIn(error: unknown): ProviderFailure {
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

const firstDelay = 500
/** A provider that asks for more patience than this is passed over. */
export const longestDelay = 60_000

/** Milliseconds to wait before another attempt: as long as the provider asked, else longer each time. */
export function retryDelay(error: HeedError, attempt: number, now: number): number {
  return retryAfter((error.cause as ProviderFailure | undefined)?.responseHeaders, now) ?? firstDelay * 2 ** attempt * (0.75 + Math.random() / 2)
}

/** What was thrown as an error whose message can be read. */
export function asError(error: unknown): Error {
  try {
    if (error instanceof Error && typeof error.message === 'string') return error
  } catch {
    // Its message is a getter that throws.
  }
  return new Error(describe(error), { cause: error })
}

export function chunkError(error: unknown): ChunkError {
  if (isHeedError(error)) return { name: error.name, message: error.message, code: error.code, retryable: error.retryable }
  return { name: nameOf(error), message: describe(error) }
}

function nameOf(error: unknown): string {
  try {
    if (error instanceof Error) return String(error.name)
  } catch {
    // A name that can't be read is none.
  }
  return 'Error'
}
