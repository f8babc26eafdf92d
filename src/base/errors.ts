/** The codes of Heed's errors. A code never changes its meaning; new ones may be added. */
export type HeedErrorCode =
  // What the caller passed
  | 'invalid_argument'
  | 'invalid_agent'
  | 'invalid_tool'
  | 'invalid_schema'
  /** A policy does not parse, or not match the schema of policies. */
  | 'invalid_policy'
  /** The policies did not answer in time. */
  | 'policy_timeout'
  | 'invalid_signal'
  | 'invalid_message'
  | 'invalid_request_context'
  | 'invalid_cursor'
  | 'unsupported_option'
  | 'unknown_agent'
  | 'too_many_storages'
  /** A resource has as many open watches as it may have. */
  | 'too_many_watches'
  /** Its open watches expect as many categories as they may. */
  | 'too_many_categories'
  | 'duplicate_tool'
  /** The program runs on a Node that is too old. */
  | 'unsupported_runtime'
  // Models and providers
  | 'model_missing'
  | 'unknown_provider'
  | 'provider_not_installed'
  | 'api_key_missing'
  | 'unsupported_model'
  | 'provider_error'
  /** An embedder makes vectors of another length than those that are stored. */
  | 'dimension_changed'
  | 'stream_broken'
  | 'structured_output_invalid'
  // Tools
  | 'unknown_tool'
  | 'tool_input_invalid'
  | 'tool_output_invalid'
  | 'tool_timeout'
  | 'tool_interrupted'
  /** A tool threw a `ToolError`: its text is for everyone who reads the thread. */
  | 'tool_error'
  /** A tool threw any other error: its text is for the model and for operators. */
  | 'tool_failed'
  // Processors
  | 'processor_failed'
  | 'processor_timeout'
  | 'tripwire'
  // Scorers
  /** A stage of a scorer threw, or its judge gave no valid answer. */
  | 'scorer_failed'
  /** The Heed and the agent have no scorer of this key or id. */
  | 'unknown_scorer'
  // Versions of agents
  /** Another version or release was stored since the one that the caller has read. */
  | 'edit_conflict'
  /** The code of the agent does not let it be edited. */
  | 'edit_locked'
  /** Runs get the version that is to be deleted, or a run that is not finished has it. */
  | 'edit_in_use'
  | 'unknown_version'
  // Voice
  /** The agent has no voice, or its voice has no model for this. */
  | 'voice_missing'
  /** Bytes that are no sound, or of a type that can't be used here. */
  | 'invalid_audio'
  /** A turn or a sentence of a session failed for a reason that is no error of Heed. */
  | 'voice_failed'
  /** The thread has a session that another one would disturb. */
  | 'voice_busy'
  /** The session is over, or in another process. */
  | 'voice_gone'
  /** Sound or events of a session were lost, since one side was too slow. */
  | 'voice_overrun'
  /** The microphone or the speakers of a page can't be used. */
  | 'audio_unavailable'
  // Runs and threads
  | 'aborted'
  | 'no_active_run'
  | 'run_not_suspended'
  | 'run_parked'
  | 'run_not_parked'
  | 'run_abandoned'
  | 'thread_suspended'
  | 'thread_forbidden'
  | 'thread_not_found'
  | 'thread_exists'
  | 'thread_active'
  /** The thread of a run was deleted, or replaced by that of a backup. */
  | 'thread_deleted'
  | 'message_not_found'
  /** Something else of the thread has this id. */
  | 'id_taken'
  | 'fenced'
  | 'closed'
  /** A tool called `generate()` or `stream()` on a thread whose run waits for the tool. */
  | 'waits_for_itself'
  /** Agents called agents more often in a row than `maxAgentDepth` allows. */
  | 'agents_too_deep'
  // Workflows
  | 'invalid_workflow'
  | 'unknown_workflow'
  | 'step_input_invalid'
  | 'step_output_invalid'
  /** A step threw an error that is not one of Heed's. */
  | 'step_failed'
  | 'step_timeout'
  /** The process that ran a step stopped. */
  | 'step_interrupted'
  /** Steps beside each other changed one key of the state. */
  | 'workflow_state_conflict'
  /** The code has other steps than a run has recorded. */
  | 'workflow_changed'
  | 'event_timeout'
  /** The run of a workflow has ended. */
  | 'run_over'
  // Working memory
  | 'working_memory_conflict'
  | 'working_memory_too_large'
  | 'working_memory_version_gone'
  | 'read_only'
  // Policies
  /** Another version of the policies is stored than the one that was to be replaced. */
  | 'policy_conflict'
  // Over HTTP
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  /** A route of other servers that this one leaves out on purpose. */
  | 'unsupported_route'
  | 'method_not_allowed'
  /** The route is a WebSocket. */
  | 'upgrade_required'
  | 'too_large'
  | 'unsupported_media_type'
  | 'rate_limited'
  /** More threads wait for a run than the process allows. */
  | 'overloaded'
  | 'idempotency_key_reused'
  | 'unreachable'
  // Storage
  | 'store_failed'
  /** The connection was lost during a write, and whether it was stored is not known. The same call with the same ids stores it once. */
  | 'store_unknown'
  /** The database went back to an earlier state, as after a failover: what relied on the later one was not stored. */
  | 'store_rewound'
  | 'store_full'
  | 'quota_exceeded'
  | 'store_readonly'
  | 'store_gone'
  | 'store_newer'
  | 'store_corrupt'
  /** Other processes on the store can't be reached. */
  | 'bus_failed'

/** What an error has besides its code and message. */
export interface HeedErrorOptions {
  /** True when the same call may succeed later, unchanged. */
  retryable?: boolean
  cause?: unknown
  /** JSON-safe facts for programs: field names, ids, limits. Never secrets. */
  details?: Record<string, unknown>
}

const marker = Symbol.for('heed.error')

/** The one error family. `code` is stable; `message` says what to do. */
export class HeedError extends Error {
  override readonly name = 'HeedError'
  readonly code: HeedErrorCode
  readonly retryable: boolean
  readonly details: Record<string, unknown> | undefined

  constructor(code: HeedErrorCode, message: string, options: HeedErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.retryable = options.retryable ?? false
    this.details = options.details
    Object.defineProperty(this, marker, { value: true })
  }

  /** The form on the wire and in stored rows: no stack, no cause. */
  toJSON(): { name: string; code: HeedErrorCode; message: string; retryable: boolean; details?: Record<string, unknown> } {
    return {
      name: this.name,
      code: this.code,
      message: this.message,
      retryable: this.retryable,
      ...(this.details ? { details: this.details } : {}),
    }
  }
}

/**
 * An error that a tool throws in words for its readers: the model, the readers of the thread and callers over HTTP get its message as it
 * is. Of any other error that a tool throws, principals that are no operators get a code and an id.
 */
export class ToolError extends HeedError {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super('tool_error', message, options)
  }
}

/** True for errors of this family, also when two copies of Heed are installed. */
export function isHeedError(error: unknown): error is HeedError {
  try {
    return typeof error === 'object' && error !== null && (error as Record<symbol, unknown>)[marker] === true
  } catch {
    // A proxy that refuses to be read.
    return false
  }
}

/** The thrown value, or an error in place of one that throws when it is read, such as a revoked proxy. Never throws. */
export function readable(thrown: unknown): unknown {
  try {
    if (isHeedError(thrown) || !(thrown instanceof Error)) return thrown
    return String(thrown.name) && thrown
  } catch {
    return new Error(`${typeof thrown} that can't be read`)
  }
}

/** The message of a thrown value. Never throws. */
export function describe(error: unknown): string {
  if (typeof error === 'string') return error
  try {
    if (error instanceof Error) return String(error.message)
    return JSON.stringify(error) ?? String(error)
  } catch {
    // A cyclic value has no JSON, and a message may be a getter that throws.
    return `${typeof error} that can't be read`
  }
}

/** Why an optional package could not be imported: `missing` says what needs it and how to install it. Other causes are what they are. */
export function packageError(name: string, missing: string, cause: unknown): HeedError {
  const { code, message } = Object(cause) as { code?: unknown; message?: unknown }
  const options = { cause, details: { package: name } }
  // Vite replaces an optional package that it does not find by a module that throws the last one.
  const isMissing = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND' || String(message).startsWith('Could not resolve ')
  if (isMissing) return new HeedError('provider_not_installed', missing, options)
  return new HeedError('provider_error', `The package ${name} is installed and could not be loaded: ${describe(cause)}`, options)
}
