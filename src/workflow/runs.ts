import { checkName, checkNames, checkWhole, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import type { WorkflowGraph } from './plan/graph.ts'
import { runTransitions, type WorkflowRunStatus } from './plan/machine.ts'
import { MemoryPlace } from './place/memory-place.ts'
import type { RunPlace } from './place/place.ts'
import { WorkflowRun } from './run.ts'
import { ThreadPlace, type WorkflowSite } from './place/thread-place.ts'
import { resultOf, type WorkflowResult, type WorkflowRunInfo } from './place/stored-run.ts'

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

  /** What became of a run so far; null for an unknown one. */
  async getWorkflowRunById(runId: string, options: { resourceId?: string } = {}): Promise<WorkflowResult<Output, State> | null> {
    checkNames('getWorkflowRunById()', options, ['resourceId'])
    checkName('runId', runId)
    const stored = await this.place.read({ runId, resourceId: options.resourceId })
    return stored && resultOf(this.graph, stored)
  }

  /** Deletes a run with all that was recorded of it; what runs of it is aborted. False for an unknown one. */
  async deleteWorkflowRunById(runId: string, options: { resourceId?: string } = {}): Promise<boolean> {
    checkNames('deleteWorkflowRunById()', options, ['resourceId'])
    checkName('runId', runId)
    return this.place.delete({ runId, resourceId: options.resourceId })
  }
}
