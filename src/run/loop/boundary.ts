import { describe } from '../../base/errors.ts'
import type { MessageRow } from '../../message/row.ts'
import { lanePositionOf } from '../../signals/state.ts'
import type { RunChunk, StepFinishPayload, Usage } from '../chunk.ts'
import { chunkError } from '../model/provider-error.ts'
import { runResult, type RunResult } from '../output/run-result.ts'
import { stepResult, type Ending, type StepEnd, type StepResult } from '../step/step-result.ts'
import type { RunCommit, RunCommitEnd, RunCommitted } from './run-host.ts'
import type { Run } from './run.ts'
import { checkSegment } from './segment.ts'

/**
 * The step boundary: commits the step, admits the drained input, and publishes both, in this order. Returns the result when the run
 * has ended; nothing when another step follows, also because input entered in this commit.
 */
export async function boundary(run: Run, done: StepEnd): Promise<RunResult | undefined> {
  const { step, entered, ended } = await commitChecked(run, done)
  const result = stepResult(run.step, step)
  const { messageId } = run
  run.ended = ended
  if (done.withdrawn || done.end?.status === 'rejected') run.host.withdraw?.()
  if (entered.length > 0) run.clearInterrupt()
  if (done.drain) run.trace?.drained(entered.length, entered.flat(), result.stepNumber + 1)
  await admitInput(run, entered.flat())
  const counted = step.recorder !== undefined || step.toolResults !== undefined
  if (counted) run.addStep(result, step.broken ?? false)
  const end = ended ? step.end : undefined
  if (counted && step.end?.status !== 'suspended') {
    const finish = run.chunk('step-finish', await stepFinish(run, result, messageId, !ended))
    if (end) await publishAfterEnd(run, finish)
    else await run.publish(finish)
    run.notify('onStepFinish', result)
  }
  return end && publishEnd(run, end, messageId)
}

/** Commits a step, and drains the mailbox. Input may only enter after a segment that output processors have checked. */
async function commitChecked(run: Run, done: StepEnd): Promise<RunCommitted & { step: StepEnd }> {
  if (done.end?.status === 'rejected') return { step: done, ...(await commitStep(run, done, done.rows)) }
  if (done.end || !done.drain || !run.processors.checksOutput) {
    const step = done.end ? await checkSegment(run, done) : done
    // Own signals of a step that was cut are stored too: they were published.
    return Object.assign(await commitStep(run, step, [...step.rows, ...run.takeOwnSignals()]), { step })
  }
  const looked = await commitStep(run, { ...done, drain: 'look' }, [...done.rows, ...run.takeOwnSignals()])
  if (!looked.waits) return { step: done, ...looked }
  const step = await checkSegment(run, { ...done, rows: [] })
  return { step, ...(await commitStep(run, step, [...step.rows, ...run.takeOwnSignals()])) }
}

type CommittedStep = Omit<StepEnd, 'drain'> & { drain?: boolean | 'look' }

async function commitStep(run: Run, { drain, end, change }: CommittedStep, rows: MessageRow[]): Promise<RunCommitted> {
  const commit: RunCommit = { step: run.step, rows }
  if (change) Object.assign(commit, change)
  if (drain) commit.drain = drain
  if (end) commit.end = commitEnd(end, run.usage)
  const committed = await run.commit(commit)
  if (change) run.history.revise(change)
  run.history.append(rows)
  return committed
}

/** Input that enters between two steps: it is published where it enters, then part of the prompt, then seen by input processors. */
async function admitInput(run: Run, rows: MessageRow[]): Promise<void> {
  if (rows.length === 0) return
  await run.echo(rows)
  run.history.append(rows)
  if (rows.some(lanePositionOf)) run.lanesRepeated = false
  await run.processInput(rows)
}

async function stepFinish(run: Run, result: StepResult, messageId: string, isContinued: boolean): Promise<StepFinishPayload> {
  const { finishReason: reason, warnings, text, usage, providerMetadata, modelId } = result
  const metadata: StepFinishPayload['metadata'] = {}
  if (providerMetadata !== undefined) metadata.providerMetadata = providerMetadata
  if (modelId !== undefined) metadata.modelId = modelId
  return {
    messageId,
    stepResult: { reason, isContinued, warnings },
    output: { text, toolCalls: result.toolCalls.length === 0 ? [] : await run.display.displayedCalls(result.toolCalls), usage },
    metadata,
  }
}

/** Publishes a chunk of a run whose end is stored: an error of a stream processor can't change it. False when one threw. */
async function publishAfterEnd(run: Run, chunk: RunChunk): Promise<boolean> {
  try {
    await run.publish(chunk)
    return true
  } catch (error) {
    run.logger.error(`a processor of agent '${run.agent.id}' failed after the end of the run`, {
      runId: run.id, chunk: chunk.type, error: describe(error),
    })
    return false
  }
}

async function publishEnd(run: Run, end: Ending, messageId: string): Promise<RunResult> {
  const result = runResult(run, end)
  if (end.object !== undefined) await publishAfterEnd(run, run.chunk('object-result', { object: end.object }))
  if (end.tripwire) run.emit(run.chunk('tripwire', end.tripwire))
  switch (end.status) {
    case 'suspended':
      // After the commit: a subscriber may decide as soon as it receives the chunk.
      for (const [index, call] of (end.suspended ?? []).entries()) {
        const chunk = await run.display.suspensionChunk(call, index + 1 < (end.suspended?.length ?? 0))
        if (!(await publishAfterEnd(run, chunk))) run.emit(chunk)
      }
      break
    case 'aborted':
      run.emit(run.chunk('abort', {}))
      run.notify('onAbort', { steps: result.steps })
      break
    case 'failed':
      run.emit(run.chunk('error', { error: chunkError(end.error) }))
      if (end.error) run.notify('onError', { error: end.error })
      break
    default: {
      const finish = run.chunk('finish', { messageId, stepResult: { reason: end.reason }, output: { usage: run.usage }, metadata: {} })
      if (end.status === 'rejected' || !(await publishAfterEnd(run, finish))) run.emit(finish)
      run.notify('onFinish', result)
    }
  }
  return result
}

function commitEnd(end: Ending, usage: Usage): RunCommitEnd {
  switch (end.status) {
    case 'suspended':
      return { status: 'suspended', calls: end.suspended ?? [], usage }
    case 'rejected':
      return { status: 'rejected', tripwire: end.tripwire ?? { reason: '', processorId: '' } }
    default:
      return { status: end.status, usage, ...(end.error ? { error: end.error } : {}) }
  }
}
