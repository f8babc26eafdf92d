import type { FilePart, SourcePart, ToolInvocationPart } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import { TripwireAbort } from '../../processors/tripwire.ts'
import { isSentSignal } from '../../signals/row.ts'
import type { StepEnd } from './boundary.ts'
import { callOf, resultOf } from '../step/outcome.ts'
import { withoutItems } from '../step/provider-items.ts'
import type { Run } from './run.ts'
import type { StepResult } from '../step/step-result.ts'
import { isPromise } from '../../base/is-promise.ts'

/*
 * A segment is what was said since input last entered. Output processors see it as a whole before it stays for good: before new input
 * enters after it, before its run waits for somebody, and before its run ends, however it ends.
 */

/** What processors made of rows that are in history already. */
export interface SegmentChange {
  revised: MessageRow[]
  /** Ids of rows. */
  removed: string[]
}

/** True for what came from outside: what the model answers, and what ends the segment before it. */
export function isInput(run: Run, row: MessageRow): boolean {
  if (row.runId !== run.id || row.id !== row.messageId) return false
  return row.role === 'user' || isSentSignal(row)
}

/** What the run said since input last entered and that is stored. */
function spoken(run: Run): MessageRow[] {
  const said: MessageRow[] = []
  for (let index = run.rows.length - 1; index >= 0; index--) {
    const row = run.rows[index] as MessageRow
    if (isInput(run, row)) break
    if (row.runId === run.id && isSaid(row)) said.push(row)
  }
  return said.reverse()
}

function isSaid({ role }: MessageRow): boolean {
  return role === 'assistant' || role === 'tool'
}

const seen = { checked: true }

/** A step as it may be stored. Throws what a processor throws: then nothing of the segment counts as seen. */
export async function checkSegment(run: Run, step: StepEnd): Promise<StepEnd> {
  // Whoever has the thread now, or takes it up again, asks.
  if (step.checked || !run.processors.checksAnswers || (run.signal.aborted && run.isLost(run.signal.reason))) return step
  const stored = spoken(run)
  const segment = stored.length > 0 || !step.rows.every(isSaid) ? stored.concat(step.rows.filter(isSaid)) : step.rows
  if (segment.length === 0) return Object.assign(step, seen)
  const { said } = step
  try {
    const known = run.processors.outputResult(run, segment, step.rows, {
      text: run.unfinished + (said?.text ?? ''),
      usage: run.usage,
      finishReason: step.end?.reason ?? said?.finishReason ?? 'tool-calls',
      steps: run.steps,
    })
    const changed = isPromise(known) ? await known : known
    return changed ? revisedStep(run, step, stored, changed) : Object.assign(step, seen)
  } catch (error) {
    if (!(error instanceof TripwireAbort)) run.unchecked = step
    throw error
  }
}

/** Of words that nobody could check nothing stays; what tools did is not undone by that, so that calls and results do. */
export function withoutWords(run: Run, step: StepEnd): StepEnd {
  const stored = spoken(run)
  const left = [...stored, ...step.rows.filter(isSaid)].flatMap((row) => {
    const parts = row.content.parts.filter((part) => part.type === 'tool-invocation' || part.type === 'error')
    if (parts.length === row.content.parts.length) return [row]
    return parts.length === 0 ? [] : [{ ...row, content: { ...row.content, parts } }]
  })
  return revisedStep(run, step, stored, left)
}

/** Puts what is left of a segment into its place: into the rows that are stored, into those of the step, and into what the run tells of both. */
function revisedStep(run: Run, step: StepEnd, stored: readonly MessageRow[], changed: readonly MessageRow[]): StepEnd {
  const left = changed.map((row) => (stored.includes(row) || step.rows.includes(row) ? row : unbound(row)))
  const after = new Map(left.map((row) => [row.id, row]))
  const known = new Set([...stored, ...step.rows].map(({ id }) => id))
  const kept = step.rows.flatMap((row) => (isSaid(row) ? (after.get(row.id) ?? []) : [row]))
  const added = left.filter(({ id }) => !known.has(id)).map((row) => ({ ...row, ...ownerOf(run) }))
  const revised = stored.flatMap((row) => after.get(row.id) ?? []).filter((row) => !stored.includes(row))
  const removed = stored.filter(({ id }) => !after.has(id)).map(({ id }) => id)
  const rows = [...kept, ...added]
  const changedSteps = new Set([...revised, ...stored.filter(({ id }) => removed.includes(id))].map((row) => row.step))
  for (const [index, told] of run.steps.entries()) {
    if (changedSteps.has(told.stepNumber)) run.steps[index] = retold(told, left.filter((row) => row.step === told.stepNumber))
  }
  const messages = new Set([...stored, ...step.rows].map(({ messageId }) => messageId))
  const own = [...left.filter((row) => row.step === run.step && known.has(row.id)), ...added.filter(({ messageId }) => messages.has(messageId))]
  const spokenNow = own.filter(({ role }) => role === 'assistant').flatMap(({ content }) => content.parts)
  step.said?.revise(spokenNow)
  const settled = step.settled && invocations(own.filter(({ role }) => role === 'tool'))
  return { ...step, ...(settled ? { settled } : {}), rows, change: { revised, removed }, checked: true }
}

/** A provider that remembers what was said would bring it back. */
function unbound(row: MessageRow): MessageRow {
  return row.role === 'assistant' ? { ...row, content: { ...row.content, parts: withoutItems(row.content.parts, true) } } : row
}

function retold(step: StepResult, rows: readonly MessageRow[]): StepResult {
  const parts = rows.filter(({ role }) => role === 'assistant').flatMap(({ content }) => content.parts)
  const calls = invocations(rows.filter(({ role }) => role === 'assistant'))
  const results = [...calls.filter(({ toolInvocation }) => toolInvocation.state === 'result'), ...invocations(rows.filter(({ role }) => role === 'tool'))]
  return {
    ...step,
    text: parts.map((part) => (part.type === 'text' ? part.text : '')).join(''),
    reasoningText: parts.map((part) => (part.type === 'reasoning' ? part.reasoning : '')).join(''),
    toolCalls: calls.map(callOf),
    toolResults: results.map(resultOf),
    files: parts.filter((part): part is FilePart => part.type === 'file' && !part.reasoning),
    sources: parts.filter((part): part is SourcePart => part.type === 'source').map((part) => part.source),
  }
}

function invocations(rows: readonly MessageRow[]): ToolInvocationPart[] {
  return rows.flatMap(({ content }) => content.parts.filter((part) => part.type === 'tool-invocation'))
}

function ownerOf({ id, step, threadId, resourceId }: Run): Partial<MessageRow> {
  return { runId: id, step, ...(threadId === undefined ? {} : { threadId }), ...(resourceId === undefined ? {} : { resourceId }) }
}
