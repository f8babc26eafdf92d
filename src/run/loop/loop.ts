import { HeedError, isHeedError } from '../../base/errors.ts'
import type { ErrorPart, MessagePart, ToolInvocationPart } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import { TripwireAbort } from '../../processors/tripwire.ts'
import { guarded, notAccepted } from './retry-prompt.ts'
import { boundary, echo, type Ending, type StepEnd } from './boundary.ts'
import { listen, type Said } from '../step/listen.ts'
import { asError, chunkError } from '../model/provider-error.ts'
import type { Run } from './run.ts'
import type { RunResult } from '../output/run-result.ts'
import { runCalls, type CallsOutcome, type OpenCall } from '../tools/run-calls.ts'
import { checkSegment, withoutWords } from './segment.ts'
import type { StepRecorder } from '../step/step-recorder.ts'
import { repairRequest, structuredOutputError, type StructuredOutput } from '../output/structured-output.ts'
import { unansweredBefore, unansweredInput, unansweredOutside } from './unanswered.ts'
import { isPromise } from '../../base/is-promise.ts'

/** How a run that was suspended, or whose process died, goes on: its calls without a result and what was decided about them. */
export interface Continuation {
  /** The message that the run was writing. */
  messageId?: string
  calls: OpenCall[]
}

/**
 * The loop. A step is one model call and the tools it asks for; at its end, input that waited enters and the next step begins.
 *
 * Order is what makes it durable: what the model said is stored before a tool starts; what the tools returned is stored together
 * with the input that enters; and the run ends only in a commit that found nothing more to take.
 */
export async function runLoop(run: Run, continuation?: Continuation): Promise<RunResult> {
  try {
    let calls = continuation?.calls ?? []
    if (continuation) await resume(run, continuation)
    else await begin(run)
    for (;;) {
      const ended = await boundary(run, calls.length > 0 ? await finishCalls(run, calls) : await takeStep(run))
      if (ended) return ended
      calls = []
    }
  } catch (error) {
    return giveUp(run, error)
  }
}

async function begin(run: Run): Promise<void> {
  const { input } = run
  await run.say(run.chunk('start', { id: run.agent.id, messageId: run.messageId }))
  await echo(run, input)
  await admit(run, input)
}

/** Lets processors see what the model has not read yet: what was there before the run, and its own input. */
async function admit(run: Run, input: readonly MessageRow[]): Promise<void> {
  if (run.processors.readsInput) {
    const { rows, all } = unansweredBefore(run, input)
    if (!all) for await (const outside of unansweredOutside(run)) await admitBefore(run, outside, true)
    if (rows.length > 0) await admitBefore(run, rows, false)
  }
  if (input.length > 0) await run.admit(input)
}

async function admitBefore(run: Run, before: readonly MessageRow[], outside: boolean): Promise<void> {
  try {
    await run.admit(before, outside)
  } catch (error) {
    if (isHeedError(error) && error.code === 'processor_failed') throw failedBefore(error)
    // What is refused goes: otherwise no run of the thread could ever begin again.
    throw error instanceof TripwireAbort ? new StepFailure(error, { rows: [], change: { revised: [], removed: before.map(({ messageId }) => messageId) } }) : error
  }
}

/** Says the way out: what a processor failed about is there for the next run too. */
function failedBefore({ code, message, details, cause }: HeedError): HeedError {
  const how = 'It was asked about messages that were sent before and have no answer: correct the processor, or delete the message (details.messageIds) with memory.deleteMessages().'
  return new HeedError(code, `${message}. ${how}`, { cause, details })
}

async function resume(run: Run, { messageId, calls: [call] }: Continuation): Promise<void> {
  run.message.resume(run.rows, call ? { toolCallId: call.part.toolInvocation.toolCallId } : { messageId })
  // Its process may have died before processors saw what had entered, and no guardrail may be got round by a crash.
  if (!call) await admit(run, unansweredInput(run))
}

/** Asks the model and does what it says. */
async function takeStep(run: Run): Promise<StepEnd> {
  const said = await listen(run)
  const { recorder, cut } = said
  const row = assistantRow(run, recorder.parts)
  if (cut) return cutShort(run, said, row)
  const known = run.processors.outputStep(run, recorder, row)
  const checked = isPromise(known) ? await known : known
  if ('retry' in checked) {
    recorder.revise([])
    recorder.finishReason = 'tripwire'
    return { said: recorder, rows: [notAccepted(run, checked.retry)], drain: true, withdrawn: true }
  }
  return act(run, said, checked.row)
}

/** Runs the tools that the model asked for, or takes what it said as its answer. */
async function act(run: Run, said: Said, row: MessageRow | undefined): Promise<StepEnd> {
  const { recorder } = said
  if (recorder.calls.length === 0 || !row) return answer(run, said, row)
  // Stored before the first tool starts: after a crash the model must not be asked again and choose something else.
  await run.commit({ step: run.step, rows: [row], started: recorder.calls.map((call) => call.part.toolInvocation.toolCallId) })
  run.append([row])
  return afterCalls(run, await runCalls(run, recorder.calls), said)
}

async function finishCalls(run: Run, calls: OpenCall[]): Promise<StepEnd> {
  return afterCalls(run, await runCalls(run, calls))
}

async function afterCalls(run: Run, { settled, waiting, elsewhere }: CallsOutcome, said?: Said): Promise<StepEnd> {
  const rows = [...toolRow(run, settled), ...run.takeSent()]
  const step = { said: said?.recorder, rows, settled }
  if (run.signal.aborted) return { ...step, end: { status: 'aborted', reason: 'aborted' } }
  if (waiting.length > 0) return { ...step, end: { status: 'suspended', reason: 'suspended', waiting } }
  if (elsewhere || run.atLimit || (await stops(run, step))) return { ...step, end: { status: 'finished', reason: 'tool-calls' } }
  return { ...step, drain: true }
}

/** The model has nothing more to do. Unless something waits, that is the end of the run. */
async function answer(run: Run, said: Said, row: MessageRow | undefined): Promise<StepEnd> {
  const { recorder } = said
  const rows = [...(row ? [row] : []), ...run.takeSent()]
  const step: StepEnd = { said: recorder, rows, drain: !run.atLimit, end: { status: 'finished', reason: recorder.finishReason } }
  return run.structured ? structured(run, step, run.structured) : step
}

/** An answer that has to have a shape. The object is made of what may stay of the text. */
async function structured(run: Run, step: StepEnd, { read }: StructuredOutput): Promise<StepEnd> {
  const text = () => run.unfinished + (step.said?.text ?? '')
  const given = text()
  const found = await unlessAborted(run, read(given))
  if (!found) return cutShort(run, { recorder: step.said as StepRecorder, cut: { kind: 'aborted' } }, step.rows.find(({ role }) => role === 'assistant'))
  if (!found.ok) {
    if (run.repaired || run.atLimit) {
      const checked = await checkSegment(run, step)
      const left = text()
      // What was found wrong quotes what was said.
      const problem = left === given ? found.problem : 'it was changed by a processor, and is not what was asked for'
      throw new StepFailure(structuredOutputError(problem, left, run.repaired), checked)
    }
    run.repaired = true
    const { said, rows } = step
    return { ...(said ? { said } : {}), rows: [...rows, run.contextRow(guarded(run, repairRequest(found.problem)))], drain: true }
  }
  run.repaired = false
  const checked = await checkSegment(run, step)
  const left = text()
  const kept = left === given ? found : await unlessAborted(run, read(left))
  if (kept && !kept.ok) throw new StepFailure(structuredOutputError(kept.problem, left, false), checked)
  return { ...checked, end: { status: 'finished', reason: 'stop', ...checked.end, object: kept?.value } }
}

/** What a caller's code comes to; nothing when the run was aborted before. */
async function unlessAborted<T>(run: Run, work: Promise<T>): Promise<T | undefined> {
  try {
    return await run.unlessAborted(work)
  } catch (error) {
    if (run.signal.aborted && error === run.signal.reason) return undefined
    throw error
  }
}

function cutShort(run: Run, { recorder, cut }: Said, row: MessageRow | undefined): StepEnd {
  const rows = row ? [marked(row, cut?.kind)] : []
  const step = { said: recorder, rows }
  if (!cut || cut.kind === 'aborted') {
    recorder.finishReason = 'aborted'
    return { ...step, end: { status: 'aborted', reason: 'aborted' } }
  }
  recorder.finishReason = cut.kind === 'broken' ? 'error' : 'interrupted'
  // At the limit what interrupted it is for the next run, unless what entered for this step has not had a word yet: then the step is not counted.
  if (cut.kind !== 'broken') return run.atLimit && row ? { ...step, end: { status: 'finished', reason: 'interrupted' } } : { ...step, drain: true }
  if (run.atLimit || !cut.goesOn) throw new StepFailure(cut.error, { rows })
  // A prompt that ends in half an answer is refused by some providers and repeated by others.
  if (row) rows.push(run.contextRow('The connection broke and the last message is incomplete. Go on from where it ends; do not repeat it.'))
  return { ...step, broken: true, drain: true }
}

/** A failure that leaves something to keep. */
class StepFailure extends Error {
  readonly step: StepEnd

  constructor(cause: Error, { rows, change, checked }: StepEnd) {
    super(cause.message, { cause })
    this.step = { rows, ...(change ? { change } : {}), ...(checked ? { checked } : {}) }
  }
}

/** The run can't go on: it was refused, aborted between two steps, or something failed for good. */
async function giveUp(run: Run, thrown: unknown): Promise<RunResult> {
  const error = thrown instanceof StepFailure ? thrown.cause : thrown
  // Someone else has the thread, or will: this run may neither write nor speak any more.
  if (run.isLost(error)) throw error
  const result = await boundary(run, await lastStep(run, error, thrown instanceof StepFailure ? thrown.step : { rows: [] }))
  if (!result) throw new HeedError('store_failed', 'A run that failed could not be ended.', { cause: error })
  return result
}

/** How the run is to end, with what may stay of what it said. */
async function lastStep(run: Run, error: unknown, kept: StepEnd): Promise<StepEnd> {
  if (error instanceof TripwireAbort) return { rows: [], ...(kept.change ? { change: kept.change } : {}), end: { status: 'rejected', reason: 'tripwire', tripwire: error.tripwire } }
  const aborted = run.signal.aborted
  const end: Ending = aborted ? { status: 'aborted', reason: 'aborted' } : { status: 'failed', reason: 'error', error: asError(error) }
  if (run.unchecked) {
    const left = { ...withoutWords(run, { ...run.unchecked, end }), withdrawn: true }
    return aborted ? left : { ...left, rows: withError(run, left.rows, error) }
  }
  try {
    const step = await checkSegment(run, { ...kept, end })
    return aborted ? step : { ...step, rows: withError(run, step.rows, error), checked: true }
  } catch (refused) {
    if (run.isLost(refused)) throw refused
    return lastStep(run, refused, kept)
  }
}

function assistantRow(run: Run, parts: MessagePart[]): MessageRow | undefined {
  return parts.length === 0 ? undefined : run.row('assistant', `${run.messageId}/${run.step}`, run.messageId, parts)
}

function toolRow(run: Run, settled: ToolInvocationPart[]): MessageRow[] {
  // A step may have several: results that were there when it was suspended, and those that came later.
  return settled.length === 0 ? [] : [run.row('tool', `${run.messageId}/${run.step}/${settled[0]?.toolInvocation.toolCallId}`, run.messageId, settled)]
}

function marked(row: MessageRow, kind: string | undefined): MessageRow {
  return { ...row, content: { ...row.content, metadata: { ...row.content.metadata, incomplete: kind } } }
}

/** Transcripts show why there is no answer; models don't. */
function withError(run: Run, rows: MessageRow[], error: unknown): MessageRow[] {
  const part: ErrorPart = { type: 'error', error: chunkError(error) }
  const last = rows.at(-1)
  if (last?.role === 'assistant') return [...rows.slice(0, -1), { ...last, content: { ...last.content, parts: [...last.content.parts, part] } }]
  const messageId = run.message.next()
  return [...rows, run.row('assistant', `${messageId}/${run.step}/error`, messageId, [part])]
}

async function stops(run: Run, step: StepEnd): Promise<boolean> {
  const { stopWhen } = run.options
  if (!stopWhen) return false
  const steps = [...run.steps, run.resultOf(step)]
  for (const condition of Array.isArray(stopWhen) ? stopWhen : [stopWhen]) if (await run.unlessAborted(condition({ steps }))) return true
  return false
}
