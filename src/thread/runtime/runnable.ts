import type { Clock } from '../../base/clock.ts'
import { HeedError } from '../../base/errors.ts'
import type { JSONObject } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import type { Chunk } from '../../message/chunk.ts'
import type { MessageRow } from '../../message/row.ts'
import type { AgentExecutionOptions, MemoryOptions } from '../../run/options.ts'
import type { RunSetup } from '../../run/loop/run-contract.ts'
import type { Editable, RunEdit, RunEditor } from '../../editor/contract.ts'
import type { AgentScorers } from '../../scorers/contract.ts'
import type { NewScore } from '../../store/contract/scores.ts'
import type { ScheduleRecord } from '../../store/contract/schedules.ts'
import type { BegunRun, Fence, MailboxRow, RunEnd, Send, StepCommit, ThreadStore, Window, Windows } from '../../store/contract/threads.ts'
import type { TracingOptions } from '../../tracing/options.ts'
import type { RunTrace } from '../../tracing/run-trace.ts'

/** An agent as threads know it: enough to start a run of it. */
export interface Runnable {
  readonly id: string
  readonly name: string
  /** Resolves everything that the run needs for its request. */
  prepare(options: AgentExecutionOptions, request: RunRequest, environment: RunEnvironment): Promise<PreparedRun>
  /** The memory options of this call, where they depend on the request or on its options; undefined when they are constant. */
  memoryOptions?(options: AgentExecutionOptions): Promise<MemoryOptions> | undefined
  /** The fields of a thread for the store; `workingMemory` of its metadata is stored as working memory. */
  describeThread?(thread: { title?: string; metadata?: JSONObject }, options: AgentExecutionOptions): Promise<NonNullable<Send['thread']>>
  /** The function that writes titles of threads. */
  titler?(): Promise<Titler>
  /** The window of a call: the part of history that the prompt begins with. */
  window(options: AgentExecutionOptions): Window
  /** The scorers of its runs for a request; undefined where it has none. */
  readonly scorers?: ((options: Pick<AgentExecutionOptions, 'requestContext'>) => AgentScorers | Promise<AgentScorers>) | undefined
  /** The scorers of a step of a workflow. */
  stepScorers?(path: string): AgentScorers
  /** What an editor may change of it. */
  readonly editable?: Editable
  /** The keys that it declares in `requestContextSchema`: what templates of its versions may read. */
  contextKeys?(): Promise<readonly string[]>
  /** Whether a processor of the agent may reject input. */
  readonly canRejectInput?: boolean
  /**
   * Runs in place of a model: work that plans itself, such as a run of a workflow, under the same lease, mailbox and commits. Resolves when
   * a commit has ended the run.
   */
  perform?(seat: RunSeat): Promise<void>
  /**
   * Begins what an occurrence of a schedule begins in place of a send, and returns its id; undefined where the signal is to be sent. Called
   * again for an occurrence that was not recorded as sent.
   */
  begin?(schedule: ScheduleRecord, at: number): Promise<string | undefined>
  /** What is recorded of such work when its run is parked, and the chunk that says so. */
  parked?(
    begun: BegunRun, store: ThreadStore, error: HeedError,
  ): Promise<{ workflow: NonNullable<StepCommit['workflow']>; chunk: Chunk } | undefined>
}

/** What work on a thread gets of its host. */
export interface RunSeat {
  readonly begun: BegunRun
  readonly store: ThreadStore
  /** Aborts when the run is aborted, when the lease is lost, and when the process closes. */
  readonly signal: AbortSignal
  /** The span of the run, for the spans of its steps. */
  readonly trace?: RunTrace | undefined
  /** The process is about to close: the work ends at its next boundary, by throwing. */
  isDraining(): boolean
  /** Commits, and takes the signals that have arrived. With `end`, the run ends unless a signal was taken. */
  commit(commit: Pick<StepCommit, 'workflow'> & { step: number; end: boolean }): Promise<{ taken: MailboxRow[]; ended: boolean }>
  emit(chunk: Chunk): void
  /** Called when a signal interrupts the run. */
  onInterrupt(listener: () => void): void
}

/** Work of a process besides its runs. The runtime calls it, and closes it first. */
export interface BackgroundService {
  /** The store begins to open: the first sweep follows. */
  onOpen?(): void
  /** The last run of a thread ended in this process. */
  onThreadIdle?(threadId: string): void
  /** Another process changed the inboxes of these resources. */
  onInboxChange?(resourceIds: readonly string[]): void
  /** Called with every sweep, to find what no message announced. */
  poll?(): void
  close(): Promise<void>
}

/** Writes a title from the first user message of a thread. Rejects when the model fails, or with the reason of the signal. */
export type Titler = (text: string, signal: AbortSignal, threadId: string) => Promise<string>

/** The setup of a run, and the function that writes the title of its thread, where one is due. */
export interface PreparedRun extends RunSetup {
  titler: Titler | undefined
  /** The work to score the run: `rows` are stored with an end of this status, then `onStored` is called. */
  scores?: { rows(end: Pick<RunEnd, 'status'>): readonly NewScore[]; onStored(): void }
  /** The version of the agent, where it is edited. */
  edit?: RunEdit
}

export interface RunRequest {
  runId: string
  threadId?: string
  resourceId?: string
  /** The lease of the thread; absent for a run without a thread. */
  fence?: Fence
  /** History and input, oldest first. */
  rows: MessageRow[]
  /** How many of the last rows are new input. */
  inputCount: number
  /** The steps of a continued run that were committed before. */
  stepsDone: number
  /** The names of options that the run began with and that were lost with an earlier process. */
  lost?: readonly string[]
  /** The version of the agent that was stored with the run. */
  edit?: RunEdit | undefined
  trace?: RunTrace | undefined
}

/** The environment of all runs. */
export interface RunEnvironment {
  clock: Clock
  logger: Logger
  tracing?: TracingOptions | false | undefined
  /** Absent where agents are not edited. */
  readonly editor?: RunEditor | undefined
  newId(): string
}

export interface HostAbort {
  reason: unknown
  /** Also cancel the pending signals; where the end of the run is stored already, those with an `ord` up to `clearUpTo`. */
  clearPending: boolean
  clearUpTo?: number | undefined
  /** Only if the thread belongs to this resource. */
  resourceId?: string | undefined
  /** Only this run; by default, the run that is active or about to begin. */
  runId?: string | undefined
}

/** The agents whose runs this process may run. */
export abstract class RegisteredAgents {
  abstract readonly environment: RunEnvironment
  readonly #agents = new Map<string, Runnable>()
  #windows: Windows = new Map()
  #edited: ReadonlySet<string> = new Set()

  /** Registers an agent whose runs this process may run. The window of an agent is constant. */
  register(agent: Runnable): void {
    if (this.#agents.get(agent.id) === agent) return
    this.#agents.set(agent.id, agent)
    const window = agent.window({})
    const edited = this.environment.editor !== undefined && isEditable(agent)
    if (isSameWindow(this.#windows.get(agent.id), window) && edited === this.#edited.has(agent.id)) return
    this.#edited = new Set([...this.#edited].filter((id) => id !== agent.id).concat(edited ? agent.id : []))
    const windows = new Map(this.#windows).set(agent.id, window)
    this.#windows = this.#edited.size === 0 ? windows : Object.assign(windows, { edited: this.#edited })
  }

  /** The agents that may run here, with the window of each as it was last registered. Not changed once it is handed out. */
  get windows(): Windows {
    return this.#windows
  }

  agent(id: string): Runnable {
    const agent = this.#agents.get(id)
    if (!agent)
      throw new HeedError('unknown_agent', `No agent '${id}' is registered in this process. Register it: new Heed({ agents: { … } }).`, {
        details: { agentId: id },
      })
    return agent
  }

  hasAgent(agentId: string): boolean {
    return this.#agents.has(agentId)
  }

  agentIds(): string[] {
    return [...this.#agents.keys()]
  }
}

function isEditable({ editable }: Runnable): boolean {
  return editable !== undefined && (editable.instructions || editable.tools !== false)
}

function isSameWindow(one: Window | undefined, other: Window): boolean {
  if (one === undefined || one === false || other === false) return one === other
  return one.low === other.low && one.high === other.high
}
