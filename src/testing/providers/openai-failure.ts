import type { JSONObject } from '@ai-sdk/provider'
import { failureMessage } from '../scripted-failure.ts'
import type { ScriptedFailure } from '../scripted-step.ts'

const types: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
}

export function openaiError(failure: ScriptedFailure): { message: string; type: string; param: null; code: string } {
  const type = failure.type ?? types[failure.status] ?? 'server_error'
  return { message: failureMessage(failure), type, param: null, code: type }
}

export function openaiFailure(failure: ScriptedFailure): JSONObject {
  return { error: openaiError(failure) }
}
