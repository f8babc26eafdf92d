import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { MessageRow } from '../../message/row.ts'
import type { AgentExecutionOptions, MemoryOptions } from '../../run/options.ts'
import type { RunSetup } from '../../run/loop/run-contract.ts'
import type { Fence, Window } from '../../store/contract/threads.ts'
import type { TracingOptions } from '../../tracing/options.ts'
import type { RunTrace } from '../../tracing/run-trace.ts'

/** What a thread knows of an agent: enough to start a run of it. */
export interface Runnable {
  readonly id: string
  readonly name: string
  /** Everything the run needs, found for its request. */
  prepare(options: AgentExecutionOptions, request: RunRequest, environment: RunEnvironment): Promise<PreparedRun>
  /** How much history this call wants, where that depends on the request or on its options; nothing when it is always the same. */
  memoryOptions?(options: AgentExecutionOptions): Promise<MemoryOptions> | undefined
  /** The keys of a request context that may be stored; nothing when none may. */
  contextKeys?(): Promise<readonly string[]> | undefined
  /** Makes titles for threads that were marked for one. */
  titler?(): Promise<Titler>
  /** How much history the prompt begins with. */
  window(options: AgentExecutionOptions): Window
  /** Whether a guardrail of its own may refuse what it is given. */
  readonly canRefuse?: boolean
}

/** Whoever has something to do when threads have nothing. */
export interface Attendant {
  /** A run ended here, and none follows. */
  idle(threadId: string): void
  /** Another process changed the inboxes of these resources. */
  changed?(resourceIds: readonly string[]): void
  /** Now and then: see to what nobody told. */
  look(): void
  close(): Promise<void>
}

/** Writes a title from the first user message of a thread. Rejects when the model fails, or with the reason of the signal. */
export type Titler = (text: string, signal: AbortSignal, threadId: string) => Promise<string>

/** The setup of a run, and the function that writes the title of its thread, where one is wanted. */
export interface PreparedRun extends RunSetup {
  titler: Titler | undefined
}

export interface RunRequest {
  runId: string
  threadId?: string
  resourceId?: string
  /** The lease of the thread, where there is one. */
  fence?: Fence
  /** History and input, oldest first. */
  rows: MessageRow[]
  /** How many of the last rows are new input. */
  inputCount: number
  /** Steps that were done before, when a run is continued. */
  stepsDone: number
  trace?: RunTrace | undefined
}

/** What surrounds every run. */
export interface RunEnvironment {
  clock: Clock
  logger: Logger
  tracing?: TracingOptions | false | undefined
  newId(): string
}
