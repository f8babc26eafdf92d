import { systemClock, type Clock, type Timer } from '../../base/clock.ts'
import { HeedError } from '../../base/errors.ts'
import { copyPlain, type JSONValue } from '../../base/json.ts'
import { consoleLogger, type Logger } from '../../base/logger.ts'
import type { RequestContext } from '../../run/request-context.ts'
import type { WorkflowChunk } from '../chunk.ts'
import { Execution, firstTurn } from '../execution.ts'
import type { Command, ExecutionCommit, ExecutionHost, RunHead } from '../execution-host.ts'
import { callEndHooks, hasEndHooks } from '../definition/hooks.ts'
import type { WorkflowGraph } from '../plan/graph.ts'
import { isOver } from '../plan/machine.ts'
import type { RunName, RunPlace, RunQuery, RunStart } from './place.ts'
import type { StepRow } from '../plan/plan.ts'
import { inPathOrder, type StoredRun, type WorkflowRunInfo } from './stored-run.ts'

/** How many runs that are over a process keeps, for callers that ask for them later. */
const keptRuns = 1_000

/** Runs without a storage: they end with their process. */
export class MemoryPlace implements RunPlace {
  readonly #graph: () => WorkflowGraph
  readonly #runs = new Map<string, MemoryRun>()
  /** Readers of runs that are not started yet. */
  readonly #waiting = new Map<string, Readers>()
  readonly #clock: Clock

  constructor(graph: () => WorkflowGraph, clock: Clock = systemClock) {
    this.#graph = graph
    this.#clock = clock
  }

  /** A run in memory is there from its start on. */
  async create(name: RunName): Promise<void> {
    this.#find(name)
  }

  async start(start: RunStart): Promise<boolean> {
    if (this.#runs.has(start.runId)) return false
    const run = new MemoryRun(this.#graph(), start, this.#clock, this.#waiting.get(start.runId))
    this.#waiting.delete(start.runId)
    this.#runs.set(start.runId, run)
    this.#forgetOldest()
    run.go([])
    return true
  }

  #forgetOldest(): void {
    if (this.#runs.size <= keptRuns) return
    for (const [id, run] of this.#runs) {
      if (isOver(run.head.status)) {
        this.#runs.delete(id)
        return
      }
    }
  }

  #find({ runId, resourceId }: RunName): MemoryRun | undefined {
    const run = this.#runs.get(runId)
    if (run && resourceId !== undefined && run.resourceId !== resourceId)
      throw new HeedError('thread_forbidden', `Run '${runId}' belongs to another resource.`, { details: { runId } })
    return run
  }

  async send(name: RunName, id: string, command: Command): Promise<boolean> {
    return this.#find(name)?.send(id, command) ?? false
  }

  async read(name: RunName): Promise<StoredRun | null> {
    return this.#find(name)?.stored() ?? null
  }

  async when(name: RunName, holds: (stored: StoredRun) => boolean, signal?: AbortSignal): Promise<StoredRun> {
    const run = this.#find(name)
    if (!run) throw unknownRun(name.runId)
    const aborted = Promise.withResolvers<never>()
    aborted.promise.catch(() => {})
    const end = () => aborted.reject(signal?.reason)
    signal?.addEventListener('abort', end, { once: true })
    try {
      for (;;) {
        signal?.throwIfAborted()
        const stored = run.isActive ? undefined : run.stored()
        if (stored && holds(stored)) return stored
        await Promise.race([run.nextRest, aborted.promise])
      }
    } finally {
      signal?.removeEventListener('abort', end)
    }
  }

  async subscribe(name: RunName, { signal }: { signal: AbortSignal }): Promise<AsyncIterable<WorkflowChunk>> {
    const run = this.#find(name)
    return chunksOf(run?.readers ?? this.#waitingFor(name.runId, signal), signal)
  }

  /** The readers of a run that is not started yet. */
  #waitingFor(runId: string, signal: AbortSignal): Readers {
    const readers = this.#waiting.get(runId) ?? new Set()
    this.#waiting.set(runId, readers)
    signal.addEventListener('abort', () => {
      if (this.#waiting.get(runId) === readers && readers.size === 0) this.#waiting.delete(runId)
    }, { once: true })
    return readers
  }

  async lastCursor(): Promise<undefined> {
    return undefined
  }

  async list(query: RunQuery): Promise<{ runs: WorkflowRunInfo[]; total: number }> {
    const { resourceId, status, from = 0, to = Infinity, limit, offset } = query
    const found = [...this.#runs.values()].map((run) => run.stored()).filter(({ head, resourceId: owner }) => (
      (resourceId === undefined || owner === resourceId) && (!status || status.includes(head.status)) && head.createdAt >= from
        && head.createdAt <= to
    )).reverse()
    return { runs: found.slice(offset, offset + limit).map(runInfo), total: found.length }
  }

  async delete(name: RunName): Promise<boolean> {
    this.#find(name)?.end()
    return this.#runs.delete(name.runId)
  }
}

export function runInfo({ head, resourceId }: StoredRun): WorkflowRunInfo {
  const { runId, workflowId, status, createdAt, updatedAt } = head
  return { runId, workflowId, status, resourceId, createdAt: new Date(createdAt), updatedAt: new Date(updatedAt) }
}

export function unknownRun(runId: string): HeedError {
  return new HeedError('not_found', `There is no run '${runId}' of this workflow.`, { details: { runId } })
}

type Readers = Set<(chunk: WorkflowChunk) => void>

class MemoryRun implements ExecutionHost {
  readonly clock: Clock
  readonly logger: Logger = consoleLogger
  readonly head: RunHead
  readonly resourceId: string | undefined
  readonly #graph: WorkflowGraph
  readonly #rows = new Map<string, StepRow>()
  readonly #input: JSONValue | undefined
  readonly #context: RequestContext
  readonly readers: Readers
  readonly #sent = new Set<string>()
  #commands: Command[] = []
  #execution: Execution | undefined
  #timer: Timer | undefined
  #rest = Promise.withResolvers<void>()
  /** Of hooks that are called behind the end. Made for a run that has them. */
  #hooks: AbortController | undefined

  constructor(
    graph: WorkflowGraph, { runId, resourceId, input, state, requestContext, perStep, turn, rows = [] }: RunStart, clock: Clock,
    readers: Readers = new Set(),
  ) {
    this.clock = clock
    this.readers = readers
    this.#graph = graph
    this.#input = input
    for (const row of rows) this.#rows.set(row.path, row)
    this.#context = requestContext
    this.resourceId = resourceId
    const now = clock.now()
    this.head = { workflowId: graph.id, runId, status: 'pending', generation: 0, state, createdAt: now, updatedAt: now }
    if (perStep) Object.assign(this.head, firstTurn(turn))
  }

  get isActive(): boolean {
    return this.#execution !== undefined
  }

  /** Resolves when it has ended, or waits, the next time. */
  get nextRest(): Promise<void> {
    return this.#rest.promise
  }

  stored(): StoredRun {
    return copyPlain({
      head: this.head, input: this.#input, rows: inPathOrder(this.#rows.values()), resourceId: this.resourceId,
      requestContext: this.#context,
    })
  }

  go(commands: readonly Command[]): void {
    const execution = (this.#execution = new Execution(this, {
      graph: this.#graph, head: this.head, rows: this.#rows, input: this.#input, requestContext: this.#context, resourceId: this.resourceId,
    }))
    void execution.work(commands).then(() => this.#rested(), (error: unknown) => {
      // The callers that wait for the run get the error; a run that was deleted may have none.
      this.#rest.promise.catch(() => {})
      this.#rest.reject(error)
    })
  }

  #rested(): void {
    this.#execution = undefined
    const { status } = this.head
    // They came after the last commit.
    if (this.#commands.length > 0 && !isOver(status)) return this.go(this.#commands.splice(0))
    this.#rest.resolve()
    this.#rest = Promise.withResolvers()
    const due = [...this.#rows.values()].flatMap((row) => (row.status === 'waiting' && row.dueAt !== undefined ? row.dueAt : []))
    if (hasEndHooks(this.#graph, this.head)) void this.#callHooks()
    if (isOver(status) || status === 'paused' || due.length === 0) return
    this.#timer = this.clock.after(Math.max(0, Math.min(...due) - this.clock.now()), () => this.#wake({ type: 'wake' }))
  }

  async #callHooks(): Promise<void> {
    this.#hooks = new AbortController()
    const stored = { ...this.stored(), requestContext: this.#context }
    // The run was deleted: no process calls them again.
    await callEndHooks(this.#graph, stored, this.#hooks.signal, this.logger).catch(() => {})
  }

  send(id: string, command: Command): boolean {
    if (this.#sent.has(id)) return false
    this.#sent.add(id)
    this.#wake(command)
    return true
  }

  #wake(command: Command): void {
    this.#timer?.cancel()
    if (this.#execution) {
      this.#commands.push(command)
      this.#execution.interrupt()
    } else this.go([command])
  }

  end(): void {
    this.#timer?.cancel()
    this.#hooks?.abort(new HeedError('aborted', 'The run was deleted.'))
    this.#execution?.stop(new HeedError('aborted', 'The run was deleted.'))
  }

  commit(_commit: ExecutionCommit): Promise<Command[]> {
    return Promise.resolve(this.#commands.splice(0))
  }

  /** A reader that comes later reads the status of the run. */
  get isWatched(): boolean {
    return this.readers.size > 0
  }

  emit(chunk: WorkflowChunk): void {
    for (const read of this.readers) read(chunk)
  }
}

function chunksOf(readers: Readers, signal: AbortSignal): AsyncIterable<WorkflowChunk> {
  const waiting: WorkflowChunk[] = []
  let wake: (() => void) | undefined
  const read = (chunk: WorkflowChunk) => {
    waiting.push(chunk)
    wake?.()
  }
  readers.add(read)
  signal.addEventListener('abort', () => {
    readers.delete(read)
    wake?.()
  }, { once: true })
  return (async function* () {
    for (;;) {
      yield* waiting.splice(0)
      // Chunks may have come while the reader had the last ones.
      if (waiting.length > 0) continue
      if (signal.aborted) return
      await new Promise<void>((resolve) => (wake = resolve))
    }
  })()
}
