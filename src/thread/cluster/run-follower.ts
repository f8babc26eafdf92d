import { describe, HeedError, isHeedError } from '../../base/errors.ts'
import type { JSONObject } from '../../base/json.ts'
import { untilAborted } from '../../base/promises.ts'
import { joinRows } from '../../message/join.ts'
import type { MessagePart, ToolInvocationPart } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import { joinTaint, taintOf } from '../../message/taint.ts'
import type { Tripwire } from '../../processors/processor.ts'
import type { Chunk, FinishReason, Usage } from '../../message/chunk.ts'
import { failedResult, type RunResult } from '../../run/output/run-result.ts'
import { toolCallOf, toolResultOf } from '../../run/step/step-result.ts'
import type { Decided, RunRow, Scope, ThreadStore } from '../../store/contract/threads.ts'
import { activeContext } from '../../tracing/telemetry.ts'
import { abortThread } from '../control/abort.ts'
import { lost } from '../runtime/rewind.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'
import { unlessMissing } from '../send/queue.ts'
import type { LocalCall } from '../send/waiters.ts'
import { committedChunks, compareCursors, finalChunks, formatCursor, maxIndex, parseCursor } from '../stream/retained-chunks.ts'
import { subscribe, type AgentThreadSubscription } from '../stream/subscription.ts'

/** How often the store is read for a run without a host here. */
const recheckMs = 1_000

/** Follows one run in whichever process it runs: its chunks, and its row when it has ended or is suspended. */
export class RunFollower {
  readonly #runtime: ThreadRuntime
  readonly #scope: Scope
  readonly #runId: string
  readonly #emit: (chunk: Chunk) => void
  readonly #waits: DecidedCall | undefined
  #segmentEnd: Promise<boolean>
  #unfollow: () => unknown = () => {}
  #over = false
  /** Set when the run was first found in another process. From then on all chunks come from it, in one order. */
  #remote: RemoteRun | undefined
  /** The cursor of the last chunk that was received without it. */
  #last: string | undefined
  /** The run was interrupted here, and another follower passes its chunks on. */
  #relayedByOther = false
  /** The result of the last segment that ended here. */
  result: RunResult | undefined

  /** `waits`: the run is suspended, and its next segment is followed in whichever process it begins. */
  constructor(runtime: ThreadRuntime, scope: Scope, runId: string, emit: (chunk: Chunk) => void, waits?: DecidedCall) {
    this.#runtime = runtime
    this.#scope = scope
    this.#runId = runId
    this.#emit = emit
    this.#waits = waits
    if (waits) this.#remote = new RemoteRun(runtime, scope, runId, waits.cursor, emit)
    this.#segmentEnd = this.#followHere()
  }

  /**
   * Resolves with the run when it is no longer running; `signalId` is the signal that starts it, where it may not have begun. Rejects with
   * the reason of the abort signal; the run continues then.
   */
  async end(signalId: string | undefined, signal: AbortSignal): Promise<RunRow> {
    for (;;) {
      const run = await this.#readRun(signalId)
      if (run) return await this.#awaitLastChunks(run, signal)
      if (!this.#remote && !this.#relayedByOther && (await this.#isElsewhere())) {
        this.#remote = new RemoteRun(this.#runtime, this.#scope, this.#runId, this.#last, (chunk) => this.#emit(chunk))
      }
      const ended = await this.#pause([this.#segmentEnd, ...this.#remoteEnd()], signal)
      if (ended) this.#segmentEnd = this.#followHere()
      else if (ended === undefined && !this.#runtime.hostOf(this.#scope.threadId)) await this.#runtime.wake(this.#scope.threadId)
    }
  }

  async #isElsewhere(): Promise<boolean> {
    if (this.#runtime.hostOf(this.#scope.threadId)) return false
    const thread = await this.#runtime.store.getThread(this.#scope)
    return thread?.status === 'running' && thread.owner !== undefined && thread.owner !== this.#runtime.owner
  }

  /** The last chunks of another process may arrive after the run is stored as ended. They are awaited for one interval at most. */
  async #awaitLastChunks(run: RunRow, signal: AbortSignal): Promise<RunRow> {
    while (this.#remote && !this.#remote.hasAllChunksOf(run)) if ((await this.#pause(this.#remoteEnd(), signal)) === undefined) break
    return run
  }

  /** Resolves with false at the next chunk of another process that ends or suspends the run. */
  #remoteEnd(): Array<Promise<false>> {
    return this.#remote ? [this.#remote.nextEnd().then(() => false)] : []
  }

  /** The first of these events; undefined when it is time to read the store. Keeps the process alive, since a caller waits for the end. */
  async #pause(events: Array<Promise<boolean>>, signal: AbortSignal): Promise<boolean | undefined> {
    const pause = Promise.withResolvers<undefined>()
    const timer = this.#runtime.clock.after(recheckMs, () => pause.resolve(undefined))
    try {
      return await untilAborted(Promise.race([...events, pause.promise]), signal)
    } finally {
      timer.cancel()
    }
  }

  /** Ends the run too: a queued run is cancelled, an active or suspended one aborted. */
  async abort(signalId: string): Promise<void> {
    const cancelled = await unlessMissing(this.#runtime.store.cancelSignals(this.#scope, [signalId]), [])
    if (cancelled.length === 0) abortThread(this.#runtime, this.#scope, { expectedRunId: this.#runId })
  }

  /** Stops following. */
  close(): void {
    this.#over = true
    this.#unfollow()
    this.#remote?.close()
  }

  /** Resolves with true when a segment of the run ends here. Rejects when this process closes. */
  #followHere(): Promise<boolean> {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>()
    promise.catch(() => {})
    this.#unfollow = this.#runtime.waiters.follow(this.#runId, {
      from: activeContext(),
      emit: (chunk) => {
        if (this.#over || this.#remote) return
        if (chunk.type === 'data-run-resumed') this.#relayedByOther = true
        this.#last = chunk.cursor ?? this.#last
        this.#emit(chunk)
      },
      resolve: (result) => {
        this.result = result
        resolve(true)
      },
      // A run that could not be stored is resumed, and a fenced one continues in another process: the store has its end.
      reject: (error) => (isHeedError(error) && error.code === 'closed' ? reject(error) : resolve(true)),
    })
    this.#runtime.hostOf(this.#scope.threadId)?.attachFollowers(this.#runId)
    return promise
  }

  async #readRun(signalId: string | undefined): Promise<RunRow | undefined> {
    const { store } = this.#runtime
    const run = await unlessMissing(store.getRun(this.#scope, this.#runId), null)
    if (run) return run.status === 'running' || this.#waitsBeside(run) ? undefined : run
    const mail = signalId === undefined ? null : await unlessMissing(store.getSignal(this.#scope, signalId), null)
    if (mail?.state === 'pending' || mail?.state === 'taken') return undefined
    if (this.#runtime.lease.hasBegunAnew) throw lost(`Run ${this.#runId} is not stored any more`)
    throw new HeedError('aborted', `Run ${this.#runId} does not exist: it was cancelled, or deleted with its thread.`, {
      details: { runId: this.#runId },
    })
  }

  /** Whether the run still waits for decisions about other calls. */
  #waitsBeside({ status, suspended }: RunRow): boolean {
    const decided = this.#waits?.toolCallId
    return status === 'suspended' && suspended.some(({ toolCallId, decision }) => toolCallId === decided && decision !== undefined)
  }
}

/** A decided call of a run that waits for more decisions, and the cursor of the last chunk before them. */
interface DecidedCall {
  toolCallId: string
  cursor: string
}

/**
 * Lets the caller of a decision follow a run that waits for more of them: the last one may be made in another process, where the run then
 * continues. `unfollow` ends what follows it here; a run that has continued here is followed already.
 */
export async function followSuspended(
  runtime: ThreadRuntime, { runId, toolCallId }: Pick<Decided, 'runId' | 'toolCallId'>, caller: LocalCall, unfollow: () => boolean,
): Promise<void> {
  const run = await runtime.store.findRun(runId)
  const thread = run && (await runtime.store.getThread(run))
  if (!run || !thread || !unfollow()) return
  const epoch = thread.status === 'suspended' ? thread.epoch : thread.epoch - 1
  let hasContinued = false
  const emit = (chunk: Chunk) => {
    hasContinued ||= chunk.type !== 'abort' && chunk.type !== 'tool-output-denied'
    caller.emit(chunk)
  }
  const cursor = formatCursor({ epoch, index: maxIndex })
  const follower = new RunFollower(runtime, { threadId: run.threadId }, runId, emit, { toolCallId, cursor })
  settleAtEnd(runtime, follower, {
    ...caller,
    resolve: (result) => {
      if (result.finishReason !== 'aborted' || hasContinued) caller.resolve(result)
      else caller.reject(new HeedError('aborted', `The run ${runId} was aborted.`))
    },
  })
}

/**
 * Lets the caller of an interrupted run follow it to its end. A `data-run-resumed` chunk names the step from which chunks are emitted
 * again.
 */
export function followToEnd(runtime: ThreadRuntime, run: { threadId: string; runId: string; step: number }, caller: LocalCall): void {
  const { threadId, runId, step } = run
  caller.emit({ type: 'data-run-resumed', runId, data: { step } })
  settleAtEnd(runtime, new RunFollower(runtime, { threadId }, runId, (chunk) => caller.emit(chunk)), caller)
}

function settleAtEnd(runtime: ThreadRuntime, follower: RunFollower, caller: LocalCall): void {
  follower
    .end(undefined, unaborted)
    .then(
      (over) =>
        follower.result ?? (caller.options?.structuredOutput ? Promise.reject(outputLost(over)) : storedResult(runtime.store, over)),
    )
    .then((result) => caller.resolve(result), (error: unknown) => caller.reject(error))
    .finally(() => follower.close())
}

function outputLost({ runId, status }: RunRow): HeedError {
  return new HeedError(
    'store_failed',
    `Run ${runId} is ${status}, but the store did not answer when it ended, and its structured output is lost. Its text is on the thread.`,
    {
      details: { runId, status },
    },
  )
}

const unaborted = new AbortController().signal

/**
 * Follows the chunks of one run, in whichever process it runs, by a subscription to its thread. Each chunk is emitted once. Where the run
 * was resumed, or chunks were missed, a `data-run-resumed` chunk names the step from which they are emitted again.
 */
class RemoteRun {
  readonly #runtime: ThreadRuntime
  readonly #scope: Scope
  readonly #runId: string
  readonly #emit: (chunk: Chunk) => void
  /** The cursor of the last chunk that was emitted, here or before. */
  #last: string | undefined
  #subscription: AgentThreadSubscription | undefined
  #closed = false
  #ended = false
  /** The tool calls that the run waits for, by its chunks. */
  readonly #suspendedCalls = new Set<string>()
  #nextEnd = Promise.withResolvers<void>()

  /** `last`: the cursor of the last chunk that the caller has already. */
  constructor(runtime: ThreadRuntime, scope: Scope, runId: string, last: string | undefined, emit: (chunk: Chunk) => void) {
    this.#runtime = runtime
    this.#scope = scope
    this.#runId = runId
    this.#last = last
    this.#emit = emit
    this.#follow().catch((error: unknown) => {
      if (this.#closed || runtime.closing) return
      const details = { threadId: scope.threadId, runId, error: describe(error) }
      runtime.logger.warn('the chunks of a run in another process can not be followed', details)
    })
  }

  /** Resolves at the next chunk that ends or suspends the run. */
  nextEnd(): Promise<void> {
    return this.#nextEnd.promise
  }

  /** Whether every chunk was emitted that the run published before it was stored as this. */
  hasAllChunksOf({ status, suspended }: RunRow): boolean {
    return this.#ended || (status === 'suspended' && suspended.every((call) => call.decision || this.#suspendedCalls.has(call.toolCallId)))
  }

  close(): void {
    this.#closed = true
    this.#subscription?.unsubscribe()
  }

  async #follow(): Promise<void> {
    const subscription = await subscribe(this.#runtime, this.#scope)
    this.#subscription = subscription
    if (this.#closed) return subscription.unsubscribe()
    for await (const chunk of subscription.stream) {
      if (this.#closed) return
      if (chunk.type === 'data-thread-snapshot') await this.#startOver(chunk)
      else if (chunk.runId === this.#runId) this.#receive(chunk)
    }
  }

  #receive(chunk: Chunk): void {
    const { cursor } = chunk
    if (cursor !== undefined) {
      if (this.#last !== undefined && compareCursors(parseCursor(cursor), parseCursor(this.#last)) <= 0) return
      this.#last = cursor
    }
    this.#emit(chunk)
    if (!committedChunks.has(chunk.type) || chunk.type === 'step-finish') return
    if (finalChunks.has(chunk.type)) this.#ended = true
    else if (chunk.type === 'tool-call-approval' || chunk.type === 'tool-call-suspended') this.#suspendedCalls.add(chunk.payload.toolCallId)
    this.#nextEnd.resolve()
    this.#nextEnd = Promise.withResolvers()
  }

  /** The chunks from here on follow the stored rows. */
  async #startOver({ cursor }: Chunk): Promise<void> {
    const run = await this.#runtime.store.getRun(this.#scope, this.#runId)
    if (this.#closed || run?.status !== 'running') return
    this.#last = cursor
    this.#emit({ type: 'data-run-resumed', runId: this.#runId, data: { step: run.step } })
  }
}

/** How many rows are read at once. */
const page = 100

/** The rows of a run, oldest first. */
async function rowsOfRun(store: ThreadStore, scope: Scope, runId: string): Promise<MessageRow[]> {
  const rows: MessageRow[] = []
  for (let before: number | undefined, more = true; more;) {
    const found = await store.listRows(scope, { limit: page, ...(before === undefined ? {} : { before }) })
    const own = found.rows.filter((row) => row.runId === runId)
    rows.unshift(...own)
    before = found.rows[0]?.seq
    more = found.more && before !== undefined && (rows.length === 0 || own.length > 0)
  }
  return rows
}

/** The text of a run's last step, with the steps before it whose stream broke, and where values in its prompt came from. */
export async function storedAnswer(
  store: ThreadStore, scope: Scope, runId: string,
): Promise<{ text: string; taintedBy: readonly string[] }> {
  const rows = await rowsOfRun(store, scope, runId)
  return { text: textOfLastStep(rows), taintedBy: rows.map(({ content }) => taintOf(content)).reduce(joinTaint, []) }
}

function textOfLastStep(rows: readonly MessageRow[]): string {
  const answers = rows.filter((row) => row.role === 'assistant')
  const before = answers.slice(0, -1).findLastIndex((row) => row.content.metadata?.incomplete !== 'broken')
  return answers.slice(before + 1).flatMap((row) => row.content.parts.flatMap((part) => (part.type === 'text' ? part.text : []))).join('')
}

const finishReasons: Partial<Record<RunRow['status'], FinishReason>> = {
  finished: 'stop', aborted: 'aborted', rejected: 'tripwire', suspended: 'suspended',
}

/** The result of a run that ended in another process, as far as its rows contain it: without steps and warnings. */
export async function storedResult(store: ThreadStore, run: RunRow): Promise<RunResult> {
  const { runId, status, suspended, usage } = run
  const why = typeof run.error?.message === 'string' ? run.error.message : ''
  if (status === 'failed' || status === 'parked') {
    return failedResult(
      runId, new HeedError(status === 'parked' ? 'run_parked' : 'store_failed', why || `Run ${runId} failed.`, { details: { runId } }),
    )
  }
  const rows = status === 'rejected' ? [] : await rowsOfRun(store, run, runId)
  const parts = rows.flatMap((row): MessagePart[] => row.content.parts)
  const invocations = parts.filter((part): part is ToolInvocationPart => part.type === 'tool-invocation')
  const { error: _, ...empty } = failedResult(runId, new Error(why))
  const cost = usage ? (usage as unknown as Usage) : empty.usage
  return {
    ...empty,
    error: undefined,
    text: textOfLastStep(rows),
    toolCalls: invocations.filter((part) => part.toolInvocation.state === 'call').map(toolCallOf),
    toolResults: invocations.filter((part) => part.toolInvocation.state !== 'call').map(toolResultOf),
    files: parts.filter((part) => part.type === 'file'),
    sources: parts.flatMap((part) => (part.type === 'source' ? part.source : [])),
    usage: cost,
    totalUsage: cost,
    finishReason: finishReasons[status] ?? 'other',
    tripwire: status === 'rejected' ? tripwireOf(why, run.error) : undefined,
    suspended: suspended.filter((call) => !call.decision),
    messages: joinRows(rows.filter((row) => row.role !== 'signal' && row.role !== 'user')),
  }
}

/** The tripwire of a rejected run, from the stored error. */
function tripwireOf(reason: string, { processorId, metadata }: JSONObject = {}): Tripwire {
  return { reason, processorId: typeof processorId === 'string' ? processorId : '', ...(metadata === undefined ? {} : { metadata }) }
}
