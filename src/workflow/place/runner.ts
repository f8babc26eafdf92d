import type { Clock } from '../../base/clock.ts'
import { HeedError, isHeedError } from '../../base/errors.ts'
import type { JSONObject, JSONValue } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import { RequestContext } from '../../run/request-context.ts'
import type { AgentScorers } from '../../scorers/contract.ts'
import { selectScorers } from '../../scorers/sampling.ts'
import type { NewScore } from '../../store/contract/scores.ts'
import { workflowRunner } from '../../store/contract/thread-row.ts'
import type { ScheduleRecord } from '../../store/contract/schedules.ts'
import type { BegunRun, DecidedChild, MailboxRow, ThreadStore, WorkflowCommit } from '../../store/contract/threads.ts'
import type { PreparedRun, Runnable, RunSeat } from '../../thread/runtime/runnable.ts'
import { handedOver, stepError, type SettledCall } from '../call-step.ts'
import type { WorkflowChunk } from '../chunk.ts'
import { Execution, firstTurn } from '../execution.ts'
import type { Command, ExecutionCommit, ExecutionHost, RunHead } from '../execution-host.ts'
import { callEndHooks, hasEndHooks } from '../definition/hooks.ts'
import { stepsOf, type WorkflowGraph } from '../plan/graph.ts'
import { isOver } from '../plan/machine.ts'
import { stepAt, type StepRow } from '../plan/plan.ts'
import type { StepSeat } from '../step.ts'
import { inPathOrder } from './stored-run.ts'

/** What a run is started with, as the options of the signal that starts it. */
export interface StoredStart {
  runId: string
  input?: JSONValue
  state: JSONObject
  requestContext: JSONObject
  rows: StepRow[]
  perStep?: boolean
  turn?: string
}

/**
 * The options of a signal to a run: what starts it, a command, or what was decided on the thread of an agent. A signal without them is that
 * of a schedule.
 */
export type MailOptions = { workflow?: { start: StoredStart } | { command: Command } | { decided: DecidedChild } }

export interface RunnerSurroundings {
  clock: Clock
  logger: Logger
  /** The storage, which agents of steps inherit. */
  site: object
  /** Starts the run of an occurrence of a schedule. Undefined for a schedule that wakes a run. */
  startScheduled(record: ScheduleRecord, at: number): Promise<string | undefined>
  /** Work to score steps was stored. */
  onScores(): void
  /** Wakes the run at this time, also when this process is gone. */
  wakeAt(run: { threadId: string; resourceId: string; epoch: number }, at: number): Promise<void>
}

/** A workflow as threads know it: each run of it is a thread, and each time that it goes on is a run of that thread. */
export class WorkflowRunner implements Runnable {
  readonly id: string
  readonly name: string
  readonly #graph: () => WorkflowGraph
  readonly #surroundings: RunnerSurroundings

  constructor(id: string, graph: () => WorkflowGraph, surroundings: RunnerSurroundings) {
    this.id = workflowRunner(id)
    this.name = id
    this.#graph = graph
    this.#surroundings = surroundings
  }

  /** A workflow reads no history. */
  window(): false {
    return false
  }

  /** Undefined where no step has scorers: nothing is read then. */
  get scorers(): Runnable['scorers'] {
    return stepsOf(this.#graph()).some(({ scorers }) => scorers !== undefined) ? () => ({}) : undefined
  }

  stepScorers(path: string): AgentScorers {
    return { ...stepAt(this.#graph(), path)?.scorers }
  }

  prepare(): Promise<PreparedRun> {
    return Promise.reject(new HeedError('unsupported_option', `'${this.id}' is a workflow: it has no model.`))
  }

  begin(record: ScheduleRecord, at: number): Promise<string | undefined> {
    return this.#surroundings.startScheduled(record, at)
  }

  async perform(seat: RunSeat): Promise<void> {
    const host = new SeatHost(seat, this.#surroundings, this, this.#graph())
    const taken = seat.begun.resumed ? await takenBefore(seat) : seat.begun.taken
    const loaded = await this.#load(seat, taken)
    // A signal that came after the end of the run, or to a run that was never started.
    if (!loaded || (isOver(loaded.head.status) && !loaded.head.ending)) return host.endWithoutWork()
    const execution = new Execution(host, { graph: this.#graph(), ...loaded })
    host.begin(loaded)
    seat.onInterrupt(() => execution.interrupt())
    const commands = commandsIn(taken)
    const onAbort = () => {
      const { reason } = seat.signal as { reason: unknown }
      if (isHeedError(reason) && handedOver.has(reason.code)) execution.stop(reason)
      else host.cancel(execution)
    }
    if (seat.signal.aborted) onAbort()
    else seat.signal.addEventListener('abort', onAbort, { once: true })
    try {
      await execution.work(commands)
    } finally {
      seat.signal.removeEventListener('abort', onAbort)
    }
    if (loaded.head.ending) await host.callHooks(loaded)
  }

  /** The rows stay as they are: a run that is tried again finds which steps were interrupted. */
  async parked(begun: BegunRun, store: ThreadStore, error: HeedError): ReturnType<NonNullable<Runnable['parked']>> {
    const seat = { begun, store }
    const loaded = await this.#load(seat, begun.resumed ? await takenBefore(seat) : begun.taken)
    if (!loaded || isOver(loaded.head.status)) return undefined
    const head: RunHead = { ...loaded.head, status: 'parked', error: stepError(error), updatedAt: this.#surroundings.clock.now() }
    const payload = { workflowStatus: head.status, finalWorkflowResult: null, error: head.error, metadata: {} }
    const data: WorkflowChunk = { type: 'workflow-finish', runId: head.runId, from: 'WORKFLOW', payload }
    return {
      workflow: workflowCommit(head, loaded, loaded.isNew ? [...loaded.rows.values()] : []),
      chunk: { type: 'data-workflow', runId: begun.run.runId, data },
    }
  }

  async #load({ begun, store }: Pick<RunSeat, 'begun' | 'store'>, taken: readonly MailboxRow[]): Promise<Loaded | undefined> {
    const { thread } = begun
    const stored = await store.getWorkflowRun({ threadId: thread.id })
    if (stored) {
      const { requestContext, ...head } = stored.head as unknown as RunHead & { requestContext?: JSONObject }
      const rows = new Map(stored.steps.map((row) => [String(row.path), row as unknown as StepRow]))
      return {
        head, rows, input: stored.input, context: requestContext ?? {}, resourceId: thread.resourceId, isNew: false,
        requestContext: new RequestContext(requestContext ?? {}),
      }
    }
    const start = taken.flatMap(({ options }) => {
      const { workflow } = (options ?? {}) as MailOptions
      return workflow && 'start' in workflow ? [workflow.start] : []
    })[0]
    if (!start) return undefined
    const now = this.#surroundings.clock.now()
    const head: RunHead = {
      workflowId: this.#graph().id, runId: start.runId, status: 'pending', generation: 0, state: start.state,
      createdAt: now, updatedAt: now, ...(start.perStep ? firstTurn(start.turn) : {}),
    }
    return {
      head, rows: new Map(start.rows.map((row) =>
        [row.path, row])), input: start.input, context: start.requestContext, resourceId: thread.resourceId, isNew: true,
      requestContext: new RequestContext(start.requestContext),
    }
  }
}

interface Loaded {
  head: RunHead
  rows: Map<string, StepRow>
  input: JSONValue | undefined
  context: JSONObject
  requestContext: RequestContext
  resourceId: string
  /** Nothing of it is stored yet. */
  isNew: boolean
}

/** The signals that the process before took and may not have applied. Applying one twice has no effect. */
async function takenBefore({ begun: { run, thread }, store }: Pick<RunSeat, 'begun' | 'store'>): Promise<MailboxRow[]> {
  const taken = await store.listSignals({ threadId: thread.id }, { states: ['taken'] })
  return taken.filter(({ runId }) => runId === run.runId)
}

function workflowCommit(head: RunHead, { context, input, isNew }: Loaded, steps: readonly StepRow[]): WorkflowCommit {
  return {
    workflowId: head.workflowId,
    runId: head.runId,
    status: head.status,
    head: { ...head, requestContext: context } as unknown as JSONObject,
    ...(isNew && input !== undefined ? { input } : {}),
    steps: steps.map((row) => ({ path: row.path, row: row as unknown as JSONObject })),
  }
}

function commandsIn(taken: readonly MailboxRow[]): Command[] {
  return taken.flatMap(({ options }): Command[] => {
    const { workflow } = (options ?? {}) as MailOptions
    if (!workflow) return [{ type: 'wake' }]
    if ('decided' in workflow) return [{ type: 'decided', child: workflow.decided }]
    return 'command' in workflow ? [workflow.command] : []
  })
}

/** A run of a workflow on its thread. */
class SeatHost implements ExecutionHost {
  readonly clock: Clock
  readonly logger: Logger
  readonly #seat: RunSeat
  readonly #surroundings: RunnerSurroundings
  readonly #graph: WorkflowGraph
  readonly #runner: WorkflowRunner
  #step: number
  #loaded: Loaded | undefined
  #canceled = false

  constructor(seat: RunSeat, surroundings: RunnerSurroundings, runner: WorkflowRunner, graph: WorkflowGraph) {
    this.#graph = graph
    this.#runner = runner
    this.clock = surroundings.clock
    this.logger = surroundings.logger
    this.#seat = seat
    this.#surroundings = surroundings
    this.#step = seat.begun.run.step
  }

  begin(loaded: Loaded): void {
    this.#loaded = loaded
  }

  traced(about: { id: string; path: string; attempt: number }, work: () => Promise<SettledCall>): Promise<SettledCall> {
    return this.#seat.trace?.step(about, work) ?? work()
  }

  /** The thread was aborted: the run is cancelled with its next commit. */
  cancel(execution: Execution): void {
    this.#canceled = true
    execution.interrupt()
  }

  get seat(): StepSeat {
    const { thread, run } = this.#seat.begun
    return { threadId: thread.id, resourceId: thread.resourceId, runId: run.runId, site: this.#surroundings.site }
  }

  get isLeaving(): boolean {
    return this.#seat.isDraining()
  }

  async endWithoutWork(workflow?: WorkflowCommit): Promise<void> {
    for (;;) {
      const { ended } = await this.#seat.commit({ step: this.#step++, end: true, ...(workflow ? { workflow } : {}) })
      if (ended) return
    }
  }

  /** The thread stays with this process until they have returned; the next one calls them again where it ends before that. */
  async callHooks(loaded: Loaded): Promise<void> {
    const { ending: _, ...head } = loaded.head
    const { input, resourceId, requestContext } = loaded
    const stored = { head, input, rows: inPathOrder(loaded.rows.values()), resourceId, requestContext }
    await callEndHooks(this.#graph, stored, this.#seat.signal, this.logger)
    await this.endWithoutWork(workflowCommit(head, loaded, []))
  }

  async commit({ rows, head, rest, dueAt }: ExecutionCommit): Promise<Command[]> {
    const { begun } = this.#seat
    const threadId = begun.thread.id
    // Before the commit: a process that ends in between leaves a schedule that wakes the run too often, and never one too few.
    if (rest && dueAt !== undefined) {
      await this.#surroundings.wakeAt({ threadId, resourceId: begun.thread.resourceId, epoch: begun.thread.epoch }, dueAt)
    }
    const loaded = this.#loaded as Loaded
    const steps = loaded.isNew ? [...loaded.rows.values()] : rows
    const hooked = hasEndHooks(this.#graph, head)
    if (hooked) head.ending = true
    const scores = this.#scoresOf(rows, head, loaded)
    const { taken } = await this.#seat.commit({
      step: this.#step++,
      end: rest && !this.#canceled && !hooked,
      workflow: { ...workflowCommit(head, loaded, steps), ...(scores.length > 0 ? { scores } : {}) },
    })
    if (scores.length > 0) this.#surroundings.onScores()
    loaded.isNew = false
    const commands = commandsIn(taken)
    if (!this.#canceled) return commands
    this.#canceled = false
    return [...commands, { type: 'cancel' }]
  }

  /** The work to score steps that have ended with this commit. */
  #scoresOf(rows: readonly StepRow[], { workflowId, runId }: RunHead, { requestContext, resourceId }: Loaded): NewScore[] {
    const ended = rows.filter(({ kind, status }) => kind === 'step' && status === 'success')
    return ended.flatMap(({ path, stepId }) => selectScorers(this.#runner.stepScorers(path), runId, {
      requestContext: requestContext.all, entity: { id: stepId, workflowId }, entityType: 'step', source: 'live',
      threadId: this.#seat.begun.thread.id, resourceId,
    }).map(({ scorer }) => ({ scorerId: scorer.id, version: scorer.version, stepPath: path, stepId, ...this.#seat.trace?.ids })))
  }

  emit(chunk: WorkflowChunk): void {
    this.#seat.emit({ type: 'data-workflow', runId: this.#seat.begun.run.runId, data: chunk })
  }
}
