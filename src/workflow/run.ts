import { checkName, checkNames, checkWhole, refused } from '../base/arguments.ts'
import { HeedError, isHeedError } from '../base/errors.ts'
import type { JSONObject, JSONValue } from '../base/json.ts'
import { RequestContext } from '../run/request-context.ts'
import type { Usage } from '../message/chunk.ts'
import { validated } from './call-step.ts'
import type { WorkflowChunk } from './chunk.ts'
import { checkElsewhere } from './definition/config.ts'
import { toJSONValue } from './json-value.ts'
import type { WorkflowGraph } from './plan/graph.ts'
import { isOver, type WorkflowRunStatus } from './plan/machine.ts'
import { unknownRun } from './place/memory-place.ts'
import type { RunPlace } from './place/place.ts'
import { elementOf, stepAt, type StepRow } from './plan/plan.ts'
import { scheduledPrefix, type ScheduledStart } from './definition/scheduled.ts'
import { stepHooks } from './step.ts'
import { isSettled, resultOf, snapshotOf, type StoredRun, type WorkflowResult } from './place/stored-run.ts'
import { isMeant, travelRows, type GivenStep } from './travel.ts'

/** What a run begins with. */
export interface StartArgs<Input = unknown, State = unknown> {
  inputData?: Input
  initialState?: State
  requestContext?: RequestContext
  /** The run is paused when one step has ended: `resume()` lets it go on. */
  perStep?: boolean
}

/** The same, for a stream. */
export interface StreamArgs<Input = unknown, State = unknown> extends StartArgs<Input, State> {
  /** False: the stream goes on while the run is suspended or paused, until it has ended or is parked. Defaults to true. */
  closeOnSuspend?: boolean
}

/** Which step is resumed, and with what. */
export interface ResumeArgs {
  /**
   * The step that is suspended: its id, its name as in `steps`, or its path; as a list, the ids of the workflows that it is in and its own.
   * The id of a workflow stands for the step in it. Not needed where only one is.
   */
  step?: string | readonly string[] | { readonly id: string }
  /** The `resumeLabel` that the step suspended with, in place of `step`. */
  label?: string
  /** Of a step in `foreach()`: the number of its element. */
  forEachIndex?: number
  resumeData?: unknown
  /** The run is paused when one more step has ended. Without it, it goes on to its end. */
  perStep?: boolean
}

/** Where another run begins again. */
export interface TimeTravelArgs<State = unknown> {
  /** The step to begin again from: its id, its name as in `steps`, or its path; as a list, the ids of its workflows and its own. */
  step: string | readonly string[] | { readonly id: string }
  /** Its input, in place of the recorded one. */
  inputData?: unknown
  /** It is called as if it had been suspended and resumed with this. */
  resumeData?: unknown
  initialState?: State
  /** What steps before it have given, by their names or paths: in place of what was recorded, or where nothing was. */
  context?: Readonly<Record<string, GivenStep>>
  /** The new run is paused when one step has ended. */
  perStep?: boolean
  /** In place of that of the recorded run. */
  requestContext?: RequestContext
  /** The id of the new run. */
  runId?: string
}

/** A run of a workflow, and its chunks. */
export interface WorkflowStream<Output = unknown, State = unknown> {
  runId: string
  workflowId: string
  /** Ends when the run has ended, is suspended or is paused. */
  fullStream: AsyncIterable<WorkflowChunk>
  result: Promise<WorkflowResult<Output, State>>
  /** That of the result. */
  status: Promise<WorkflowRunStatus>
  /** What the agents of its steps took together; undefined where none was asked. */
  usage: Promise<Usage | undefined>
}

/** One run of a workflow. It has no state of its own: other processes may hold the same run. */
export class WorkflowRun<Input = unknown, Output = unknown, State = unknown> {
  readonly runId: string
  readonly workflowId: string
  readonly resourceId: string | undefined
  readonly #graph: WorkflowGraph
  readonly #place: RunPlace
  readonly #newId: () => string

  /** @internal */
  constructor(graph: WorkflowGraph, place: RunPlace, name: { runId: string; resourceId?: string | undefined }, newId: () => string) {
    this.runId = name.runId
    this.resourceId = name.resourceId
    this.workflowId = graph.id
    this.#graph = graph
    this.#place = place
    this.#newId = newId
  }

  /** Starts the run and resolves when it has ended or is suspended. Started twice, it is one run. */
  async start(args: StartArgs<Input, State> = {}): Promise<WorkflowResult<Output, State>> {
    await this.#begin('start()', args)
    return this.#settled()
  }

  /** The same; resolves when the run is stored. */
  async startAsync(args: StartArgs<Input, State> = {}): Promise<{ runId: string }> {
    await this.#begin('startAsync()', args)
    return { runId: this.runId }
  }

  /** Starts the run, with its chunks. */
  stream(args: StreamArgs<Input, State> = {}): WorkflowStream<Output, State> {
    const { closeOnSuspend = true, ...rest } = args
    checkFlag('closeOnSuspend', closeOnSuspend)
    return this.#streamed(() => this.#begin('stream()', rest), closeOnSuspend ? isSettled : isLeft)
  }

  /** Resumes the step that is suspended, or a run that is paused; resolves when the run has ended or is suspended or paused again. */
  async resume(args: ResumeArgs = {}): Promise<WorkflowResult<Output, State>> {
    return this.#settled(await this.#resume(args))
  }

  /** The same; resolves when the answer is stored. */
  async resumeAsync(args: ResumeArgs = {}): Promise<{ runId: string }> {
    await this.#resume(args)
    return { runId: this.runId }
  }

  /** Resumes the run, with its chunks from there on. */
  resumeStream(args: ResumeArgs = {}): WorkflowStream<Output, State> {
    return this.#streamed(() => this.#resume(args))
  }

  /**
   * The chunks of the run from now on; with `after`, those behind the chunk with this cursor, or a `workflow-snapshot` where they are not
   * retained. Ends when the run has ended; of one that had ended before, it is a `workflow-snapshot`.
   */
  async *observe(options: { after?: string } = {}): AsyncGenerator<WorkflowChunk> {
    checkNames('observe()', options, ['after'])
    const stop = new AbortController()
    try {
      const chunks = await this.#place.subscribe(this, { after: options.after, signal: stop.signal })
      const stored = await this.#place.read(this)
      if (stored && isOver(stored.head.status) && (await this.#hasRead(options.after))) {
        yield snapshotOf(stored)
        return
      }
      for await (const chunk of chunks) {
        yield chunk
        const status = statusIn(chunk)
        if (status !== undefined && isOver(status)) return
      }
    } finally {
      stop.abort()
    }
  }

  /** The same as a `ReadableStream`. */
  observeStream(options: { after?: string } = {}): ReadableStream<WorkflowChunk> {
    checkNames('observeStream()', options, ['after'])
    const chunks = this.observe(options)
    return new ReadableStream<WorkflowChunk>({
      async pull(controller) {
        const { done, value } = await chunks.next()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      async cancel() {
        await chunks.return(undefined)
      },
    }, { highWaterMark: 0 })
  }

  /** Whether a reader with this cursor has all chunks of a run that has ended. */
  async #hasRead(after: string | undefined): Promise<boolean> {
    return after === undefined || [after, undefined].includes(await this.#place.lastCursor(this))
  }

  /**
   * Sends an event to the run: it ends the first `waitForEvent` of this name, also one that the run reaches later. The same `id` twice is
   * one event. Rejected with `run_over` when the run has ended.
   */
  async sendEvent(name: string, data?: unknown, options: { id?: string } = {}): Promise<void> {
    checkNames('sendEvent()', options, ['id'])
    checkName('event', name)
    const nodes = eventsOf(this.#graph).filter((node) => node.name === name)
    if (nodes.length === 0) throw refused('event', `one that workflow '${this.workflowId}' waits for`)
    let value = data
    for (const { schema } of nodes) value = await validated(schema, data, `The data of event '${name}'`, 'invalid_argument')
    const stored = await this.#place.read(this)
    if (!stored) throw unknownRun(this.runId)
    if (isOver(stored.head.status)) throw runOver(this.runId, stored.head.status)
    const id = options.id ?? this.#newId()
    const given = toJSONValue(value, `the data of event '${name}'`)
    await this.#place.send(this, `event:${id}`, { type: 'event', id, name, ...(given === undefined ? {} : { data: given }) })
  }

  /** Cancels the run. Steps that run are aborted. Resolves when it has ended; without effect when it had ended before. */
  async cancel(): Promise<void> {
    const stored = await this.#place.read(this)
    if (!stored) throw unknownRun(this.runId)
    if (isOver(stored.head.status)) return
    await this.#place.send(this, `cancel:${stored.head.generation}`, { type: 'cancel' })
    await this.#place.when(this, ({ head }) => isOver(head.status))
  }

  /** Tries a parked run again, after the code was repaired. Rejected with `run_not_parked` for any other. */
  async restart(): Promise<WorkflowResult<Output, State>> {
    return this.#settled(await this.beginRestart())
  }

  /** @internal Resolves when the restart is stored, with what is true when the run has gone on. */
  async beginRestart(): Promise<Moved> {
    const stored = await this.#place.read(this)
    if (!stored) throw unknownRun(this.runId)
    if (stored.head.status !== 'parked')
      throw new HeedError(
        'run_not_parked',
        `Run '${this.runId}' is ${stored.head.status}. Only a parked run is tried again; begin any other again with timeTravel().`,
        { details: { runId: this.runId } },
      )
    await this.#place.send(this, `restart:${this.#newId()}`, { type: 'wake' })
    return ({ head }) => head.updatedAt !== stored.head.updatedAt
  }

  /**
   * Begins again from a step, as a new run: what was recorded before the step is kept, also of steps beside it. The recorded run stays as
   * it is.
   */
  async timeTravel(args: TimeTravelArgs<State>): Promise<WorkflowResult<Output, State>> {
    return (await this.beginTimeTravel(args)).#settled()
  }

  /** The same, with the chunks of the new run. */
  timeTravelStream(args: TimeTravelArgs<State>): WorkflowStream<Output, State> {
    const runId = args.runId ?? this.#newId()
    const run = new WorkflowRun<Input, Output, State>(this.#graph, this.#place, { runId, resourceId: this.resourceId }, this.#newId)
    return run.#streamed(async () => {
      await this.beginTimeTravel({ ...args, runId })
      return undefined
    })
  }

  /** @internal Resolves with the new run when its start is stored. */
  async beginTimeTravel(args: TimeTravelArgs<State>): Promise<WorkflowRun<Input, Output, State>> {
    const nestedStepsContext = "name the steps of a workflow within in context: 'workflow.step'"
    checkElsewhere('timeTravel()', args, { ...resultsElsewhere, nestedStepsContext })
    const names = ['step', 'inputData', 'resumeData', 'initialState', 'context', 'perStep', 'requestContext', 'runId']
    checkNames('timeTravel()', args, names)
    checkFlag('perStep', args.perStep)
    const stored = await this.#place.read(this)
    if (!stored) throw unknownRun(this.runId)
    const requestContext = args.requestContext ?? stored.requestContext ?? new RequestContext()
    await this.#checkContext(requestContext)
    const { inputData, context } = args
    const { rows, path: turn } = await travelRows(
      this.#graph, stored, { step: nameIn(args.step), inputData, resumeData: args.resumeData, context },
    )
    const run = new WorkflowRun<Input, Output, State>(
      this.#graph, this.#place, { runId: args.runId ?? this.#newId(), resourceId: stored.resourceId }, this.#newId,
    )
    await run.#checkName()
    const started = await this.#place.start({
      runId: run.runId, resourceId: stored.resourceId, input: stored.input, rows,
      state: args.initialState === undefined ? stored.head.state : await this.#state(args.initialState),
      requestContext, perStep: args.perStep === true, ...(args.perStep ? { turn } : {}),
    }).catch((error: unknown) => {
      // A run of another resource has this name.
      if (isHeedError(error) && error.code === 'thread_forbidden') return false
      throw error
    })
    if (!started)
      throw new HeedError('id_taken', `There is a run '${run.runId}' already. Leave runId out.`, { details: { runId: run.runId } })
    return run
  }

  /** What became of the run so far; null for one that was not started. */
  async status(): Promise<WorkflowResult<Output, State> | null> {
    const stored = await this.#place.read(this)
    return stored && resultOf(this.#graph, stored)
  }

  /** `moved`: what was recorded before counts no longer. */
  async #settled(moved: Moved = () => true, rests: Moved = isSettled): Promise<WorkflowResult<Output, State>> {
    return resultOf(this.#graph, await this.#place.when(this, (stored) => rests(stored) && moved(stored)))
  }

  /** @internal Starts the run that is named by an occurrence of a schedule. */
  async beginScheduled(start: ScheduledStart): Promise<void> {
    await this.#begin('start()', {
      ...(start as StartArgs<Input, State>), requestContext: new RequestContext(start.requestContext ?? {}),
    }, true)
  }

  /** @internal Throws where a schedule could start no run with this. */
  async checkScheduled({ inputData, initialState, requestContext = {} }: ScheduledStart): Promise<void> {
    await this.#checkContext(new RequestContext(requestContext))
    if (initialState !== undefined) await this.#state(initialState)
    await validated(this.#graph.inputSchema, inputData, `The input of workflow '${this.workflowId}'`, 'invalid_argument')
  }

  /** The names of scheduled runs are those of their occurrences: a run of such a name would take the place of one. */
  async #checkName(): Promise<void> {
    if (!this.runId.startsWith(scheduledPrefix) || (await this.#place.read(this))) return
    throw refused('runId', `a text that does not begin with '${scheduledPrefix}', as runs do that a schedule starts`)
  }

  async #begin(method: string, args: StartArgs<Input, State>, isScheduled = false): Promise<undefined> {
    checkElsewhere(method, args, resultsElsewhere)
    checkNames(method, args, ['inputData', 'initialState', 'requestContext', 'perStep'])
    checkFlag('perStep', args.perStep)
    if (!isScheduled) await this.#checkName()
    const given = await validated(this.#graph.inputSchema, args.inputData, `The input of workflow '${this.workflowId}'`, 'invalid_argument')
    const requestContext = args.requestContext ?? new RequestContext()
    if (this.#graph.requestContextSchema) await this.#checkContext(requestContext)
    await this.#place.start({
      runId: this.runId,
      resourceId: this.resourceId,
      input: toJSONValue(given, `the input of workflow '${this.workflowId}'`),
      state: args.initialState === undefined ? {} : await this.#state(args.initialState),
      requestContext,
      perStep: args.perStep === true,
    })
  }

  async #checkContext(context: RequestContext): Promise<void> {
    const subject = `The request context of workflow '${this.workflowId}'`
    await validated(this.#graph.requestContextSchema, context.all, subject, 'invalid_request_context')
  }

  async #state(given: unknown): Promise<JSONObject> {
    const state = await validated(this.#graph.stateSchema, given, `The state of workflow '${this.workflowId}'`, 'invalid_argument')
    return toJSONValue(state, `the state of workflow '${this.workflowId}'`) as JSONObject
  }

  /** Resolves with what is true when the step has gone on. */
  async #resume(args: ResumeArgs): Promise<Moved> {
    checkElsewhere('resume()', args, { ...resultsElsewhere, requestContext: 'a run keeps the request context that it was started with' })
    checkNames('resume()', args, ['step', 'label', 'forEachIndex', 'resumeData', 'perStep'])
    checkFlag('perStep', args.perStep)
    if (args.forEachIndex !== undefined) checkWhole('forEachIndex', args.forEachIndex)
    const stored = await this.#place.read(this)
    if (!stored) throw unknownRun(this.runId)
    if (stored.head.status === 'paused') return this.#continue(stored, args)
    const row = this.#suspendedRow(stored, args)
    const step = stepAt(this.#graph, row.path)
    const hooks = step?.[stepHooks]
    const schema = hooks?.resumeSchema ? hooks.resumeSchema(row.suspend?.payload) : step?.resumeSchema
    const data = toJSONValue(
      await validated(schema, args.resumeData, `resumeData of step '${row.stepId}'`, 'invalid_argument'),
      `resumeData of step '${row.stepId}'`,
    )
    const count = row.suspend?.count ?? 0
    // The id names the suspension: of two answers to it, the first counts.
    const sent = await this.#place.send(this, `resume:${stored.head.generation}:${row.path}:${count}`, {
      type: 'resume', path: row.path, count, ...(data === undefined ? {} : { data }), ...(args.perStep ? { perStep: true } : {}),
    })
    if (!sent) throw notSuspended(this.runId, `step '${row.stepId}' was resumed already`)
    return ({ head, rows }) => head.status !== 'suspended' || !rows.some(
      ({ path, status, suspend }) => path === row.path && status === 'suspended' && suspend?.count === count,
    )
  }

  /** A run that is paused waits for no answer. */
  async #continue({ head: { generation, turns = 0 } }: StoredRun, { perStep, ...answer }: ResumeArgs): Promise<Moved> {
    const given = Object.keys(answer).find((name) => answer[name as keyof typeof answer] !== undefined)
    if (given !== undefined)
      throw notSuspended(this.runId, `it is paused, so that no step waits for '${given}'. Call resume() without it`)
    const sent = await this.#place.send(this, `continue:${generation}:${turns}`, {
      type: 'continue', turn: turns, ...(perStep ? { perStep: true } : {}),
    })
    if (!sent) throw notSuspended(this.runId, 'it has gone on already')
    return ({ head }) => head.status !== 'paused' || head.turns !== turns
  }

  #suspendedRow({ head, rows }: StoredRun, { step, label, forEachIndex }: ResumeArgs): StepRow {
    const open = rows.filter(({ status }) => status === 'suspended')
    const found = open.filter((row) => (
      (step === undefined || isMeant(this.#graph, row, nameIn(step))) && (label === undefined || row.suspend?.label === label)
        && (forEachIndex === undefined || elementOf(row.path) === forEachIndex)
    ))
    const [only] = found
    if (only && found.length === 1) return only
    const names = open.map(({ path, stepId }) => `${stepId} (${path})`).join(', ')
    if (found.length > 1) throw refused('step', `the path of one of the suspended steps: ${names}`)
    if (open.length === 0 || isOver(head.status)) throw notSuspended(this.runId, `it is ${head.status}`)
    throw notSuspended(this.runId, `the steps that are suspended are ${names}`)
  }

  /** @internal Resolves when the answer is stored, with what is true when the step has gone on. */
  beginResume(args: ResumeArgs): Promise<Moved> {
    return this.#resume(args)
  }

  /** @internal The chunks of the run from its beginning or going on, once that is stored. `closeOnSuspend` as in `stream()`. */
  async chunksFrom(begin: () => Promise<Moved | undefined>, closeOnSuspend = true): Promise<AsyncGenerator<WorkflowChunk>> {
    return (await this.#follow(begin, closeOnSuspend ? isSettled : isLeft)).chunks
  }

  /** @internal Has the chunks of the run retained, behind this cursor, until the returned function is called. */
  async hold(after?: string): Promise<() => void> {
    const stop = new AbortController()
    await this.#place.subscribe(this, { after, signal: stop.signal })
    return () => stop.abort()
  }

  /** `rests`: the stream ends when this is true of the run. */
  #streamed(begin: () => Promise<Moved | undefined>, rests: Moved = isSettled): WorkflowStream<Output, State> {
    const following = this.#follow(begin, rests)
    const result = following.then(({ moved }) => this.#settled(moved, rests))
    const [status, usage] = [result.then((told) => told.status), result.then((told) => told.usage)]
    for (const promise of [result, status, usage]) promise.catch(() => {})
    const fullStream = (async function* () {
      yield* (await following).chunks
      await result
    })()
    return { runId: this.runId, workflowId: this.workflowId, fullStream, result, status, usage }
  }

  /** Subscribes before the run begins or goes on, so that no chunk is missed. */
  async #follow(
    begin: () => Promise<Moved | undefined>, rests: Moved,
  ): Promise<{ chunks: AsyncGenerator<WorkflowChunk>; moved: Moved }> {
    const stop = new AbortController()
    try {
      const chunks = await this.#place.subscribe(this, { signal: stop.signal })
      const before = await this.#place.read(this)
      const moved = await begin()
      // A run that is started again, and rested before, publishes nothing.
      const isOld = moved === undefined && before !== null && rests(before)
      if (isOld) stop.abort()
      return { chunks: this.#untilRest(chunks, rests, moved ?? (() => true), stop), moved: moved ?? (() => true) }
    } catch (error) {
      stop.abort()
      throw error
    }
  }

  async *#untilRest(
    chunks: AsyncIterable<WorkflowChunk>, rests: Moved, moved: Moved, stop: AbortController,
  ): AsyncGenerator<WorkflowChunk> {
    try {
      for await (const chunk of chunks) {
        yield chunk
        if (!restChunks.has(chunk.type) && statusIn(chunk) === undefined) continue
        const stored = await this.#place.read(this)
        if (!stored || (rests(stored) && moved(stored))) return
      }
    } finally {
      stop.abort()
    }
  }
}

/** Chunks after which a run may wait for a caller. */
const restChunks: ReadonlySet<string> = new Set<WorkflowChunk['type']>(['workflow-suspended', 'workflow-paused'])

/** Whether only a repair of the code, or nothing, lets the run go on. */
function isLeft({ head: { status } }: StoredRun): boolean {
  return isOver(status) || status === 'parked'
}

/** Options of other engines, with what takes their place here. */
const resultsElsewhere: Readonly<Record<string, string>> = {
  outputOptions: 'a result always has state, and resumeLabels where the run is suspended',
  tracingOptions: 'set tracing of the Heed',
  writableStream: 'read the chunks of stream() or observe()',
}

function checkFlag(field: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'boolean') throw refused(field, 'true or false')
}

/** A step as a caller names it. */
function nameIn(step: NonNullable<ResumeArgs['step']>): string {
  if (typeof step === 'string') return step
  return 'id' in step ? step.id : step.join('.')
}

/** What is true of a run when it has gone on. */
export type Moved = (stored: StoredRun) => boolean

/** The status of the run in chunks about its end, and in snapshots. */
function statusIn({ payload }: WorkflowChunk): WorkflowRunStatus | undefined {
  return (payload as { workflowStatus?: WorkflowRunStatus }).workflowStatus
}

function eventsOf(graph: WorkflowGraph): Array<Extract<WorkflowGraph['nodes'][number], { kind: 'event' }>> {
  return graph.nodes.flatMap((node) => {
    if (node.kind === 'event') return [node]
    const children = node.kind === 'workflow' ? [node] : node.kind === 'parallel' || node.kind === 'branch' ? node.children
      : node.kind === 'foreach' || node.kind === 'loop' ? [node.child] : []
    return children.flatMap((child) => (child.kind === 'workflow' ? eventsOf(child.graph) : []))
  })
}

function notSuspended(runId: string, why: string): HeedError {
  return new HeedError('run_not_suspended', `Run '${runId}' can't be resumed: ${why}.`, { details: { runId } })
}

function runOver(runId: string, status: string): HeedError {
  return new HeedError('run_over', `Run '${runId}' has ended (${status}): it receives no events any more.`, { details: { runId, status } })
}

/** The values of a request context that are JSON. */
export function storableContext(context: RequestContext): JSONObject {
  const stored: JSONObject = {}
  for (const [key, value] of context.entries()) {
    try {
      const text = JSON.stringify(value) as string | undefined
      if (text !== undefined && typeof value !== 'function') stored[key] = JSON.parse(text) as JSONValue
    } catch {
      // A value without JSON, such as a handle, is not stored: steps that run in another process do not have it.
    }
  }
  return stored
}
