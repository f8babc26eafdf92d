import { checkName, checkNames, checkWhole, refused } from '../base/arguments.ts'
import { HeedError, isHeedError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import type { WorkflowGraph } from './plan/graph.ts'
import { runTransitions, type WorkflowRunStatus } from './plan/machine.ts'
import { MemoryPlace } from './place/memory-place.ts'
import type { RunPlace } from './place/place.ts'
import { WorkflowRun } from './run.ts'
import type { ReadySchedule, WorkflowScheduleInfo } from './definition/scheduled.ts'
import { ThreadPlace, type WorkflowSite } from './place/thread-place.ts'
import { resultOf, type WorkflowResult, type WorkflowRunInfo } from './place/stored-run.ts'

/** How many parked runs are listed at a time. */
const pageOfParked = 100

/** The name and the owner of a run. */
export interface CreateRunOptions {
  /** Names the run: started twice, it is one run. Generated where it is left out. */
  runId?: string
  /** The owner of the run (a user, a tenant). */
  resourceId?: string
}

/** Which runs are listed. */
export interface WorkflowRunQuery {
  resourceId?: string
  status?: WorkflowRunStatus | readonly WorkflowRunStatus[]
  fromDate?: Date
  toDate?: Date
  /** From 0 on. */
  page?: number
  /** Defaults to 20. */
  perPage?: number
}

/** The fields of a result that a caller reads. */
export type WorkflowRunFields = keyof WorkflowResult | 'result' | 'error' | 'tripwire' | 'suspended' | 'suspendPayload' | 'resumeLabels'

const runFields: readonly WorkflowRunFields[] = [
  'runId', 'status', 'input', 'steps', 'path', 'stepExecutionPath', 'state', 'usage', 'result', 'error', 'tripwire', 'suspended',
  'suspendPayload', 'resumeLabels',
]

type ReadField<Result, Name extends PropertyKey> = Result extends unknown ? Name extends keyof Result ? Result[Name] : undefined : never

/** The runs of a workflow. */
export abstract class WorkflowRuns<Input, Output, State> {
  abstract readonly id: string
  /** @internal */
  abstract readonly graph: WorkflowGraph
  #place: RunPlace | undefined
  #threads: ThreadPlace | undefined
  #heed: object | undefined

  /** @internal */
  get place(): RunPlace {
    this.#place ??= new MemoryPlace(() => this.graph)
    return this.#place
  }

  /** @internal Its runs are on threads of this Heed's storage from here on. */
  join(heed: { sites: { of(): WorkflowSite } }): void {
    if (this.#heed !== undefined && this.#heed !== heed)
      throw new HeedError('invalid_workflow', `Workflow '${this.id}' belongs to another Heed already. Clone it with cloneWorkflow().`)
    this.#heed = heed
    this.#place = this.#threads = new ThreadPlace(this.id, () => this.graph, () => heed.sites.of())
  }

  /** @internal The storage of an agent that executes it, where it belongs to no Heed. */
  inheritStorage(site: WorkflowSite): void {
    if (!this.#threads) this.#place = this.#threads = new ThreadPlace(this.id, () => this.graph, () => site)
  }

  /** @internal The schedules of its definition. */
  abstract readonly schedules: readonly ReadySchedule[]

  /**
   * @internal Makes the schedules of the store those of the code: new ones are created, changed ones replaced, and others removed. One that
   * is as it was stays unchanged: its next occurrence, and a pause.
   */
  async reconcile(): Promise<void> {
    for (const { start } of this.schedules)
      await new WorkflowRun(this.graph, this.place, { runId: 'schedule' }, newId).checkScheduled(start)
    await this.#threads?.reconcile(this.schedules)
  }

  /** The schedules that start its runs, as the storage has them. Empty for a workflow that belongs to no Heed. */
  async listSchedules(): Promise<WorkflowScheduleInfo[]> {
    return (await this.#threads?.listSchedules()) ?? []
  }

  /** @internal Lets this process run its runs. Returns the runtime of their threads. */
  register(): ThreadRuntime | undefined {
    return this.#threads?.register()
  }

  /** A run to start. Nothing is stored before that. */
  createRun(options: CreateRunOptions = {}): WorkflowRun<Input, Output, State> {
    checkNames('createRun()', options, ['runId', 'resourceId'])
    const { runId = newId(), resourceId } = options
    checkName('runId', runId)
    if (resourceId !== undefined) checkName('resourceId', resourceId)
    return new WorkflowRun(this.graph, this.place, { runId, resourceId }, newId)
  }

  /** Newest first. */
  async listWorkflowRuns(query: WorkflowRunQuery = {}): Promise<{ runs: WorkflowRunInfo[]; total: number }> {
    checkNames('listWorkflowRuns()', query, ['resourceId', 'status', 'fromDate', 'toDate', 'page', 'perPage'])
    const { page = 0, perPage = 20, resourceId, status, fromDate, toDate } = query
    checkWhole('page', page)
    checkWhole('perPage', perPage, 1)
    const statuses = status === undefined ? undefined : [status].flat()
    if (statuses?.some((one) => !Object.hasOwn(runTransitions, one)))
      throw refused('status', `among ${Object.keys(runTransitions).join(', ')}`)
    return this.place.list({
      workflowId: this.id, resourceId, status: statuses, from: fromDate?.getTime(), to: toDate?.getTime(), limit: perPage,
      offset: page * perPage,
    })
  }

  /** The runs that go on by themselves, newest first: those that are about to run, run or wait. */
  async listActiveWorkflowRuns(
    query: Omit<WorkflowRunQuery, 'status'> = {},
  ): Promise<{ runs: WorkflowRunInfo[]; total: number }> {
    checkNames('listActiveWorkflowRuns()', query, ['resourceId', 'fromDate', 'toDate', 'page', 'perPage'])
    return this.listWorkflowRuns({ ...query, status: ['pending', 'running', 'waiting'] })
  }

  /**
   * Restarts the runs that are parked, as `restart()` of each. Active runs need none: where their process is gone, another continues them.
   * Resolves with the ids of the runs when the restarts are stored.
   */
  async restartAllActiveWorkflowRuns(options: { resourceId?: string } = {}): Promise<{ runIds: string[] }> {
    checkNames('restartAllActiveWorkflowRuns()', options, ['resourceId'])
    const parked: WorkflowRunInfo[] = []
    for (let page = 0, total = 1; page * pageOfParked < total; page += 1) {
      const found = await this.listWorkflowRuns({ ...options, status: 'parked', page, perPage: pageOfParked })
      parked.push(...found.runs)
      total = found.total
    }
    const runIds: string[] = []
    for (const { runId, resourceId } of parked) {
      const run = new WorkflowRun(this.graph, this.place, { runId, resourceId }, newId)
      const restarted = await run.beginRestart().then(() => true, (error: unknown) => {
        // Another process restarted or deleted it meanwhile.
        if (isHeedError(error) && (error.code === 'run_not_parked' || error.code === 'not_found')) return false
        throw error
      })
      if (restarted) runIds.push(runId)
    }
    return { runIds }
  }

  /**
   * What became of a run so far; null for an unknown one. With `fields`, these alone; with `withNestedWorkflows: false`, without the steps
   * of workflows within.
   */
  async getWorkflowRunById(
    runId: string, options?: { resourceId?: string; withNestedWorkflows?: boolean },
  ): Promise<WorkflowResult<Output, State> | null>
  async getWorkflowRunById<const Names extends readonly WorkflowRunFields[]>(
    runId: string, options: { fields: Names; resourceId?: string; withNestedWorkflows?: boolean },
  ): Promise<{ [Name in Names[number]]: ReadField<WorkflowResult<Output, State>, Name> } | null>
  async getWorkflowRunById(
    runId: string, options: { fields?: readonly WorkflowRunFields[]; resourceId?: string; withNestedWorkflows?: boolean } = {},
  ): Promise<unknown> {
    checkNames('getWorkflowRunById()', options, ['resourceId', 'fields', 'withNestedWorkflows'])
    checkName('runId', runId)
    const { resourceId, fields, withNestedWorkflows = true } = options
    const unknown = fields === undefined ? undefined : Array.isArray(fields) ? fields.find((name) => !runFields.includes(name)) : 'fields'
    if (unknown !== undefined) throw refused('fields', `a list of ${runFields.join(', ')}`)
    if (typeof withNestedWorkflows !== 'boolean') throw refused('withNestedWorkflows', 'true or false')
    const stored = await this.place.read({ runId, resourceId })
    if (!stored) return null
    const rows = withNestedWorkflows ? stored.rows : stored.rows.filter(({ path }) => !path.includes('/'))
    const result = resultOf<Output, State>(this.graph, { ...stored, rows }) as object as Record<string, unknown>
    return fields ? Object.fromEntries(fields.filter((name) => name in result).map((name) => [name, result[name]])) : result
  }

  /** Deletes a run with all that was recorded of it; what runs of it is aborted. False for an unknown one. */
  async deleteWorkflowRunById(runId: string, options: { resourceId?: string } = {}): Promise<boolean> {
    checkNames('deleteWorkflowRunById()', options, ['resourceId'])
    checkName('runId', runId)
    return this.place.delete({ runId, resourceId: options.resourceId })
  }
}
