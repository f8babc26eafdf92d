import { describe, HeedError, isHeedError } from '../../base/errors.ts'
import type { JSONObject } from '../../base/json.ts'
import { untilAborted } from '../../base/promises.ts'
import { joinRows } from '../../message/join.ts'
import type { MessagePart, ToolInvocationPart } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import type { Tripwire } from '../../processors/processor.ts'
import type { Chunk, FinishReason, Usage } from '../../message/chunk.ts'
import { failedResult, type RunResult } from '../../run/output/run-result.ts'
import { toolCallOf, toolResultOf } from '../../run/step/step-result.ts'
import type { RunRow, Scope, ThreadStore } from '../../store/contract/threads.ts'
import { activeContext } from '../../tracing/telemetry.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'
import { unlessNew } from '../send/queue.ts'
import type { LocalCall } from '../send/waiters.ts'
import { boundaries, compareCursors, ends, parseCursor } from '../watch/retained-chunks.ts'
import { abortThread, subscribe, type AgentThreadSubscription } from '../watch/subscription.ts'

/** How often a run is looked after that another process may have, or nobody. */
const lookMs = 1_000

/** Follows one run, wherever it is: what it says while it is at work, here or in another process, and how it stands when it is over or waits. */
export class RunFollower {
  readonly #runtime: ThreadRuntime
  readonly #scope: Scope
  readonly #runId: string
  readonly #emit: (chunk: Chunk) => void
  #heard: Promise<boolean>
  #unfollow: () => void = () => {}
  #over = false
  /** From when the run was first found at work elsewhere: what is said here too is then heard by it, in one order. */
  #ear: RemoteRun | undefined
  /** The cursor of the last chunk that was heard without it. */
  #last: string | undefined
  /** What broke off here is followed by somebody else, who tells it here. */
  #carried = false
  /** Of the last segment that ended here. */
  result: RunResult | undefined

  constructor(runtime: ThreadRuntime, scope: Scope, runId: string, emit: (chunk: Chunk) => void) {
    this.#runtime = runtime
    this.#scope = scope
    this.#runId = runId
    this.#emit = emit
    this.#heard = this.#listen()
  }

  /**
   * The run once it is no longer running; `signalId` is what starts it, where it may not have begun. Rejects with the signal's reason
   * when that aborts first; the run goes on then.
   */
  async end(signalId: string | undefined, signal: AbortSignal): Promise<RunRow> {
    for (;;) {
      const run = await this.#look(signalId)
      if (run) return await this.#hearOut(run, signal)
      if (!this.#ear && !this.#carried && (await this.#isElsewhere())) {
        this.#ear = new RemoteRun(this.#runtime, this.#scope, this.#runId, this.#last, (chunk) => this.#emit(chunk))
      }
      const heard = await this.#pause([this.#heard, ...this.#words()], signal)
      if (heard) this.#heard = this.#listen()
      else if (heard === undefined && !this.#runtime.hostOf(this.#scope.threadId)) await this.#runtime.wake(this.#scope.threadId)
    }
  }

  async #isElsewhere(): Promise<boolean> {
    if (this.#runtime.hostOf(this.#scope.threadId)) return false
    const thread = await this.#runtime.store.getThread(this.#scope)
    return thread?.status === 'running' && thread.owner !== undefined && thread.owner !== this.#runtime.owner
  }

  /** What was said elsewhere before the run was stored as over may still be on its way. It is waited for no longer than for a look. */
  async #hearOut(run: RunRow, signal: AbortSignal): Promise<RunRow> {
    while (this.#ear && !this.#ear.heardOut(run)) if ((await this.#pause(this.#words(), signal)) === undefined) break
    return run
  }

  /** False when the run says that it is over, or waits, wherever it is at work. */
  #words(): Array<Promise<false>> {
    return this.#ear ? [this.#ear.word().then(() => false)] : []
  }

  /** What comes first of these; undefined when it is time to look again. Somebody waits for the end: the process stays. */
  async #pause(events: Array<Promise<boolean>>, signal: AbortSignal): Promise<boolean | undefined> {
    const pause = Promise.withResolvers<undefined>()
    const timer = this.#runtime.clock.after(lookMs, () => pause.resolve(undefined))
    try {
      return await untilAborted(Promise.race([...events, pause.promise]), signal)
    } finally {
      timer.cancel()
    }
  }

  /** Ends the run too: what waits to start it is taken out, what is at work or suspended is aborted. */
  async abort(signalId: string): Promise<void> {
    const cancelled = await unlessNew(this.#runtime.store.cancelSignals(this.#scope, [signalId]), [])
    if (cancelled.length === 0) abortThread(this.#runtime, this.#scope, { expectedRunId: this.#runId })
  }

  /** Hears nothing any more. */
  close(): void {
    this.#over = true
    this.#unfollow()
    this.#ear?.close()
  }

  /** True when a segment of the run is over here. Rejects when this process is closed. */
  #listen(): Promise<boolean> {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>()
    promise.catch(() => {})
    this.#unfollow = this.#runtime.waiters.follow(this.#runId, {
      from: activeContext(),
      emit: (chunk) => {
        if (this.#over || this.#ear) return
        if (chunk.type === 'data-run-resumed') this.#carried = true
        this.#last = chunk.cursor ?? this.#last
        this.#emit(chunk)
      },
      resolve: (result) => {
        this.result = result
        resolve(true)
      },
      // A run that could not be stored is taken up again, and one that was fenced goes on elsewhere: the store says how it ends.
      reject: (error) => (isHeedError(error) && error.code === 'closed' ? reject(error) : resolve(true)),
    })
    this.#runtime.hostOf(this.#scope.threadId)?.join(this.#runId)
    return promise
  }

  async #look(signalId: string | undefined): Promise<RunRow | undefined> {
    const run = await this.#runtime.store.getRun(this.#scope, this.#runId)
    if (run) return run.status === 'running' ? undefined : run
    const mail = signalId === undefined ? null : await this.#runtime.store.getSignal(this.#scope, signalId)
    if (mail?.state === 'pending' || mail?.state === 'taken') return undefined
    throw new HeedError('aborted', `Run ${this.#runId} is gone: it was taken out of the queue, or deleted with its thread.`, { details: { runId: this.#runId } })
  }
}

/**
 * Lets the caller of a run that broke off follow it to its end. What the run had not stored is said again: a chunk tells from where.
 */
export function followOn(runtime: ThreadRuntime, run: { threadId: string; runId: string; step: number }, caller: LocalCall): void {
  const { threadId, runId, step } = run
  caller.emit({ type: 'data-run-resumed', runId, data: { step } })
  const follower = new RunFollower(runtime, { threadId }, runId, (chunk) => caller.emit(chunk))
  follower.end(undefined, unaborted)
    .then((over) => follower.result ?? (caller.options?.structuredOutput ? Promise.reject(objectLost(over)) : storedResult(runtime.store, over)))
    .then((result) => caller.resolve(result), (error: unknown) => caller.reject(error))
    .finally(() => follower.close())
}

function objectLost({ runId, status }: RunRow): HeedError {
  return new HeedError('store_failed', `Run ${runId} is ${status}, but the store did not answer when it ended, and the object it made is gone. Its text is on the thread.`, {
    details: { runId, status },
  })
}

const unaborted = new AbortController().signal

/**
 * Follows the chunks of one run, in whichever process it runs, by a subscription to its thread. Each chunk is emitted once. Where the run
 * was resumed, or chunks were missed, a `data-run-resumed` chunk names the step from which they are emitted again.
 */
export class RemoteRun {
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
  readonly #waits = new Set<string>()
  #word = Promise.withResolvers<void>()

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
  word(): Promise<void> {
    return this.#word.promise
  }

  /** Whether every chunk was emitted that the run published before it was stored as this. */
  heardOut({ status, suspended }: RunRow): boolean {
    return this.#ended || (status === 'suspended' && suspended.every((call) => call.decision || this.#waits.has(call.toolCallId)))
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
    if (!boundaries.has(chunk.type) || chunk.type === 'step-finish') return
    if (ends.has(chunk.type)) this.#ended = true
    else if (chunk.type === 'tool-call-approval' || chunk.type === 'tool-call-suspended') this.#waits.add(chunk.payload.toolCallId)
    this.#word.resolve()
    this.#word = Promise.withResolvers()
  }

  /** The chunks from here on follow what is stored. */
  async #startOver({ cursor }: Chunk): Promise<void> {
    const run = await this.#runtime.store.getRun(this.#scope, this.#runId)
    if (this.#closed || run?.status !== 'running') return
    this.#last = cursor
    this.#emit({ type: 'data-run-resumed', runId: this.#runId, data: { step: run.step } })
  }
}

/** How many rows are read at once. */
const page = 100

/** What a run wrote, oldest first. */
async function rowsOf(store: ThreadStore, scope: Scope, runId: string): Promise<MessageRow[]> {
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

/** What a run answered: the text of its last step, with those before it whose stream broke. */
export async function storedAnswer(store: ThreadStore, scope: Scope, runId: string): Promise<string> {
  return answerOf(await rowsOf(store, scope, runId))
}

function answerOf(rows: readonly MessageRow[]): string {
  const said = rows.filter((row) => row.role === 'assistant')
  const before = said.slice(0, -1).findLastIndex((row) => row.content.metadata?.incomplete !== 'broken')
  return said.slice(before + 1).flatMap((row) => row.content.parts.flatMap((part) => (part.type === 'text' ? part.text : []))).join('')
}

const reasons: Partial<Record<RunRow['status'], FinishReason>> = { finished: 'stop', aborted: 'aborted', rejected: 'tripwire', suspended: 'suspended' }

/** The result of a run that ended where nobody here could hear it, as far as rows tell it: not step by step, and without warnings. */
export async function storedResult(store: ThreadStore, run: RunRow): Promise<RunResult> {
  const { runId, status, suspended, usage } = run
  const why = typeof run.error?.message === 'string' ? run.error.message : ''
  if (status === 'failed' || status === 'parked') {
    return failedResult(runId, new HeedError(status === 'parked' ? 'run_parked' : 'store_failed', why || `Run ${runId} failed.`, { details: { runId } }))
  }
  const rows = status === 'rejected' ? [] : await rowsOf(store, run, runId)
  const parts = rows.flatMap((row): MessagePart[] => row.content.parts)
  const invocations = parts.filter((part): part is ToolInvocationPart => part.type === 'tool-invocation')
  const { error: _, ...empty } = failedResult(runId, new Error(why))
  const cost = usage ? (usage as unknown as Usage) : empty.usage
  return {
    ...empty,
    error: undefined,
    text: answerOf(rows),
    toolCalls: invocations.filter((part) => part.toolInvocation.state === 'call').map(toolCallOf),
    toolResults: invocations.filter((part) => part.toolInvocation.state !== 'call').map(toolResultOf),
    files: parts.filter((part) => part.type === 'file'),
    sources: parts.flatMap((part) => (part.type === 'source' ? part.source : [])),
    usage: cost,
    totalUsage: cost,
    finishReason: reasons[status] ?? 'other',
    tripwire: status === 'rejected' ? tripwireOf(why, run.error) : undefined,
    suspended: suspended.filter((call) => !call.decision),
    messages: joinRows(rows.filter((row) => row.role !== 'signal' && row.role !== 'user')),
  }
}

/** A refusal as its run keeps it. */
function tripwireOf(reason: string, { processorId, metadata }: JSONObject = {}): Tripwire {
  return { reason, processorId: typeof processorId === 'string' ? processorId : '', ...(metadata === undefined ? {} : { metadata }) }
}
