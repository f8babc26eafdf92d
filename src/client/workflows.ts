import { checkNames } from '../base/arguments.ts'
import { HeedError, type HeedErrorCode } from '../base/errors.ts'
import type { WorkflowChunk } from '../workflow/chunk.ts'
import type { WorkflowResult, WorkflowRunInfo } from '../workflow/place/stored-run.ts'
import type { ResumeArgs, TimeTravelArgs } from '../workflow/run.ts'
import type { WorkflowRunStatus } from '../workflow/plan/machine.ts'
import { randomKey, readEvents, type Connection, type OverWire } from './connection.ts'
import { reconnecting, type Reconnect } from './reconnecting.ts'

/** A workflow of a server. Its schemas are JSON Schema, as texts. */
export interface WorkflowDetails {
  id: string
  name: string
  description?: string
  metadata?: Record<string, unknown>
  inputSchema?: string
  outputSchema?: string
  stateSchema?: string
  /** Its places in their order, with the steps of each. */
  stepGraph: WorkflowPlace[]
  /** Its steps by their ids. */
  steps: Record<string, WorkflowStepDetails>
  /** Those of workflows within too, by their ids behind that of the workflow and a dot. */
  allSteps: Record<string, WorkflowStepDetails>
  /** The schedules that start its runs. */
  schedules: Array<{ id: string; cron: string; timezone?: string }>
}

/** One place of a workflow: a step, or several beside each other, in a list or in a loop. */
export interface WorkflowPlace {
  type: string
  id: string
  description?: string
  metadata?: Record<string, unknown>
  steps?: WorkflowPlace[]
}

/** One step of a workflow of a server. Its schemas are JSON Schema, as texts. */
export interface WorkflowStepDetails {
  id: string
  description?: string
  metadata?: Record<string, unknown>
  /** True for a workflow that is a step. */
  isWorkflow?: boolean
  inputSchema?: string
  outputSchema?: string
  resumeSchema?: string
  suspendSchema?: string
  stateSchema?: string
}

/** The types of a workflow, for `getWorkflow<typeof workflow>()`. */
export interface WorkflowTypes<Input = never, Output = unknown, State = never> {
  readonly '~types'?: { readonly input: (input: Input) => void; readonly output: Output; readonly state: (state: State) => void }
}
/** A workflow whose types are not given. */
export type AnyWorkflow = WorkflowTypes<unknown, unknown, unknown>
type Types<W> = W extends { readonly '~types'?: infer T } ? NonNullable<T> : never
type InputOf<W> = Types<W> extends { readonly input: (input: infer Input) => void } ? Input : unknown
type OutputOf<W> = Types<W> extends { readonly output: infer Output } ? Output : unknown
type StateOf<W> = Types<W> extends { readonly state: (state: infer State) => void } ? State : unknown

/** What a run is started with over HTTP. */
export interface RemoteStart<Input = unknown, State = unknown> {
  inputData?: Input
  initialState?: State
  requestContext?: Record<string, unknown>
  /** The run is paused when one step has ended: `resume()` lets it go on. */
  perStep?: boolean
}

/** A workflow of a server, and its runs. */
export class WorkflowClient<W extends WorkflowTypes = AnyWorkflow> {
  readonly #connection: Connection
  readonly #path: string

  /** @internal */
  constructor(connection: Connection, id: string) {
    this.#connection = connection
    this.#path = `/workflows/${encodeURIComponent(id)}`
  }

  details(): Promise<WorkflowDetails> {
    return this.#connection.json(this.#path)
  }

  /** A run to start, or one that exists. Nothing is asked of the server. */
  createRun(options: { runId?: string; resourceId?: string } = {}): WorkflowRunClient<W> {
    checkNames('createRun()', options, ['runId', 'resourceId'])
    const { runId = randomKey(), resourceId } = options
    return new WorkflowRunClient(this.#connection, this.#path, { runId, resourceId })
  }

  /** Newest first. */
  async runs(
    query: {
      resourceId?: string; status?: WorkflowRunStatus | readonly WorkflowRunStatus[]; fromDate?: Date; toDate?: Date; page?: number
      perPage?: number
    } = {},
  ): Promise<{ runs: Array<OverWire<WorkflowRunInfo>>; total: number }> {
    checkNames('runs()', query, ['resourceId', 'status', 'fromDate', 'toDate', 'page', 'perPage'])
    const { status, ...rest } = query
    const listed = status === undefined ? undefined : [status].flat().join(',')
    return this.#connection.json(`${this.#path}/runs`, { query: { ...rest, status: listed } })
  }

  /** What became of a run so far. */
  async runById(run: { runId: string; resourceId?: string }): Promise<WorkflowResult<OutputOf<W>, StateOf<W>>> {
    checkNames('runById()', run, ['runId', 'resourceId'])
    return new WorkflowRunClient<W>(this.#connection, this.#path, run).status()
  }

  /** Deletes a run with all that was recorded of it. */
  async deleteRunById(run: { runId: string; resourceId?: string }): Promise<boolean> {
    checkNames('deleteRunById()', run, ['runId', 'resourceId'])
    const path = `${this.#path}/runs/${encodeURIComponent(run.runId)}`
    const { deleted } = await this.#connection.json<{ deleted: boolean }>(path, { method: 'DELETE', query: { resourceId: run.resourceId } })
    return deleted
  }
}

/** One run of a workflow of a server. */
export class WorkflowRunClient<W extends WorkflowTypes = AnyWorkflow> {
  readonly runId: string
  readonly resourceId: string | undefined
  readonly #connection: Connection
  readonly #workflow: string

  /** @internal */
  constructor(connection: Connection, workflow: string, { runId, resourceId }: { runId: string; resourceId?: string | undefined }) {
    this.runId = runId
    this.resourceId = resourceId
    this.#connection = connection
    this.#workflow = workflow
  }

  /** Starts the run and resolves when it has ended or is suspended, also after lost connections. Started twice, it is one run. */
  async start(args: RemoteStart<InputOf<W>, StateOf<W>> = {}): Promise<WorkflowResult<OutputOf<W>, StateOf<W>>> {
    checkNames('start()', args, startFields)
    await this.startAsync(args)
    return this.#settled()
  }

  /** The same; resolves when the run is stored. */
  async startAsync(args: RemoteStart<InputOf<W>, StateOf<W>> = {}): Promise<{ runId: string }> {
    return this.#connection.json(`${this.#workflow}/start`, { ...this.#startRequest('startAsync()', args), repeatable: true })
  }

  /** Starts the run; its chunks until it has ended or is suspended. A connection that is lost is not opened again: see `observe()`. */
  async stream(args: RemoteStart<InputOf<W>, StateOf<W>> = {}): Promise<AsyncIterable<WorkflowChunk>> {
    const response = await this.#connection.events(`${this.#workflow}/stream`, this.#startRequest('stream()', args))
    return readEvents(response, this.#connection.maxSilenceMs(response)) as AsyncGenerator<WorkflowChunk>
  }

  /**
   * The chunks of the run from now on, or behind the chunk with the cursor `after`, until it has ended. A connection that is lost is opened
   * again behind the last chunk; where chunks are not retained, a `workflow-snapshot` stands for them.
   */
  async *observe(options: { after?: string; reconnect?: boolean | Reconnect } = {}): AsyncGenerator<WorkflowChunk, void> {
    checkNames('observe()', options, ['after', 'reconnect'])
    const closed = new AbortController()
    let { after } = options
    const open = () => this.#connection.events(this.#path('/stream'), {
      method: 'GET', query: { resourceId: this.resourceId, after }, signal: closed.signal,
    })
    try {
      for await (const event of reconnecting(this.#connection, { open, closed: closed.signal }, options.reconnect ?? true)) {
        const chunk = event as WorkflowChunk
        after = chunk.cursor ?? after
        yield chunk
        if (isEnd(chunk)) return
      }
    } finally {
      closed.abort()
    }
  }

  /** Answers the step that is suspended and resolves when the run has ended or is suspended again. */
  async resume(args: ResumeArgs = {}): Promise<WorkflowResult<OutputOf<W>, StateOf<W>>> {
    checkNames('resume()', args, resumeFields)
    const before = await this.status()
    await this.resumeAsync(args)
    return this.#settled(before)
  }

  /** The same; resolves when the answer is stored. */
  async resumeAsync(args: ResumeArgs = {}): Promise<{ runId: string }> {
    checkNames('resumeAsync()', args, resumeFields)
    const { step, ...rest } = args
    return this.#post('/resume', { ...rest, step: step === undefined ? undefined : stepName(step) })
  }

  /** Ends the first wait for this event, also one that the run reaches later. The same `id` twice is one event. */
  async sendEvent(name: string, data?: unknown, options: { id?: string } = {}): Promise<void> {
    checkNames('sendEvent()', options, ['id'])
    await this.#post('/events', { name, data, id: options.id ?? randomKey() }, true)
  }

  /** Resolves when the run has ended. */
  async cancel(): Promise<void> {
    await this.#post('/cancel', {}, true)
  }

  /** Tries a parked run again; resolves when that is stored. */
  async restart(): Promise<{ runId: string }> {
    return this.#post('/restart', {})
  }

  /** Resolves when the run has ended or is suspended, as `start()` does. */
  async settled(): Promise<WorkflowResult<OutputOf<W>, StateOf<W>>> {
    return this.#settled()
  }

  /** Begins another run from a step. Resolves with that run when its start is stored. */
  async timeTravel(
    args: Omit<TimeTravelArgs<StateOf<W>>, 'requestContext'> & { requestContext?: Record<string, unknown> },
  ): Promise<WorkflowRunClient<W>> {
    checkNames('timeTravel()', args, travelFields)
    const { step, runId: newRunId = randomKey(), ...rest } = args
    const body = { ...rest, step: stepName(step), newRunId }
    const { runId } = await this.#post('/time-travel', body)
    return new WorkflowRunClient(this.#connection, this.#workflow, { runId, resourceId: this.resourceId })
  }

  /** What became of the run so far. */
  async status(): Promise<WorkflowResult<OutputOf<W>, StateOf<W>>> {
    return revived(await this.#connection.json(this.#path(), { query: { resourceId: this.resourceId } }))
  }

  /** `before`: what counts no longer. Looks again whenever a chunk says that something was settled, and after each lost connection. */
  async #settled(before?: WorkflowResult<unknown, unknown>): Promise<WorkflowResult<OutputOf<W>, StateOf<W>>> {
    const isSettled = (found: WorkflowResult<unknown, unknown>) => restStatuses.has(found.status) && !(before && isSame(before, found))
    const now = await this.status()
    if (isSettled(now)) return now
    const closed = new AbortController()
    const settled = Promise.withResolvers<WorkflowResult<OutputOf<W>, StateOf<W>>>()
    const look = () => {
      this.status().then((found) => {
        if (isSettled(found)) settled.resolve(found)
      }, settled.reject)
    }
    const open = () => this.#connection.events(this.#path('/stream'), {
      method: 'GET', query: { resourceId: this.resourceId }, signal: closed.signal,
    })
    const read = async () => {
      for await (const event of reconnecting(this.#connection, { open, closed: closed.signal }, { onOpen: look })) {
        const { type, payload } = event as WorkflowChunk
        if (type === 'workflow-suspended' || type === 'workflow-paused' || payload.workflowStatus !== undefined) look()
      }
    }
    read().catch(settled.reject)
    try {
      return await settled.promise
    } finally {
      closed.abort()
    }
  }

  #post(path: string, body: Record<string, unknown>, repeatable = false): Promise<{ runId: string }> {
    return this.#connection.json(this.#path(path), { body: { ...body, resourceId: this.resourceId }, repeatable })
  }

  #path(rest = ''): string {
    return `${this.#workflow}/runs/${encodeURIComponent(this.runId)}${rest}`
  }

  #startRequest(method: string, args: object): { query: Record<string, unknown>; body: object } {
    checkNames(method, args, startFields)
    return { query: { runId: this.runId }, body: { ...args, resourceId: this.resourceId } }
  }
}

const startFields = ['inputData', 'initialState', 'requestContext', 'perStep']
const resumeFields = ['step', 'label', 'forEachIndex', 'resumeData', 'perStep']
const travelFields = ['step', 'inputData', 'resumeData', 'initialState', 'context', 'perStep', 'requestContext', 'runId']

/** A step as the server has it by name. */
function stepName(step: NonNullable<ResumeArgs['step']>): string {
  if (typeof step === 'string') return step
  return 'id' in step ? step.id : step.join('.')
}

/** Of runs that have ended. */
const ended: ReadonlySet<unknown> = new Set<WorkflowRunStatus>(['success', 'failed', 'tripwire', 'canceled'])
/** Of runs that have ended, or wait for a caller. */
const restStatuses: ReadonlySet<string> = new Set<WorkflowRunStatus>([
  'success', 'failed', 'tripwire', 'canceled', 'suspended', 'paused', 'parked',
])

function isEnd({ payload }: WorkflowChunk): boolean {
  return ended.has(payload.workflowStatus)
}

/** Whether no step has begun or ended in between. */
function isSame(one: WorkflowResult<unknown, unknown>, other: WorkflowResult<unknown, unknown>): boolean {
  const progress = ({ status, path }: WorkflowResult<unknown, unknown>) =>
    JSON.stringify([status, path.map((step) => [step.path, step.status, step.attempts])])
  return progress(one) === progress(other)
}

/** With the error of the run as one that can be thrown. */
function revived<Output, State>(result: WorkflowResult<Output, State>): WorkflowResult<Output, State> {
  if (result.status !== 'failed' && result.status !== 'parked') return result
  const { code, message, retryable, details } = result.error as unknown as {
    code: HeedErrorCode; message: string; retryable?: boolean; details?: Record<string, unknown>
  }
  const error = new HeedError(code, message, { retryable: retryable === true, ...(details ? { details } : {}) })
  return { ...result, error }
}
