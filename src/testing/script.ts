import {
  APICallError, type LanguageModelV4CallOptions, type LanguageModelV4FinishReason, type LanguageModelV4StreamPart,
  type LanguageModelV4Usage,
} from '@ai-sdk/provider'
import { HeedError } from '../base/errors.ts'

/** What the model does, call by call: call n takes step n; or a function that looks at the call and decides. */
export type Script<Call = ScriptedCall> = readonly ScriptedStep[] | ((call: Call) => ScriptedStep | Promise<ScriptedStep>)

/** A plain string is a text answer. */
export type ScriptedStep = string | ScriptedAnswer

/** What a script's function is given. */
export interface ScriptedCall<Options extends { prompt: unknown; tools?: unknown } = LanguageModelV4CallOptions> {
  /** 0 for the first call. */
  readonly index: number
  readonly prompt: Options['prompt']
  readonly tools: Options['tools']
  readonly options: Options
}

/**
 * One answer. It is said in this order: reasoning, sources, text, files, tool calls, finish. Wherever a number of `parts`
 * is asked for, it counts what the step says, from its first `reasoning-start` or `text-start`; what opens every answer
 * (`stream-start`, `response-metadata`) is not counted.
 */
export interface ScriptedAnswer {
  /** A string is split after each word; an array is these deltas exactly. Nothing is said for an empty one. */
  text?: string | readonly string[]
  reasoning?: string | readonly string[]
  toolCalls?: readonly ScriptedToolCall[]
  files?: readonly ScriptedFile[]
  sources?: readonly ScriptedSource[]
  /** `tool-calls` when the step has some, else `stop`. */
  finishReason?: LanguageModelV4FinishReason['unified'] | LanguageModelV4FinishReason
  /** What is left out is derived: a token for every four characters. */
  usage?: ScriptedUsage | LanguageModelV4Usage
  /** The call fails before anything is said. */
  error?: Error | ScriptedFailure
  /**
   * The answer breaks after so many parts: the model's stream errors; a server destroys the socket, or, for a
   * `ScriptedFailure`, sends the protocol's error event (after 0 parts as the very first event, as overloaded providers do).
   */
  errorAfter?: { parts: number; error?: Error | ScriptedFailure }
  /** How long the call waits, by the clock, before it answers or fails. */
  delayMs?: number
  /** The call waits for it before it answers or fails; with `parts`, in the middle of the answer. */
  gate?: PromiseLike<unknown> | { parts: number; until: PromiseLike<unknown> }
  /** Never finishes: says everything but the finish, or so many parts, and is silent until the call is aborted. */
  hang?: boolean | { parts: number }
  /** The stream, verbatim, in place of all the above: nothing is added, no opening and no finish. */
  parts?: readonly LanguageModelV4StreamPart[]
}

export interface ScriptedToolCall {
  toolName: string
  /** A JSON value; `{}` when left out. */
  input?: unknown
  /** The input as the text the model wrote, malformed if you like; wins over `input`. */
  inputText?: string
  /** `call_<call>_<position>` when left out. */
  toolCallId?: string
}

export type ScriptedFile = { mediaType: string; data: string | Uint8Array } | { mediaType: string; url: string | URL }

export type ScriptedSource =
  | { url: string; title?: string; id?: string }
  | { mediaType: string; title: string; filename?: string; id?: string }

/** Flat on purpose. `inputTokens` includes what was read from and written to the cache. */
export interface ScriptedUsage {
  inputTokens?: number
  outputTokens?: number
  reasoningTokens?: number
  cachedInputTokens?: number
  cacheWriteTokens?: number
}

/** A provider's refusal as it travels over HTTP. A scripted model throws it as the `APICallError` a provider package would. */
export interface ScriptedFailure {
  status: number
  message?: string
  /** The provider's own word for it, such as `overloaded_error`; derived from the status when left out. */
  type?: string
  headers?: Record<string, string>
}

/** The answer for a call, `index` being its place in the script. Throws when an array of steps has run out. */
export async function scriptedAnswer<Call>(
  script: Script<Call>,
  call: Call,
  { index, loop = false }: { index: number; loop?: boolean | undefined },
): Promise<ScriptedAnswer> {
  const step = typeof script === 'function' ? await script(call) : script[loop ? index % script.length : index]
  if (step === undefined) throw exhausted(typeof script === 'function' ? undefined : script.length, index)
  return typeof step === 'string' ? { text: step } : step
}

function exhausted(scripted: number | undefined, index: number): HeedError {
  const call = index + 1
  if (scripted === undefined) {
    return new HeedError('invalid_argument', `The script's function gave no step for call ${call}: return a string or a step.`)
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
