import {
  APICallError, type LanguageModelV4CallOptions, type LanguageModelV4FinishReason, type LanguageModelV4StreamPart,
  type LanguageModelV4Usage,
} from '@ai-sdk/provider'
import { checkNames } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'

/** The answers of a model: call n takes step n, or a function returns the step of a call. */
export type Script<Call = ScriptedCall> = readonly ScriptedStep[] | ((call: Call) => ScriptedStep | Promise<ScriptedStep>)

/** A plain string is a text answer. */
export type ScriptedStep = string | ScriptedAnswer

/** The argument of a script's function. */
export interface ScriptedCall<Options extends { prompt: unknown; tools?: unknown } = LanguageModelV4CallOptions> {
  /** 0 for the first call. */
  readonly index: number
  readonly prompt: Options['prompt']
  readonly tools: Options['tools']
  readonly options: Options
}

/**
 * One answer. It is streamed in this order: reasoning, sources, text, files, tool calls, finish. A number of `parts` counts the stream
 * parts of the step from its first `reasoning-start` or `text-start`, without those that begin every answer (`stream-start`,
 * `response-metadata`).
 */
export interface ScriptedAnswer {
  /** A string is split after each word; an array is these deltas exactly. An empty one has no parts. */
  text?: string | readonly string[]
  reasoning?: string | readonly string[]
  toolCalls?: readonly ScriptedToolCall[]
  files?: readonly ScriptedFile[]
  sources?: readonly ScriptedSource[]
  /** Defaults to `tool-calls` if the step has tool calls, otherwise to `stop`. */
  finishReason?: LanguageModelV4FinishReason['unified'] | LanguageModelV4FinishReason
  /** Missing numbers are derived: a token for every four characters. */
  usage?: ScriptedUsage | LanguageModelV4Usage
  /** The call fails before the first part. */
  error?: Error | ScriptedFailure
  /**
   * The answer breaks after this many parts: the model's stream errors; a server destroys the socket, or, for a `ScriptedFailure`,
   * sends the protocol's error event (after 0 parts as the first event, as overloaded providers do).
   */
  errorAfter?: { parts: number; error?: Error | ScriptedFailure }
  /** The time by the clock before the call answers or fails. */
  delayMs?: number
  /** The call waits for this promise before it answers or fails; with `parts`, after this many parts. */
  gate?: PromiseLike<unknown> | { parts: number; until: PromiseLike<unknown> }
  /** Never finishes: streams everything but the finish, or this many parts, and then nothing until the call is aborted. */
  hang?: boolean | { parts: number }
  /** The whole stream, instead of all other fields: nothing is added to it. */
  parts?: readonly LanguageModelV4StreamPart[]
}

/** A tool call of a scripted model. */
export interface ScriptedToolCall {
  toolName: string
  /** A JSON value. Defaults to `{}`. */
  input?: unknown
  /** The input as text, which need not be valid JSON. Takes precedence over `input`. */
  inputText?: string
  /** Defaults to `call_<call>_<position>`. */
  toolCallId?: string
}

/** A file that a scripted model generates. */
export type ScriptedFile = { mediaType: string; data: string | Uint8Array } | { mediaType: string; url: string | URL }

/** A source that a scripted model names. */
export type ScriptedSource =
  | { url: string; title?: string; id?: string }
  | { mediaType: string; title: string; filename?: string; id?: string }

/** `inputTokens` includes the tokens that were read from and written to the cache. */
export interface ScriptedUsage {
  inputTokens?: number
  outputTokens?: number
  reasoningTokens?: number
  cachedInputTokens?: number
  cacheWriteTokens?: number
}

/** An error response of a provider. A scripted model throws it as an `APICallError`, as provider packages do. */
export interface ScriptedFailure {
  status: number
  message?: string
  /** The provider's type of the error, such as `overloaded_error`. Defaults to the one of the status. */
  type?: string
  headers?: Record<string, string>
}

/** The answer for a call; `index` is its position in the script. Throws if an array of steps has no more. */
export async function scriptedAnswer<Call>(
  script: Script<Call>,
  call: Call,
  { index, loop = false }: { index: number; loop?: boolean | undefined },
): Promise<ScriptedAnswer> {
  const step = typeof script === 'function' ? await script(call) : script[loop ? index % script.length : index]
  if (step === undefined) throw exhausted(typeof script === 'function' ? undefined : script.length, index)
  if (typeof step === 'string') return { text: step }
  checkNames('A scripted step', step, answerFields)
  for (const toolCall of step.toolCalls ?? []) checkNames('A scripted tool call', toolCall, toolCallFields)
  return step
}

const answerFields: ReadonlyArray<keyof ScriptedAnswer> = [
  'text', 'reasoning', 'toolCalls', 'files', 'sources', 'finishReason', 'usage', 'error', 'errorAfter', 'delayMs', 'gate', 'hang', 'parts',
]
const toolCallFields: ReadonlyArray<keyof ScriptedToolCall> = ['toolName', 'input', 'inputText', 'toolCallId']

function exhausted(scripted: number | undefined, index: number): HeedError {
  const call = index + 1
  if (scripted === undefined) {
    return new HeedError('invalid_argument', `The script's function returned no step for call ${call}. Return a string or a step.`)
  }
  return new HeedError(
    'invalid_argument',
    `The script has ${scripted} ${scripted === 1 ? 'step' : 'steps'} and this is call ${call}. ` +
      'Add a step, pass { loop: true }, or script a function.',
    { details: { scripted, call } },
  )
}

export function isFailure(error: unknown): error is ScriptedFailure {
  return typeof error === 'object' && error !== null && !(error instanceof Error) && 'status' in error
}

export function failureMessage(failure: ScriptedFailure): string {
  return failure.message ?? `The provider answered with status ${failure.status}.`
}

/** The error that a provider package throws for a failure; any other error as it is. */
export function toProviderError(error: unknown): unknown {
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
