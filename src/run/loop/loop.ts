import { describe, HeedError, isHeedError, readable } from '../../base/errors.ts'
import { isPromise } from '../../base/promises.ts'
import type { RunChunk, StepFinishPayload, Usage } from '../../message/chunk.ts'
import type { ErrorPart, MessagePart, ToolInvocationPart } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import type { InputKind } from '../../processors/pipeline.ts'
import { TripwireAbort } from '../../processors/tripwire.ts'
import { escapeText, needsGuard, RESERVED_TAGS } from '../../signals/tags.ts'
import { lanePositionOf } from '../../signals/state.ts'
import { asError, chunkError } from '../model/provider-error.ts'
import { runResult, type RunResult } from '../output/run-result.ts'
import { repairRequest, structuredOutputError, type StructuredOutput } from '../output/structured-output.ts'
import type { StepRecorder } from '../step/step-recorder.ts'
import { stepResult, type Ending, type StepEnd, type StepResult } from '../step/step-result.ts'
import { streamStep, type StreamedStep } from '../step/stream-step.ts'
import { askPolicies, beginCalls, runCalls, type CallsOutcome, type OpenCall } from '../tools/tool-calls.ts'
import { checkOtherAgents } from './other-agents.ts'
import type { RunCommit, RunCommitEnd, RunCommitted } from './run-contract.ts'
import type { Run } from './run.ts'
import { checkSegment, withoutText } from './segment.ts'
import { unansweredBefore, unansweredInput, unansweredOutside } from './unanswered.ts'

/** How a run continues that was suspended or whose process died: its calls without a result, with the decisions about them. */
export interface Continuation {
  /** The message that the run was writing. */
  messageId?: string
  calls: OpenCall[]
}

/**
 * The loop. A step is one model call and the tool calls that it makes; at its end, pending input enters and the next step begins.
 *
 * The order makes it durable: the model's output is committed before a tool starts; the results of the tools are committed together
 * with the input that enters; and the run ends only in a commit that drained nothing.
 */
export async function runLoop(run: Run, continuation?: Continuation): Promise<RunResult> {
  try {
    let calls = continuation?.calls ?? []
    const converting = run.history.convertLong()
    if (converting) await converting
    if (continuation) await resume(run, continuation)
    else await begin(run)
    for (;;) {
      const ended = await boundary(run, calls.length > 0 ? await afterCalls(run, await runCalls(run, calls)) : await takeStep(run))
      if (ended) return ended
      calls = []
    }
  } catch (error) {
    return fail(run, error)
  }
}

async function begin(run: Run): Promise<void> {
  const { input } = run.history
  await run.publish(run.chunk('start', { id: run.agent.id, messageId: run.messageId }))
  await run.echo(input)
  await processUnread(run, input)
}

async function resume(run: Run, { messageId, calls: [call] }: Continuation): Promise<void> {
  run.history.message.resume(run.rows, call ? { toolCallId: call.part.toolInvocation.toolCallId } : { messageId })
  // The process may have died before input processors saw what had entered, and a crash must not bypass a guardrail.
  if (!call) await processUnread(run, unansweredInput(run.history, run.id))
}

/** Runs the input processors on what no model has read: unanswered input from before the run, then its own input. */
async function processUnread(run: Run, input: readonly MessageRow[]): Promise<void> {
  if (run.processors.readsInput) {
    await checkOtherAgents(run)
    const { rows, all } = unansweredBefore(run.history, run.id, input)
    if (!all) {
      const next = [...rows, ...input]
      for await (const outside of unansweredOutside(run.host, run.rows[0])) await processEarlier(run, outside, { outside: true, next })
    }
    if (rows.length > 0) await processEarlier(run, rows, { next: input })
    // Memory before the processors of the input, which see it; after those of earlier input, which recall may quote.
    await run.commitContext()
  }
  if (input.length > 0) await run.processInput(input)
}

async function processEarlier(run: Run, rows: readonly MessageRow[], kind: InputKind): Promise<void> {
  try {
    await run.processInput(rows, kind)
  } catch (error) {
    if (isHeedError(error) && error.code === 'processor_failed') throw failedOnEarlierInput(error)
    if (!(error instanceof TripwireAbort)) throw error
    // Rejected input is deleted: otherwise every later run of the thread would be rejected.
    throw new StepFailure(error, { rows: [], change: { revised: [], removed: rows.map(({ messageId }) => messageId) } })
  }
}

/** Adds what to do to the message: the processor will see the same rows in the next run. */
function failedOnEarlierInput({ code, message, details, cause }: HeedError): HeedError {
  const hint = 'It ran on earlier messages that have no answer: correct the processor, '
    + 'or delete the message (details.messageIds) with memory.deleteMessages().'
  return new HeedError(code, `${message}. ${hint}`, { cause, details })
}

/** One step: the model call, and the tool calls that it made. */
async function takeStep(run: Run): Promise<StepEnd> {
  const streamed = await streamStep(run)
  const { recorder, cut } = streamed
  const row = assistantRow(run, recorder.parts)
  if (cut) return afterCut(run, streamed, row)
  const result = run.processors.outputStep(run, recorder, row)
  const checked = isPromise(result) ? await result : result
  if ('retry' in checked) {
    recorder.revise([])
    recorder.finishReason = 'tripwire'
    return { recorder, rows: [rejectionRow(run, checked.retry)], drain: true, withdrawn: true }
  }
  if (recorder.calls.length === 0 || !checked.row) return afterAnswer(run, recorder, checked.row)
  if (run.toolPolicy) await askPolicies(run, recorder.calls)
  // Committed before the first tool starts: after a crash the model must not be called again and choose other calls.
  await run.commit({ step: run.step, rows: [checked.row], started: beginCalls(run, recorder.calls) })
  run.history.append([checked.row])
  return afterCalls(run, await runCalls(run, recorder.calls), recorder)
}

async function afterCalls(run: Run, { results, suspended, forClient }: CallsOutcome, recorder?: StepRecorder): Promise<StepEnd> {
  const step: StepEnd = { recorder, rows: [...toolRow(run, results), ...run.takeOwnSignals()], toolResults: results }
  if (run.signal.aborted) return { ...step, end: { status: 'aborted', reason: 'aborted' } }
  if (suspended.length > 0) return { ...step, end: { status: 'suspended', reason: 'suspended', suspended } }
  if (forClient || run.atLimit || (await meetsStopCondition(run, step))) {
    return { ...step, end: { status: 'finished', reason: 'tool-calls' } }
  }
  return { ...step, drain: true }
}

async function meetsStopCondition(run: Run, step: StepEnd): Promise<boolean> {
  const { stopWhen } = run.options
  if (!stopWhen) return false
  const steps = [...run.steps, stepResult(run.step, step)]
  for (const condition of Array.isArray(stopWhen) ? stopWhen : [stopWhen]) {
    if (await run.unlessAborted(condition({ steps }))) return true
  }
  return false
}

/** The model made no calls. The run ends, unless the drain takes input. */
async function afterAnswer(run: Run, recorder: StepRecorder, row: MessageRow | undefined): Promise<StepEnd> {
  const rows = [...(row ? [row] : []), ...run.takeOwnSignals()]
  const step: StepEnd = { recorder, rows, drain: !run.atLimit, end: { status: 'finished', reason: recorder.finishReason } }
  return run.structured ? afterStructuredAnswer(run, step, recorder, run.structured) : step
}

/** The object is parsed from the text that output processors left. */
async function afterStructuredAnswer(run: Run, step: StepEnd, recorder: StepRecorder, { read }: StructuredOutput): Promise<StepEnd> {
  const answer = () => run.unfinishedText + recorder.text
  const text = answer()
  const parsed = await unlessAborted(run, read(text))
  if (!parsed) return afterCut(run, { recorder, cut: { kind: 'aborted' } }, step.rows.find(({ role }) => role === 'assistant'))
  if (!parsed.ok) {
    if (run.repairRequested || run.atLimit) {
      const checked = await checkSegment(run, step)
      const left = answer()
      // The problem quotes the text, of which a processor may have removed a part.
      const problem = left === text ? parsed.problem : 'it was changed by a processor, and is not what was asked for'
      throw new StepFailure(structuredOutputError(problem, left, run.repairRequested), checked)
    }
    run.repairRequested = true
    return { recorder, rows: [...step.rows, run.contextRow(escapeTags(run, repairRequest(parsed.problem)))], drain: true }
  }
  run.repairRequested = false
  const checked = await checkSegment(run, step)
  const left = answer()
  const kept = left === text ? parsed : await unlessAborted(run, read(left))
  if (kept && !kept.ok) throw new StepFailure(structuredOutputError(kept.problem, left, false), checked)
  return { ...checked, end: { status: 'finished', reason: 'stop', ...checked.end, object: kept?.value } }
}

/** The result of foreign code; undefined when the run was aborted before. */
async function unlessAborted<T>(run: Run, work: Promise<T>): Promise<T | undefined> {
  try {
    return await run.unlessAborted(work)
  } catch (error) {
    if (run.signal.aborted && error === run.signal.reason) return undefined
    throw error
  }
}

/** The stream was aborted, interrupted, or broke. */
function afterCut(run: Run, { recorder, cut }: StreamedStep, row: MessageRow | undefined): StepEnd {
  const rows = row ? [markedIncomplete(row, cut?.kind)] : []
  const step = { recorder, rows }
  if (!cut || cut.kind === 'aborted') {
    recorder.finishReason = 'aborted'
    return { ...step, end: { status: 'aborted', reason: 'aborted' } }
  }
  recorder.finishReason = cut.kind === 'broken' ? 'error' : 'interrupted'
  if (cut.kind === 'interrupted') {
    // At the limit, the input that interrupted waits for the next run, unless this step produced nothing for its own input.
    return run.atLimit && row ? { ...step, end: { status: 'finished', reason: 'interrupted' } } : { ...step, drain: true }
  }
  if (run.atLimit || !cut.mayContinue) throw new StepFailure(cut.error, { rows })
  // Some providers reject a prompt that ends with an incomplete answer, others repeat the answer.
  if (row) rows.push(run.contextRow('The connection broke and the last message is incomplete. Go on from where it ends; do not repeat it.'))
  return { ...step, broken: true, drain: true }
}

/** An error that ends the run, with what is committed of the step that threw it. */
class StepFailure extends Error {
  readonly step: StepEnd

  constructor(cause: Error, { rows, change, checked }: StepEnd) {
    super(cause.message, { cause })
    this.step = { rows, ...(change ? { change } : {}), ...(checked ? { checked } : {}) }
  }
}

/** Ends a run that was rejected, aborted between two steps, or failed. */
async function fail(run: Run, foreign: unknown): Promise<RunResult> {
  const thrown = readable(foreign)
  const error = thrown instanceof StepFailure ? thrown.cause : thrown
  // Another process has the thread, or will: this run must not commit or publish any more.
  if (run.isLost(error)) throw error
  const result = await boundary(run, await failedStep(run, error, thrown instanceof StepFailure ? thrown.step : { rows: [] }))
  if (!result) throw new HeedError('store_failed', 'The host did not end a run that failed.', { cause: error })
  return result
}

/** The last step of a run that ends with an error: the end, and what is left of its output. */
async function failedStep(run: Run, error: unknown, kept: StepEnd): Promise<StepEnd> {
  if (error instanceof TripwireAbort) {
    const end: Ending = { status: 'rejected', reason: 'tripwire', tripwire: error.tripwire }
    return { rows: [], ...(kept.change ? { change: kept.change } : {}), end }
  }
  const aborted = run.signal.aborted
  const end: Ending = aborted ? { status: 'aborted', reason: 'aborted' } : { status: 'failed', reason: 'error', error: asError(error) }
  if (run.uncheckedStep) {
    // The run ends here: input that its step would have drained stays pending.
    const left = { ...withoutText(run, { ...run.uncheckedStep, drain: false, end }), withdrawn: true }
    return aborted ? left : { ...left, rows: withError(run, left.rows, error) }
  }
  try {
    const step = await checkSegment(run, { ...kept, end })
    return aborted ? step : { ...step, rows: withError(run, step.rows, error), checked: true }
  } catch (rejection) {
    if (run.isLost(rejection)) throw rejection
    return failedStep(run, rejection, kept)
  }
}

function assistantRow(run: Run, parts: MessagePart[]): MessageRow | undefined {
  return parts.length === 0 ? undefined : run.row('assistant', `${run.messageId}/${run.step}`, run.messageId, parts)
}

/** A step has several tool rows when it was suspended: the results from before, and those from after the decision. */
function toolRow(run: Run, results: ToolInvocationPart[]): MessageRow[] {
  const [first] = results
  if (!first) return []
  return [run.row('tool', `${run.messageId}/${run.step}/${first.toolInvocation.toolCallId}`, run.messageId, results)]
}

function markedIncomplete(row: MessageRow, kind: string | undefined): MessageRow {
  return { ...row, content: { ...row.content, metadata: { ...row.content.metadata, incomplete: kind } } }
}

/** Adds the error for transcripts. Prompts leave it out. */
function withError(run: Run, rows: MessageRow[], error: unknown): MessageRow[] {
  const part: ErrorPart = { type: 'error', error: chunkError(error) }
  const last = rows.at(-1)
  if (last?.role === 'assistant') {
    return [...rows.slice(0, -1), { ...last, content: { ...last.content, parts: [...last.content.parts, part] } }]
  }
  const messageId = run.history.message.next()
  return [...rows, run.row('assistant', `${messageId}/${run.step}/error`, messageId, [part])]
}

/** Asks the model for another answer. The rejected one is not in the prompt; each further rejection is counted as such. */
function rejectionRow(run: Run, reason: string): MessageRow {
  const last = run.rows.findLast(({ role }) => role !== 'signal')
  const isFurther = last?.runId === run.id && last.content.metadata?.askedAgain === true
  const what = isFurther ? 'Another answer was not accepted either' : 'An answer was not accepted, and is left out here'
  return run.contextRow(escapeTags(run, `${what}: ${reason}. Answer again.`), { askedAgain: true })
}

/** Text of Heed may quote foreign text, which must not pass for one of the reserved tags. */
function escapeTags({ reservedTags }: Run, text: string): string {
  return needsGuard(text, [...RESERVED_TAGS, ...reservedTags]) ? escapeText(text) : text
}

/**
 * The step boundary: commits the step and drains input; publishes that input, adds it to the prompt and gives it to input processors; then
 * publishes the end of the step. Returns the result when the run has ended; nothing when another step follows, also because input entered
 * in this commit.
 */
async function boundary(run: Run, done: StepEnd): Promise<RunResult | undefined> {
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
