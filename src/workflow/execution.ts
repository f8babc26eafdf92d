import { HeedError } from '../base/errors.ts'
import type { JSONObject, JSONValue } from '../base/json.ts'
import { copyPlain, isSamePlain } from '../base/json.ts'
import type { DecidedChild } from '../store/contract/workflows.ts'
import { answerOf } from './answer.ts'
import { addUsage, callStep, failure, stepError, type Settled, type SettledCall } from './call-step.ts'
import { chunkPayload, type WorkflowChunk } from './chunk.ts'
import type { Command, ExecutionHost, ExecutionInput, RunHead } from './execution-host.ts'
import { graphPath, hasLists, type AskContext, type WorkflowGraph } from './plan/graph.ts'
import { isOver, nextRunStatus, nextStepStatus, type StepEvent, type WorkflowRunEvent } from './plan/machine.ts'
import { firstChange, nextDue, outputKey, Planner, stepAt, type Begin, type PlanEnd, type Question, type StepRow } from './plan/plan.ts'
import { stepHooks } from './step.ts'

/** What a run begins with that goes on one step at a time: with this step first, where one is named. */
export function firstTurn(turn: string | undefined): Pick<RunHead, 'perStep' | 'turn' | 'turns'> {
  return { perStep: true, ...(turn === undefined ? {} : { turn, turns: 1 }) }
}

/** Executes a run until it has ended, or until it waits for a time, an event or a caller. */
export class Execution {
  readonly head: RunHead
  readonly #host: ExecutionHost
  readonly #given: ExecutionInput
  readonly #rows: Map<string, StepRow>
  readonly #planner: Planner
  readonly #stop = new AbortController()
  /** Changed rows, and the chunks about them: published when the rows are stored. */
  readonly #changed = new Map<string, StepRow>()
  #chunks: WorkflowChunk[] = []
  readonly #running = new Set<string>()
  #settled: Array<() => void> = []
  #looks = false
  #wake: (() => void) | undefined
  #canceled = false
  /** Calls that were decided while the steps that wait for them had not stored that they do. */
  readonly #decided: DecidedChild[] = []

  constructor(host: ExecutionHost, given: ExecutionInput) {
    this.#host = host
    this.#given = given
    this.#rows = given.rows
    this.head = given.head
    this.#planner = new Planner(given.graph, given.rows, given.input, given.head.status === 'pending')
  }

  /** Commands may have arrived. */
  interrupt(): void {
    this.#looks = true
    this.#wake?.()
  }

  /** The process gives the run up: what runs is aborted, and nothing more is stored. */
  stop(reason: unknown): void {
    this.#stop.abort(reason)
    this.#wake?.()
  }

  async work(commands: readonly Command[] = []): Promise<void> {
    const { head } = this
    if (isOver(head.status)) return
    if (head.status === 'pending') this.#publish('workflow-start', { workflowId: head.workflowId })
    const changed = firstChange(this.#given.graph, this.#rows)
    // What an earlier process has told of its lists is not told again.
    if (!changed && this.#rows.size > 0 && hasLists(this.#given.graph)) this.#planner.plan(this.#host.clock.now())
    this.#apply(commands)
    if (changed) return this.#park(changed)
    this.#move('run')
    this.#recover()
    for (;;) {
      for (const settle of this.#settled.splice(0)) settle()
      const end = await this.#advance()
      this.#stop.signal.throwIfAborted()
      if (this.#canceled || end) return this.#finish(end)
      const begun = this.#host.isLeaving ? [] : this.#beginPlanned()
      const rest = begun.length === 0 && this.#running.size === 0
      if (rest && this.#planned.length > 0) return this.#leave()
      if (rest) this.#rest()
      if (rest || this.#changed.size > 0 || this.#looks) {
        const arrived = await this.#commit(rest)
        for (const begin of begun) void this.#execute(begin)
        if (rest && arrived.length === 0) return
        if (rest) this.#move('run')
        this.#apply(arrived)
      } else await this.#somethingHappens()
    }
  }

  #somethingHappens(): Promise<void> {
    if (this.#settled.length > 0 || this.#looks || this.#stop.signal.aborted) return Promise.resolve()
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    return promise.finally(() => (this.#wake = undefined))
  }

  /** Steps that a process began and did not end. */
  #recover(): void {
    for (const row of this.#rows.values()) {
      if (row.status !== 'running') continue
      const step = this.#stepAt(row.path)
      if (step?.idempotent) this.#change(row, 'wait', { dueAt: this.#host.clock.now() })
      else this.#fail(row, interrupted(row))
    }
  }

  #stepAt(path: string) {
    return stepAt(this.#given.graph, path)
  }

  #apply(commands: readonly Command[]): void {
    const now = this.#host.clock.now()
    for (const command of commands) {
      if (command.type === 'cancel') this.#canceled = true
      if (command.type === 'resume') {
        const row = this.#rows.get(command.path)
        // The id of the command names the suspension, so that only the first answer to it arrives.
        if (row?.status !== 'suspended' || row.suspend?.count !== command.count) continue
        this.#goOn(command.perStep, row.path)
        this.#put(
          { ...row, status: 'waiting', dueAt: now, resumedAt: now, ...(command.data === undefined ? {} : { resume: command.data }) },
        )
      }
      if (command.type === 'continue' && command.turn === this.head.turns && this.#isTurnOver()) this.#goOn(command.perStep)
      if (command.type === 'event') this.#receive(command, now)
      if (command.type === 'decided') {
        const waiting = [...this.#rows.values()].find((row) => row.status === 'suspended' && standsFor(command.child, row))
        if (waiting) this.#put({ ...waiting, status: 'waiting', dueAt: now, resumedAt: now })
        else this.#decided.push(command.child)
      }
    }
  }

  /** Lets the run go on: to its end, or for one step, `turn` or the next that can begin. */
  #goOn(perStep: true | undefined, turn?: string): void {
    const { head } = this
    delete head.turn
    delete head.perStep
    if (!perStep) return
    head.perStep = true
    if (turn !== undefined) this.#giveTurn(turn)
  }

  #giveTurn(path: string): void {
    this.head.turn = path
    this.head.turns = (this.head.turns ?? 0) + 1
  }

  /** The step that the run was to run, one step at a time, has ended. */
  #isTurnOver(): boolean {
    const { turn } = this.head
    const status = turn === undefined ? undefined : this.#rows.get(turn)?.status
    return status === 'success' || status === 'failed'
  }

  /** An event ends the first wait for it; without one it is kept for the wait that comes. */
  #receive({ id, name, data }: Extract<Command, { type: 'event' }>, now: number): void {
    const path = `!${id}`
    if (this.#rows.has(path)) return
    const waiting = [...this.#rows.values()].find(
      (row) => row.kind === 'event' && row.status === 'waiting' && row.stepId === name && !row.path.startsWith('!'),
    )
    const event = {
      path, stepId: name, kind: 'event' as const, attempt: 1, startedAt: now, ...(data === undefined ? {} : { output: data }),
    }
    if (!waiting) return this.#put({ ...event, status: 'waiting' })
    this.#put({ ...event, status: 'success', endedAt: now, output: null })
    this.#succeed(waiting, data)
  }

  /** Answers questions and ends waits until no more of them are due. */
  async #advance(): Promise<PlanEnd | undefined> {
    for (;;) {
      const plan = this.#planner.plan(this.#host.clock.now())
      for (const progress of plan.progress) this.#publish('workflow-step-progress', { ...progress })
      if (plan.end || this.#canceled) return plan.end
      if (plan.ask.length === 0 && plan.due.length === 0) {
        this.#planned = plan.begin
        return undefined
      }
      for (const row of plan.due) {
        if (row.kind === 'event') this.#fail(row, eventTimedOut(row))
        else this.#succeed(row, row.output)
      }
      for (const question of plan.ask) await this.#answer(question)
      this.#stop.signal.throwIfAborted()
    }
  }

  #planned: Begin[] = []
  /** Steps could begin, and the run goes on one step at a time. */
  #isHeld = false

  /** Asks once: the answer is stored, and a later process reads it. */
  async #answer(question: Question): Promise<void> {
    const { node } = question
    const now = this.#host.clock.now()
    if (node?.kind === 'event') return this.#awaitEvent(node, question.path, now)
    const row = await answerOf(question, this.#askContext(question), now)
    this.#put(row)
    if (row.status === 'waiting') this.#publish('workflow-step-waiting', { id: row.stepId, stepCallId: row.path, dueAt: row.dueAt })
  }

  #awaitEvent(node: { name: string; timeoutMs: number | undefined }, path: string, now: number): void {
    const row = { path, stepId: node.name, kind: 'event', attempt: 1, startedAt: now } as const
    const early = [...this.#rows.values()].find(
      (other) => other.path.startsWith('!') && other.stepId === node.name && other.status === 'waiting',
    )
    if (early) {
      const { output, ...event } = early
      this.#put({ ...event, status: 'success', output: null, endedAt: now })
      return this.#put({ ...row, status: 'success', endedAt: now, ...(output === undefined ? {} : { output }) })
    }
    this.#put({ ...row, status: 'waiting', ...(node.timeoutMs === undefined ? {} : { dueAt: now + node.timeoutMs }) })
    this.#publish('workflow-step-waiting', { id: node.name, stepCallId: path })
  }

  #askContext({ path, graph, input, iterationCount }: Question): AskContext {
    return {
      inputData: copyPlain(input),
      state: copyPlain(this.head.state),
      getInitData: <T>() => this.#initData(path) as T,
      getStepResult: (step) => this.#resultOf(path, step),
      iterationCount,
      requestContext: this.#given.requestContext,
      runId: this.head.runId,
      workflowId: graph.id,
      ...(this.#given.resourceId === undefined ? {} : { resourceId: this.#given.resourceId }),
    }
  }

  /** The input of the workflow that a path is in. */
  #initData(path: string): JSONValue | undefined {
    return copyPlain(this.#planner.inputOf(graphPath(path)))
  }

  #resultOf(path: string, step: { id: string } | string): JSONValue | null {
    return copyPlain(this.#planner.outputs.get(outputKey(path, typeof step === 'string' ? step : step.id))) ?? null
  }

  /** Marks the planned steps as begun. They are called when that is stored. */
  #beginPlanned(): Begin[] {
    const ready = this.#planned.filter(({ path }) => !this.#running.has(path))
    this.#planned = []
    const begun = this.#inTurn(ready)
    this.#isHeld = begun.length < ready.length
    const now = this.#host.clock.now()
    for (const { path, step, input, row } of begun) {
      const before: StepRow = row ?? {
        path, stepId: step.id, kind: 'step', status: 'waiting', attempt: 0, startedAt: now, ...(input === undefined ? {} : { input }),
      }
      const { dueAt: _, ...rest } = before
      this.#put({ ...rest, status: 'running', attempt: before.attempt + 1, ...(input === undefined ? {} : { input }) })
      this.#publish(
        'workflow-step-start',
        { id: step.id, stepCallId: path, status: 'running', payload: input ?? null, startedAt: before.startedAt },
      )
    }
    return begun
  }

  #inTurn(ready: Begin[]): Begin[] {
    const { head } = this
    if (!head.perStep) return ready
    const isOpen = head.turn !== undefined && (this.#rows.has(head.turn) || ready.some(({ path }) => path === head.turn))
    if (!isOpen && ready[0]) this.#giveTurn(ready[0].path)
    return ready.filter(({ path }) => path === head.turn)
  }

  async #execute({ path, step, graph }: Begin): Promise<void> {
    const row = this.#rows.get(path) as StepRow
    this.#running.add(path)
    const { head } = this
    // A change of the state makes another object, so that this stays as it is.
    const base = head.state
    const call = () => callStep({
      step,
      input: copyPlain(row.input),
      state: base,
      resume: row.resume,
      suspended: row.resume === undefined ? undefined : row.suspend?.payload,
      retryCount: row.attempt - 1,
      nesting: {
        path, failures: row.failures ?? 0, seat: this.#host.seat, child: row.resume === undefined ? undefined : row.suspend?.child,
      },
      stepKey: `${head.runId}:${head.generation}:${path}`,
      runId: head.runId,
      workflowId: graph.id,
      resourceId: this.#given.resourceId,
      requestContext: this.#given.requestContext,
      validateInputs: this.#given.graph.validateInputs,
      abortSignal: this.#stop.signal,
      clock: this.#host.clock,
      initData: () => this.#initData(path),
      resultOf: (other) => this.#resultOf(path, other),
      write: (output) => this.#host.emit(this.#chunk('workflow-step-output', { id: step.id, stepCallId: path, output })),
    })
    const settled = await (this.#host.traced?.({ id: step.id, path, attempt: row.attempt }, call) ?? call())
    if (this.#stop.signal.aborted) return
    this.#settled.push(() => {
      this.#running.delete(path)
      this.#settle(row, begunWith(graph, step.retries), settled, base)
    })
    this.#wake?.()
  }

  #settle(row: StepRow, retry: { attempts: number; delay: number }, settled: SettledCall, base: JSONObject): void {
    const now = this.#host.clock.now()
    if (settled.usage) this.head.usage = addUsage(this.head.usage, settled.usage)
    if (settled.kind === 'canceled') {
      this.#canceled = true
      return
    }
    if (settled.kind === 'failed') {
      const failures = (row.failures ?? 0) + 1
      if (settled.final || failures > retry.attempts) return this.#fail({ ...row, failures }, settled.error)
      return this.#put({ ...row, status: 'waiting', failures, error: settled.error, dueAt: now + retry.delay })
    }
    const conflict = this.#mergeState(settled.state, base)
    if (conflict !== undefined) return this.#fail(row, failure(stateConflict(row, conflict)).error)
    if (settled.kind === 'suspended') return this.#suspend(row, settled, now)
    if (settled.kind === 'bailed') row = { ...row, bailed: true }
    this.#succeed(row, settled.output)
  }

  #suspend({ resume: _, ...row }: StepRow, { payload, label, child }: Extract<Settled, { kind: 'suspended' }>, now: number): void {
    const suspend = {
      count: (row.suspend?.count ?? 0) + 1, ...(payload === undefined ? {} : { payload }), ...(label === undefined ? {} : { label }),
      ...(child === undefined ? {} : { child }),
    }
    const suspended: StepRow = { ...row, status: 'suspended', suspend, suspendedAt: now }
    // The call was decided before this was known here: the step follows the agent.
    if (this.#decided.some((decided) => standsFor(decided, suspended))) return this.#put({ ...suspended, status: 'waiting', dueAt: now })
    this.#put(suspended)
    this.#publish(
      'workflow-step-suspended', { id: row.stepId, stepCallId: row.path, status: 'suspended', suspendPayload: payload ?? null },
    )
  }

  /** Merges the keys that a step changed. Returns a key that another step has changed meanwhile to another value. */
  #mergeState(change: JSONObject | undefined, base: JSONObject): string | undefined {
    if (!change) return undefined
    const { state } = this.head
    const conflict = Object.keys(change).find((key) => !isSamePlain(state[key], base[key]) && !isSamePlain(state[key], change[key]))
    if (conflict === undefined) this.head.state = { ...state, ...change }
    return conflict
  }

  #succeed(row: StepRow, output: JSONValue | undefined): void {
    const { error: _, dueAt: __, ...rest } = row
    this.#put({ ...rest, status: 'success', endedAt: this.#host.clock.now(), ...(output === undefined ? {} : { output }) })
    this.#publish('workflow-step-result', { id: row.stepId, stepCallId: row.path, status: 'success', output: output ?? null })
    if (this.#host.isWatched === false) return
    const metadata = row.kind === 'step' ? this.#stepAt(row.path)?.metadata : undefined
    this.#publish('workflow-step-finish', { id: row.stepId, metadata: metadata ?? {} })
  }

  #fail(row: StepRow, error: JSONObject): void {
    this.#put({ ...row, status: 'failed', error, endedAt: this.#host.clock.now() })
    this.#publish('workflow-step-result', { id: row.stepId, stepCallId: row.path, status: 'failed', error })
  }

  #change(row: StepRow, event: StepEvent, fields: Partial<StepRow>): void {
    const status = nextStepStatus(row.status, event)
    if (status) this.#put({ ...row, ...fields, status })
  }

  #put(row: StepRow): void {
    this.#rows.set(row.path, row)
    this.#changed.set(row.path, row)
  }

  #move(event: WorkflowRunEvent): void {
    this.head.status = nextRunStatus(this.head.status, event) ?? this.head.status
  }

  #rest(): void {
    const isSuspended = [...this.#rows.values()].some(({ status }) => status === 'suspended')
    const isPaused = !isSuspended && this.#isHeld && this.#isTurnOver()
    this.#move(isSuspended ? 'suspend' : isPaused ? 'pause' : 'wait')
    if (isSuspended) this.#publish('workflow-suspended', {})
    if (isPaused) this.#publish('workflow-paused', {})
  }

  /** What has ended is stored; the next process begins what is planned. */
  async #leave(): Promise<never> {
    if (this.#changed.size > 0) await this.#commit(false)
    throw new HeedError('closed', 'This process closes. The run goes on in the next one.')
  }

  #park(path: string): Promise<void> {
    const row = this.#rows.get(path)
    const message = `Workflow '${this.head.workflowId}' has changed: this run has recorded '${row?.stepId}' at ${path}, where the ` +
      `code has another step. Deploy the version that began it, or start another run.`
    this.head.error = stepError(new HeedError('workflow_changed', message, { details: { path } }))
    this.#move('park')
    this.#publish('workflow-finish', { workflowStatus: this.head.status, finalWorkflowResult: null, error: this.head.error, metadata: {} })
    return this.#commit(true).then(() => {})
  }

  async #finish(end: PlanEnd | undefined): Promise<void> {
    const { head } = this
    if (this.#running.size > 0) this.#stop.abort(new HeedError('aborted', `Run ${head.runId} has ended.`))
    for (const row of this.#rows.values()) {
      if (!['running', 'waiting', 'suspended'].includes(row.status)) continue
      if (row.status === 'suspended') await this.#endChild(row)
      this.#change(row, 'cancel', { endedAt: this.#host.clock.now() })
    }
    if (this.#canceled) {
      this.#move('cancel')
      this.#publish('workflow-canceled', {})
    } else if (end?.status === 'failed') {
      head.error = end.error
      this.#move(end.error.code === 'tripwire' ? 'refuse' : 'fail')
    } else {
      if (end?.output !== undefined) head.result = end.output
      this.#move('succeed')
    }
    const { status, error, result, usage } = head
    this.#publish('workflow-finish', {
      workflowStatus: status, finalWorkflowResult: result ?? null, ...(error ? { error } : {}), ...(usage ? { output: { usage } } : {}),
      metadata: {},
    })
    await this.#commit(true)
  }

  /** The agent that a step waits for ends with it. */
  async #endChild({ path, suspend }: StepRow): Promise<void> {
    const { seat } = this.#host
    if (suspend?.child && seat) await this.#stepAt(path)?.[stepHooks]?.endChild?.(suspend.child, seat, this.#given.requestContext)
  }

  async #commit(rest: boolean): Promise<Command[]> {
    const rows = [...this.#changed.values()]
    const chunks = this.#chunks
    this.#changed.clear()
    this.#chunks = []
    this.#looks = false
    this.head.updatedAt = this.#host.clock.now()
    // A run that is paused or parked goes on when a caller says so, and not by itself.
    const isLeft = this.head.status === 'paused' || this.head.status === 'parked'
    const dueAt = rest && !isLeft ? nextDue(this.#rows.values()) : undefined
    const commands = await this.#host.commit({ rows, head: this.head, rest, dueAt })
    for (const chunk of chunks) this.#host.emit(chunk)
    return commands
  }

  #publish(type: WorkflowChunk['type'], payload: Record<string, unknown>): void {
    if (this.#host.isWatched !== false) this.#chunks.push(this.#chunk(type, chunkPayload(payload)))
  }

  #chunk(type: WorkflowChunk['type'], payload: Record<string, unknown>): WorkflowChunk {
    return { type, runId: this.head.runId, from: 'WORKFLOW', payload }
  }
}

/** Whether this is the call that the step waits for. */
function standsFor({ threadId, runId, toolCallId, approvalId }: DecidedChild, { suspend }: StepRow): boolean {
  const child = suspend?.child
  return child?.threadId === threadId && child.runId === runId && (toolCallId === undefined || child.toolCallId === toolCallId)
    && (approvalId === undefined || child.approvalId === undefined || child.approvalId === approvalId)
}

function begunWith(graph: WorkflowGraph, retries: number | undefined): { attempts: number; delay: number } {
  return { attempts: retries ?? graph.retry.attempts, delay: graph.retry.delay }
}

function interrupted({ stepId }: StepRow): JSONObject {
  const message = `Step '${stepId}' was interrupted: the process that ran it stopped. It is not known whether it took effect. Check, ` +
    `then begin the run again from it with timeTravel(), or mark the step as idempotent.`
  return stepError(new HeedError('step_interrupted', message, { details: { stepId } }))
}

function eventTimedOut({ stepId }: StepRow): JSONObject {
  return stepError(new HeedError('event_timeout', `The event '${stepId}' did not come in time.`, { details: { event: stepId } }))
}

function stateConflict({ stepId }: StepRow, key: string): HeedError {
  const message = `Step '${stepId}' changed '${key}' of the state, which a step beside it has changed too. Let one of them change it, ` +
    `or change different keys.`
  return new HeedError('workflow_state_conflict', message, { details: { stepId, key } })
}
