import { HeedError, isHeedError, type HeedErrorCode } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import type { Logger } from '../../base/logger.ts'
import type { ErrorTexts } from './error-texts.ts'
import { jsonResponse, type HttpResponse } from './exchange.ts'

const statuses: Partial<Record<HeedErrorCode, number>> = {
  unauthorized: 401,
  forbidden: 403,
  thread_forbidden: 403,
  read_only: 403,
  edit_locked: 403,
  // Not 429: waiting does not help.
  quota_exceeded: 403,
  too_many_watches: 403,
  too_many_categories: 403,
  not_found: 404,
  unsupported_route: 404,
  unknown_agent: 404,
  unknown_workflow: 404,
  unknown_scorer: 404,
  thread_not_found: 404,
  message_not_found: 404,
  unknown_version: 404,
  method_not_allowed: 405,
  // Not 404: clients interpret that as a server without this route.
  no_active_run: 409,
  run_not_suspended: 409,
  run_not_parked: 409,
  run_over: 409,
  thread_exists: 409,
  id_taken: 409,
  thread_active: 409,
  thread_deleted: 409,
  working_memory_conflict: 409,
  edit_conflict: 409,
  edit_in_use: 409,
  working_memory_version_gone: 409,
  thread_suspended: 409,
  voice_busy: 409,
  voice_gone: 409,
  aborted: 409,
  idempotency_key_reused: 409,
  too_large: 413,
  unsupported_media_type: 415,
  upgrade_required: 426,
  tripwire: 422,
  rate_limited: 429,
  overloaded: 429,
  provider_error: 502,
  stream_broken: 502,
  closed: 503,
  fenced: 503,
  store_failed: 503,
  store_unknown: 503,
  store_rewound: 503,
  store_full: 503,
  store_readonly: 503,
  store_gone: 503,
  store_newer: 503,
  store_corrupt: 503,
  bus_failed: 503,
  // The request is valid; the agent's configuration or code is at fault.
  model_missing: 500,
  unknown_provider: 500,
  provider_not_installed: 500,
  api_key_missing: 500,
  unsupported_model: 500,
  processor_failed: 500,
  tool_timeout: 500,
}

/** The response for an error: its code and message, never a stack or a cause. `texts` hides the messages that are for operators. */
export function errorResponse(
  error: unknown, logger: Logger, route: { method: string; path: string }, texts?: ErrorTexts,
): HttpResponse {
  if (!isHeedError(error)) {
    const errorId = newId()
    logger.error('a request failed', { ...route, errorId, error: String(error) })
    return failure(500, {
      error: 'The server failed to process the request. The error was logged.',
      code: 'internal_error',
      retryable: false,
      details: { errorId },
    })
  }
  const status = statuses[error.code] ?? 400
  const hidden = texts?.hide(error)
  if (status >= 500 || hidden) logger.error('a request failed', { ...route, code: error.code, ...hidden?.details, error: error.message })
  if (hidden) return failure(status, hidden)
  const { code, message, retryable, details } = error
  return failure(status, { error: message, code, retryable, ...(details ? { details } : {}) })
}

/** Reports a thread of another resource as missing, so that reads can't probe which ids exist. */
export function hideForeignThread(error: unknown, threadId: string | undefined): unknown {
  if (!isHeedError(error) || (error.code !== 'thread_forbidden' && error.code !== 'thread_not_found')) return error
  return threadNotFound(threadId)
}

export function threadNotFound(threadId: string | undefined): HeedError {
  return new HeedError('thread_not_found', 'There is no such thread.', threadId === undefined ? {} : { details: { threadId } })
}

function failure(status: number, body: Record<string, unknown>): HttpResponse {
  const { retryAfterMs = 1000 } = (body.details ?? {}) as { retryAfterMs?: number }
  if (status === 401) return jsonResponse(status, body, { 'www-authenticate': 'Bearer' })
  if (status === 426) return jsonResponse(status, body, { upgrade: 'websocket', 'sec-websocket-version': '13' })
  return jsonResponse(status, body, status === 429 || status === 503 ? { 'retry-after': String(Math.ceil(retryAfterMs / 1000)) } : {})
}
