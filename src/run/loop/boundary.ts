import { describe } from '../../base/errors.ts'
import { lanePositionOf } from '../../signals/state.ts'
import { rowToSignal } from '../../signals/row.ts'
import { signalToDataChunk } from '../../signals/echo.ts'
import type { ToolInvocationPart } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import type { Tripwire } from '../../processors/processor.ts'
import type { FinishReason, RunChunk, StepFinishPayload } from '../chunk.ts'
import { runResult } from '../step/outcome.ts'
import { chunkError } from '../model/provider-error.ts'
import type { Run } from './run.ts'
import type { RunCommit, RunCommitEnd, RunCommitted } from './run-host.ts'
import type { RunResult, WaitingCall } from '../output/run-result.ts'
import { checkSegment, type SegmentChange } from './segment.ts'
import type { StepResult } from '../step/step-result.ts'
import type { StepRecorder } from '../step/step-recorder.ts'
import { shownCalls, waitingChunk } from '../tools/tool-display.ts'

/** A step that is done: what it adds to history, and whether the run means to end with it. */
export interface StepEnd {
  said?: StepRecorder
  rows: MessageRow[]
  settled?: ToolInvocationPart[]
  /** Take what waits. */
  drain?: boolean
  end?: Ending
  /** Output processors saw all that was said since input last entered, and this is what they left of it. */
  checked?: boolean
  /** What they changed in rows that are stored. */
  change?: SegmentChange
  /** Its stream broke, and the next step goes on with the same answer. */
  broken?: boolean
  /** Of what was shown something is refused, or can't be checked. */
  withdrawn?: boolean
}

export interface Ending {
  status: RunCommitEnd['status']
  reason: FinishReason
  waiting?: WaitingCall[]
  tripwire?: Tripwire
  error?: Error
  object?: unknown
}

/**
 * The step boundary: stores the step, lets in what waited, and tells the watchers, in this order. Answers the result when the run
 * is over; nothing when another step follows, be it because input entered just now.
 */
export async function boundary(run: Run, done: StepEnd): Promise<RunResult | undefined> {
  const { step, entered, ended } = await stored(run, done)
  const result = run.resultOf(step)
  const { messageId } = run
  run.over = ended
  if (done.withdrawn || done.end?.status === 'rejected') run.host.withdraw?.()
  if (entered.length > 0) run.settleInterrupt()
  if (done.drain) run.trace?.drained(entered.length, entered.flat(), result.stepNumber + 1)
  await welcome(run, entered.flat())
  const counted = step.said !== undefined || step.settled !== undefined
  if (counted) run.count(result, step.broken ?? false)
  const end = ended ? step.end : undefined
  if (counted && step.end?.status !== 'suspended') {
    const finish = run.chunk('step-finish', await stepFinish(run, result, messageId, !ended))
    if (end) await sayLast(run, finish)
    else await run.say(finish)
    run.notify('onStepFinish', result)
  }
  return end && farewell(run, end, messageId)
}

/** Stores a step, and takes what waits after it: only when what is there before it has been checked. */
async function stored(run: Run, done: StepEnd): Promise<RunCommitted & { step: StepEnd }> {
  if (done.end?.status === 'rejected') return { step: done, ...(await keep(run, done, done.rows)) }
  if (done.end || !done.drain || !run.processors.checksAnswers) {
    const step = done.end ? await checkSegment(run, done) : done
    // Also when a step was cut short: watchers saw them.
    return Object.assign(await keep(run, step, [...step.rows, ...run.takeSent()]), { step })
  }
  const looked = await keep(run, { ...done, drain: 'look' }, [...done.rows, ...run.takeSent()])
  if (!looked.waits) return { step: done, ...looked }
  const step = await checkSegment(run, { ...done, rows: [] })
  return { step, ...(await keep(run, step, [...step.rows, ...run.takeSent()])) }
}

async function keep(run: Run, { drain, end, change }: Omit<StepEnd, 'drain'> & { drain?: boolean | 'look' }, rows: MessageRow[]): Promise<RunCommitted> {
  const commit: RunCommit = { step: run.step, rows }
  if (change) Object.assign(commit, change)
  if (drain) commit.drain = drain
  if (end) commit.end = commitEnd(end, run.usage)
  const committed = await run.commit(commit)
  if (change) run.revise(change)
  run.append(rows)
  return committed
}

async function stepFinish(run: Run, result: StepResult, messageId: string, isContinued: boolean): Promise<StepFinishPayload> {
  const { finishReason: reason, warnings, text, usage, providerMetadata, modelId } = result
  const metadata: StepFinishPayload['metadata'] = {}
  if (providerMetadata !== undefined) metadata.providerMetadata = providerMetadata
  if (modelId !== undefined) metadata.modelId = modelId
  return {
    messageId,
    stepResult: { reason, isContinued, warnings },
    output: { text, toolCalls: result.toolCalls.length === 0 ? [] : await shownCalls(run, result.toolCalls), usage },
    metadata,
  }
}

/** Shows a chunk of a run that is stored as over: what a processor throws now comes too late. False when it threw. */
async function sayLast(run: Run, chunk: RunChunk): Promise<boolean> {
  try {
    await run.say(chunk)
    return true
  } catch (error) {
    run.logger.error(`a processor of agent '${run.agent.id}' failed after the run was over`, { runId: run.id, chunk: chunk.type, error: describe(error) })
    return false
  }
}

/** Input that enters a running loop: shown at its place in the stream, seen by processors, then part of the prompt. */
async function welcome(run: Run, rows: MessageRow[]): Promise<void> {
  if (rows.length === 0) return
  await echo(run, rows)
  run.append(rows)
  if (rows.some(lanePositionOf)) run.lanesRepeated = false
  await run.admit(rows)
}

/** Signals show themselves where they enter: watchers see what the model sees, in the same order. */
export async function echo(run: Run, rows: readonly MessageRow[]): Promise<void> {
  for (const row of rows) if (row.role === 'signal') await run.say(signalToDataChunk(rowToSignal(row), run.id))
}

async function farewell(run: Run, end: Ending, messageId: string): Promise<RunResult> {
  const result = runResult(run, end)
  if (end.object !== undefined) await sayLast(run, run.chunk('object-result', { object: end.object }))
  if (end.tripwire) run.tell(run.chunk('tripwire', end.tripwire))
  switch (end.status) {
    case 'suspended':
      // Told when it is stored: whoever sees it may decide at once.
      for (const [index, call] of (end.waiting ?? []).entries()) {
        const chunk = await waitingChunk(run, call, index + 1 < (end.waiting?.length ?? 0))
        if (!(await sayLast(run, chunk))) run.tell(chunk)
      }
      break
    case 'aborted':
      run.tell(run.chunk('abort', {}))
      run.notify('onAbort', { steps: result.steps })
      break
    case 'failed':
      run.tell(run.chunk('error', { error: chunkError(end.error) }))
      if (end.error) run.notify('onError', { error: end.error })
      break
    default: {
      const finish = run.chunk('finish', { messageId, stepResult: { reason: end.reason }, output: { usage: run.usage }, metadata: {} })
      if (end.status === 'rejected' || !(await sayLast(run, finish))) run.tell(finish)
      run.notify('onFinish', result)
    }
  }
  return result
}

function commitEnd(end: Ending, usage: Run['usage']): RunCommitEnd {
  switch (end.status) {
    case 'suspended':
      return { status: 'suspended', calls: end.waiting ?? [], usage }
    case 'rejected':
      return { status: 'rejected', tripwire: end.tripwire ?? { reason: '', processorId: '' } }
    default:
      return { status: end.status, usage, ...(end.error ? { error: end.error } : {}) }
  }
}
