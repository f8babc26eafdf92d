import { isHeedError, type HeedErrorCode } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import { isObject, isPlainObject } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import type { StreamedChunk } from '../sse/frames.ts'

/** Errors whose texts are written by providers, drivers or the program: they may have hosts, accounts and keys in them. */
const foreignTexts: ReadonlySet<string> = new Set<HeedErrorCode>([
  'provider_error', 'stream_broken', 'model_missing', 'unknown_provider', 'provider_not_installed', 'api_key_missing', 'unsupported_model',
  'processor_failed', 'dimension_changed', 'run_parked', 'store_failed', 'store_unknown', 'store_rewound', 'store_full', 'store_readonly',
  'store_gone', 'store_newer', 'store_corrupt', 'bus_failed', 'tool_failed', 'step_failed', 'scorer_failed', 'voice_failed',
])

/** Of how many runs, calls and records it is remembered that their errors were logged. */
const maxLogged = 1_000

/** Chunks that may contain errors. */
const suspects: ReadonlySet<string> = new Set([
  'error', 'tool-error', 'tool-result', 'tool-output', 'data-thread-snapshot', 'workflow-step-result', 'workflow-finish',
  'workflow-snapshot',
])

/** Values of `status` and `state` of a run, a step or a score whose `error` says why. */
const failures: ReadonlySet<unknown> = new Set(['failed', 'parked'])

/** Fields of schedules and notifications with the text of an error. */
const recordErrors = ['lastError', 'lastDeliveryError'] as const

/**
 * Replaces the texts of errors that are for operators. A caller that is limited to its resources gets the code and an id; the log has the
 * text under this id, without its secrets. The id of an error of a run is the run's.
 */
export class ErrorTexts {
  readonly #logger: Logger
  readonly #logged = new Set<string>()

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /** An error that rejects a request: the fields of its response, or undefined where its own text may be shown. */
  hide(error: unknown): { error: string; code: string; retryable: boolean; details: { errorId: string } } | undefined {
    if (!isHeedError(error) || !foreignTexts.has(error.code)) return undefined
    const errorId = newId()
    return { error: publicText(error.code, errorId), code: error.code, retryable: error.retryable, details: { errorId } }
  }

  readonly showChunk = <T extends StreamedChunk>(chunk: T): T => {
    if (chunk.type === 'tool-result' && !(isObject(chunk.payload) && chunk.payload.isError)) return chunk
    return suspects.has(chunk.type) ? (this.#show(chunk, chunk.runId ?? '') as T) : chunk
  }

  /** A JSON response, with the texts of errors replaced that messages, runs and outcomes in it have. */
  showJSON(text: string): string {
    return inJSON.test(text) ? JSON.stringify(this.#show(JSON.parse(text), '')) : text
  }

  /** Results and UI messages repeat the errors of calls without their codes: where their calls are here too, they are replaced alike. */
  #show(value: unknown, runId: string): unknown {
    const calls: HiddenCalls = new Map()
    const shown = this.#shown(value, runId, false, calls)
    return calls.size === 0 ? shown : withoutRepeated(shown, calls)
  }

  /** `isPart`: the value is in a list of parts or chunks, where an object of type `error` is an error. Elsewhere it is someone's data. */
  #shown(value: unknown, runId: string, isPart: boolean, calls: HiddenCalls, depth = 0): unknown {
    if (typeof value !== 'object' || value === null || depth > 100) return value
    if (Array.isArray(value)) return keepIfSame(value, value.map((item) => this.#shown(item, runId, isPart, calls, depth + 1)))
    const own = value as Record<string, unknown>
    const run = typeof own.runId === 'string' && own.runId !== '' ? own.runId : runId
    if (own.type === 'error' && isObject(own.payload)) {
      return { ...own, payload: { ...own.payload, error: this.#error(own.payload.error, run) } }
    }
    if (isPart && own.type === 'error') return { ...own, error: this.#error(own.error, run) }
    if (isPart && own.type === 'data-error') return { ...own, data: this.#error(own.data, run) }
    if (own.action === 'rejected' && typeof own.code === 'string' && foreignTexts.has(own.code)) {
      return { ...own, reason: publicText(own.code, run) }
    }
    if (own.from === 'WORKFLOW' && isObject(own.payload) && isObject(own.payload.error)) {
      return { ...own, payload: { ...own.payload, error: this.#error(own.payload.error, run) } }
    }
    if (own.type === 'tool-error' && isObject(own.payload)) return this.#toolError(own, own.payload, run)
    if (own.type === 'tool-result' && isObject(own.payload) && own.payload.isError) return this.#failedResult(own, own.payload, run)
    if (own.type === 'tool-invocation') return isObject(own.toolInvocation) ? this.#invocation(own, own.toolInvocation, run, calls) : value
    let copy: Record<string, unknown> | undefined
    for (const [name, inner] of Object.entries(own)) {
      const shown = this.#shown(inner, run, name === 'parts' || (name === 'content' && Array.isArray(inner)), calls, depth + 1)
      if (shown !== inner) (copy ??= { ...own })[name] = shown
    }
    // Data of the program has no codes of Heed.
    if (failures.has(own.status ?? own.state) && isObject(own.error) && (own.status === 'parked' || typeof own.error.code === 'string')) {
      const error = this.#error(own.error, run)
      if (error !== own.error) (copy ??= { ...own }).error = error
    }
    for (const name of recordErrors) {
      if (typeof own[name] === 'string') (copy ??= { ...own })[name] = this.#hidden('failed', String(own.id), { error: own[name] })
    }
    return copy ?? value
  }

  #toolError(chunk: Record<string, unknown>, payload: Record<string, unknown>, runId: string): unknown {
    const { error, toolCallId } = payload
    if (!isObject(error) || !foreignTexts.has(String(error.code))) return chunk
    const message = this.#hidden(String(error.code), String(toolCallId), { runId, error: error.message })
    return { ...chunk, payload: { ...payload, error: { ...error, message } } }
  }

  /** Of a tool that the provider executed. What the provider says about the result may repeat the error. */
  #failedResult(chunk: Record<string, unknown>, payload: Record<string, unknown>, runId: string): unknown {
    const { providerMetadata: _, ...shown } = payload
    if (!foreignTexts.has(String(payload.errorCode))) return chunk
    const error = typeof payload.result === 'string' ? payload.result : JSON.stringify(payload.result)
    const result = this.#hidden(String(payload.errorCode), String(payload.toolCallId), { runId, error })
    return { ...chunk, payload: { ...shown, result } }
  }

  #invocation(part: Record<string, unknown>, call: Record<string, unknown>, runId: string, calls: HiddenCalls): unknown {
    const { errorText, toolCallId } = call
    // Errors of a provider's tools that were stored before they had a code are the provider's too.
    const { errorCode = part.providerExecuted === true ? 'provider_error' : undefined } = call
    if (typeof errorText !== 'string' || !foreignTexts.has(String(errorCode))) return part
    const { resultProviderMetadata: _, ...rest } = part
    const shown = this.#hidden(String(errorCode), String(toolCallId), { runId, error: errorText })
    calls.set(String(toolCallId), { errorText, shown })
    return { ...rest, toolInvocation: { ...call, errorText: shown } }
  }

  /** The text for the caller, with the id under which the log has the other. */
  #hidden(code: string, id: string, fields: Record<string, unknown>): string {
    this.#logOnce(id, { id, code, ...fields })
    return publicText(code, id)
  }

  #error(error: unknown, runId: string): unknown {
    if (!isObject(error)) return error
    const { code, message, retryable } = error
    // An error without a code was thrown by the program.
    if (typeof code === 'string' && !foreignTexts.has(code)) return error
    if (runId !== '') this.#logOnce(runId, { runId, code, error: message })
    const shownCode = typeof code === 'string' ? code : 'internal_error'
    return { name: 'HeedError', code: shownCode, message: publicText(shownCode, runId), retryable: retryable === true }
  }

  #logOnce(id: string, fields: Record<string, unknown>): void {
    if (this.#logged.has(id)) return
    this.#logged.add(id)
    const [oldest] = this.#logged.size > maxLogged ? this.#logged : []
    if (oldest !== undefined) this.#logged.delete(oldest)
    this.#logger.error('an error was hidden from its caller', fields)
  }
}

/** The calls whose errors are hidden, with the text that stands for each. */
type HiddenCalls = Map<string, { errorText: string; shown: string }>

/** A value in which the errors of these calls are replaced: results of a run, prompts, and UI messages. */
function withoutRepeated(value: unknown, calls: HiddenCalls): unknown {
  if (Array.isArray(value)) return keepIfSame(value, value.map((item) => withoutRepeated(item, calls)))
  if (!isPlainObject(value)) return value
  const hidden = typeof value.toolCallId === 'string' ? calls.get(value.toolCallId) : undefined
  let copy: Record<string, unknown> | undefined
  for (const [name, inner] of Object.entries(value)) {
    // What a provider says about a result may repeat its error.
    if (hidden && (name === 'resultProviderMetadata' || (name === 'providerOptions' && value.type === 'tool-result'))) {
      delete (copy ??= { ...value })[name]
      continue
    }
    // A prompt has the text with its tags escaped.
    const isOutput = hidden && name === 'output' && isObject(inner) && (inner.type === 'error-text' || inner.type === 'error-json')
    const shown = isOutput ? { type: 'error-text', value: hidden.shown }
      : inner === hidden?.errorText ? hidden?.shown : withoutRepeated(inner, calls)
    if (shown !== inner) (copy ??= { ...value })[name] = shown
  }
  return copy ?? value
}

/** JSON that may contain an error. */
const inJSON = new RegExp([
  String.raw`"type":"(?:data-)?error"|"(?:status|state)":"(?:parked|failed)"|"action":"rejected"`,
  String.raw`"errorCode":"|"state":"output-error"|"last(?:Delivery)?Error":"`,
].join('|'))

function keepIfSame(before: readonly unknown[], after: readonly unknown[]): readonly unknown[] {
  return after.every((item, index) => item === before[index]) ? before : after
}

function publicText(code: string, id: string): string {
  const what = code === 'provider_error' || code === 'stream_broken' ? "The model's provider failed"
    : code === 'tool_failed' ? 'The tool failed' : 'The server failed'
  return `${what} (${code}).${id === '' ? '' : ` The operator finds the reason in the log, under ${id}.`}`
}
