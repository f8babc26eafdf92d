import { APICallError } from '@ai-sdk/provider'
import type { ScriptedFailure } from './scripted-step.ts'

export function isFailure(error: unknown): error is ScriptedFailure {
  return typeof error === 'object' && error !== null && !(error instanceof Error) && 'status' in error
}

export function failureMessage(failure: ScriptedFailure): string {
  return failure.message ?? `The provider answered with status ${failure.status}.`
}

/** A failure as a provider package reports it to its caller; any other error as it is. */
export function thrown(error: unknown): unknown {
  if (!isFailure(error)) return error
  const message = failureMessage(error)
  return new APICallError({
    message,
    url: 'scripted:',
    requestBodyValues: undefined,
    statusCode: error.status,
    responseHeaders: error.headers ?? {},
    responseBody: JSON.stringify({ error: { message, type: error.type } }),
  })
}
