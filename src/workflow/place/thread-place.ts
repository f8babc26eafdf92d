import { createHash } from 'node:crypto'
import { HeedError } from '../../base/errors.ts'
import type { JSONObject } from '../../base/json.ts'
import type { Chunk } from '../../message/chunk.ts'
import { RequestContext } from '../../run/request-context.ts'
import type { Schedules } from '../../schedule/schedules.ts'
import type { Signal } from '../../signals/signal.ts'
import { workflowThreadId } from '../../store/contract/thread-row.ts'
import type { Send } from '../../store/contract/threads.ts'
import type { ThreadRuntime } from '../../thread/runtime/runtime.ts'
import { subscribe, type AgentThreadSubscription } from '../../thread/stream/subscription.ts'
import type { WorkflowChunk } from '../chunk.ts'
import type { Command, RunHead } from '../execution-host.ts'
import { stepsOf, type WorkflowGraph } from '../plan/graph.ts'
import { stepHooks } from '../step.ts'
import { unknownRun } from './memory-place.ts'
import type { RunName, RunPlace, RunQuery, RunStart } from './place.ts'
import type { StepRow } from '../plan/plan.ts'
import { storableContext, WorkflowRun } from '../run.ts'
import {
  scheduledRunId, scheduledStart, scheduleInfo, scheduleSignal, storedScheduleId, type ReadySchedule, type WorkflowScheduleInfo,
} from '../definition/scheduled.ts'
import type { ScheduleRecord } from '../../store/contract/schedules.ts'
import { WorkflowRunner, type MailOptions } from './runner.ts'
import { inPathOrder, snapshotOf, type StoredRun, type WorkflowRunInfo } from './stored-run.ts'

/** The site of the storage that the runs are in. */
export interface WorkflowSite {
  readonly threads: ThreadRuntime
  readonly schedules: Schedules
  readonly scoring: { wake(): void }
}

/** Runs on threads of a storage. */
export class ThreadPlace implements RunPlace {
  readonly #site: () => WorkflowSite
  readonly #workflowId: string
  readonly #runner: WorkflowRunner
  readonly #graph: () => WorkflowGraph
  /** Where the agents of its steps are registered. */
  #registered: WorkflowSite | undefined

  constructor(id: string, graph: () => WorkflowGraph, site: () => WorkflowSite) {
    this.#workflowId = id
    this.#site = site
    this.#graph = graph
    this.#runner = new WorkflowRunner(id, graph, {
      get clock() {
        return site().threads.clock
      },
      get logger() {
        return site().threads.logger
      },
      get site() {
        return site()
      },
      startScheduled: (record, at) => this.#startScheduled(record, at),
      onScores: () => site().scoring.wake(),
      wakeAt: ({ threadId, resourceId, epoch }, at) => this.#wakeAt({ threadId, resourceId }, at, epoch),
    })
  }

  /** Lets this process run the runs of the workflow. */
  register(): ThreadRuntime {
    const site = this.#site()
    site.threads.register(this.#runner)
    if (this.#registered !== site) for (const step of stepsOf(this.#graph())) step[stepHooks]?.register?.(site)
    this.#registered = site
    return site.threads
  }

  /** The thread of the run. It has no signal yet, so that no process runs it. */
  async create({ runId, resourceId }: RunName): Promise<void> {
    const runtime = this.register()
    await runtime.open()
    await runtime.store.createThread({
      id: workflowThreadId(this.#workflowId, runId), resourceId: resourceId ?? this.#runner.id, parentId: this.#runner.id,
      now: runtime.clock.now(),
    })
  }

  async start({ runId, resourceId, input, state, requestContext, perStep, turn, rows = [] }: RunStart): Promise<boolean> {
    const start = {
      runId, state, requestContext: storableContext(requestContext), rows, ...(input === undefined ? {} : { input }),
      ...(perStep ? { perStep } : {}), ...(turn === undefined ? {} : { turn }),
    }
    return this.#send({ runId, resourceId: resourceId ?? this.#runner.id }, 'start', { workflow: { start } })
  }

  async send(run: RunName, id: string, command: Command): Promise<boolean> {
    const stored = await this.read(run)
    if (!stored) throw unknownRun(run.runId)
    return this.#send({ runId: run.runId, resourceId: stored.resourceId ?? this.#runner.id }, id, { workflow: { command } })
  }

  /** The signal is stored, and wakes or interrupts the run, wherever that is. */
  async #send({ runId, resourceId }: { runId: string; resourceId: string }, id: string, options: MailOptions): Promise<boolean> {
    const runtime = this.register()
    const threadId = workflowThreadId(this.#workflowId, runId)
    const outcome = runtime.waiters.waitForOutcome(threadId, id)
    const send: Send = {
      threadId, resourceId, agentId: this.#runner.id, id, mode: 'now', ifActive: { behavior: 'interrupt' }, ifIdle: { behavior: 'wake' },
      rows: [], runId: runtime.newId(), newRunId: true, claim: { owner: runtime.owner, begin: runtime.windows },
      options: options as unknown as JSONObject, thread: { parentId: this.#runner.id }, now: runtime.clock.now(),
    }
    runtime.sends.inFlight.begin()
    try {
      const accepted = await runtime.sends.accept(send)
      if (accepted.owner === undefined && !(await runtime.wake(threadId))) runtime.peers.requestRunner(threadId)
      return !accepted.duplicate
    } finally {
      runtime.sends.inFlight.end()
      // No caller waits for it: the rows of the run say what became of the signal.
      runtime.waiters.resolveOutcome(threadId, id, { action: 'delivered' })
      void outcome
    }
  }

  async read({ runId, resourceId }: RunName): Promise<StoredRun | null> {
    const runtime = this.register()
    await runtime.open()
    const scope = { threadId: workflowThreadId(this.#workflowId, runId), ...(resourceId === undefined ? {} : { resourceId }) }
    const thread = await runtime.store.getThread(scope)
    if (!thread) return null
    const stored = await runtime.store.getWorkflowRun(scope)
    if (!stored) return this.#startedRun(runId, thread)
    const { requestContext = {}, ...head } = stored.head as unknown as RunHead & { requestContext?: JSONObject }
    const rows = inPathOrder(stored.steps as unknown as StepRow[])
    return { head, input: stored.input, rows, resourceId: thread.resourceId, requestContext: new RequestContext(requestContext) }
  }

  /** A run whose start is stored, and of which no process has committed anything yet. */
  #startedRun(runId: string, { createdAt, resourceId }: { createdAt: Date; resourceId: string }): StoredRun {
    const at = createdAt.getTime()
    const head: RunHead = { workflowId: this.#workflowId, runId, status: 'pending', generation: 0, state: {}, createdAt: at, updatedAt: at }
    return { head, input: undefined, rows: [], resourceId }
  }

  async when(run: RunName, holds: (stored: StoredRun) => boolean, signal?: AbortSignal): Promise<StoredRun> {
    const stop = new AbortController()
    const end = () => stop.abort()
    signal?.addEventListener('abort', end, { once: true })
    try {
      signal?.throwIfAborted()
      const chunks = await this.#chunks(run, { signal: stop.signal })
      const stored = await this.read(run)
      if (stored && holds(stored)) return stored
      for await (const chunk of chunks) {
        if (chunk.type !== 'data-thread-snapshot' && !isEnd(chunk)) continue
        const found = await this.read(run)
        if (!found) throw unknownRun(run.runId)
        if (holds(found)) return found
      }
      signal?.throwIfAborted()
      throw new HeedError('closed', 'This Heed was closed before the run had ended. The run goes on in the next process.')
    } finally {
      signal?.removeEventListener('abort', end)
      stop.abort()
    }
  }

  async subscribe(run: RunName, options: { after?: string | undefined; signal: AbortSignal }): Promise<AsyncIterable<WorkflowChunk>> {
    const chunks = await this.#chunks(run, options)
    const snapshot = () => this.#snapshot(run)
    return (async function* () {
      for await (const chunk of chunks) {
        const found = chunk.type === 'data-workflow' ? (chunk as { data: WorkflowChunk }).data
          : chunk.type === 'data-thread-snapshot' ? await snapshot() : undefined
        if (found) yield chunk.cursor === undefined ? found : { ...found, cursor: chunk.cursor }
      }
    })()
  }

  async lastCursor(run: RunName): Promise<string | undefined> {
    const subscription = await this.#subscription(run, undefined)
    subscription.unsubscribe()
    return subscription.cursor
  }

  async #snapshot(run: RunName): Promise<WorkflowChunk | undefined> {
    const stored = await this.read(run)
    return stored ? snapshotOf(stored) : undefined
  }

  async #chunks(run: RunName, { after, signal }: { after?: string | undefined; signal: AbortSignal }): Promise<AsyncIterable<Chunk>> {
    const subscription = await this.#subscription(run, after)
    if (signal.aborted) subscription.unsubscribe()
    else signal.addEventListener('abort', () => subscription.unsubscribe(), { once: true })
    return subscription.stream
  }

  #subscription({ runId, resourceId }: RunName, after: string | undefined): Promise<AgentThreadSubscription> {
    return subscribe(this.register(), {
      threadId: workflowThreadId(this.#workflowId, runId),
      ...(resourceId === undefined ? {} : { resourceId }), ...(after === undefined ? {} : { after }),
    })
  }

  async list({ workflowId, resourceId, status, from, to, limit, offset }: RunQuery): Promise<{ runs: WorkflowRunInfo[]; total: number }> {
    const runtime = this.register()
    await runtime.open()
    const { runs, total } = await runtime.store.listWorkflowRuns({
      workflowId, limit, offset, ...(resourceId === undefined ? {} : { resourceId }), ...(status ? { status } : {}),
      ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }),
    })
    return {
      total,
      runs: runs.map((run) => ({
        runId: run.runId, workflowId: run.workflowId, status: run.status as WorkflowRunInfo['status'], resourceId: run.resourceId,
        createdAt: new Date(run.createdAt), updatedAt: new Date(run.updatedAt),
      })),
    }
  }

  async delete({ runId, resourceId }: RunName): Promise<boolean> {
    const runtime = this.register()
    await runtime.open()
    const threadId = workflowThreadId(this.#workflowId, runId)
    return runtime.store.deleteThread({ threadId, ...(resourceId === undefined ? {} : { resourceId }) })
  }

  /** Makes the schedules of the store those of the code. */
  async reconcile(wanted: readonly ReadySchedule[]): Promise<void> {
    const runtime = this.register()
    await runtime.open()
    const { schedules } = this.#site()
    // A storage without schedules has none to remove.
    if (wanted.length === 0 && !(await schedules.isKnown())) return
    const found = await this.#schedules()
    const kept = new Set<string>()
    for (const schedule of wanted) {
      const { cron, timezone, resourceId = this.#runner.id } = schedule
      const id = storedScheduleId(this.#workflowId, schedule.id)
      const former = found.find((one) => one.id === id && one.resourceId !== resourceId)
      if (former) await schedules.remove({ id, resourceId: former.resourceId })
      const signal = scheduleSignal(schedule, new Date(runtime.clock.now()).toISOString())
      const stored = await schedules.create(this.#runner, signal, {
        id, threadId: this.#runner.id, resourceId, cron, ...(timezone === undefined ? {} : { timeZone: timezone }),
      })
      kept.add(stored.id)
    }
    for (const { id, resourceId } of found) if (!kept.has(id)) await schedules.remove({ id, resourceId })
  }

  async listSchedules(): Promise<WorkflowScheduleInfo[]> {
    await this.register().open()
    if (!(await this.#site().schedules.isKnown())) return []
    return (await this.#schedules()).map(scheduleInfo)
  }

  /** Those that start runs: their thread is no run, but the workflow. */
  async #schedules(): Promise<ScheduleRecord[]> {
    const found: ScheduleRecord[] = []
    for (let after: string | undefined, more = true; more;) {
      const page = await this.#site().schedules.list({
        agentId: this.#runner.id, threadId: this.#runner.id, ...(after === undefined ? {} : { after }),
      })
      found.push(...page.schedules)
      after = found.at(-1)?.id
      more = page.more
    }
    return found
  }

  /** Starts the run of an occurrence. Its name is the same in every process, so that it starts once. */
  async #startScheduled(record: ScheduleRecord, at: number): Promise<string | undefined> {
    const start = scheduledStart(record)
    if (!start) return undefined
    const runId = scheduledRunId(record, at)
    const run = new WorkflowRun(this.#graph(), this, { runId, resourceId: record.resourceId }, () => runId)
    await run.beginScheduled(start)
    return runId
  }

  /** One schedule for each run, at the earliest time that it waits for. Its signal says nothing: the rows say what is due. */
  async #wakeAt({ threadId, resourceId }: { threadId: string; resourceId: string }, at: number, epoch: number): Promise<void> {
    const { schedules, threads } = this.#site()
    // The name of a run may be longer than that of a schedule.
    const id = `wake:${createHash('sha256').update(threadId).digest('hex')}`
    const createdAt = new Date(threads.clock.now()).toISOString()
    // A schedule with another signal replaces one that is done.
    const signal: Signal = { id, type: 'reactive', tagName: 'workflow-wake', contents: `${epoch}`, createdAt, transient: true }
    await schedules.create(this.#runner, signal, { id, threadId, resourceId, at: new Date(at), overlap: 'replace' })
  }
}

/** Chunks after which a run may have ended or be suspended. */
function isEnd(chunk: Chunk): boolean {
  if (chunk.type !== 'data-workflow') return false
  const { type } = (chunk as { data: WorkflowChunk }).data
  return type === 'workflow-finish' || type === 'workflow-suspended' || type === 'workflow-paused'
}
