import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from '@ai-sdk/provider'

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
