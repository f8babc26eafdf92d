import { isPromise } from '../../base/promises.ts'
import type { MessageRow } from '../../message/row.ts'
import { TripwireAbort } from '../../processors/tripwire.ts'
import { withoutItems } from '../step/step-recorder.ts'
import { revisedResult, toolInvocations, type StepEnd } from '../step/step-result.ts'
import { isOutput } from './run-history.ts'
import type { Run } from './run.ts'

/*
 * A segment is the output of a run since input last entered. Output processors check it as a whole before it is sealed: before new
 * input enters after it, before its run is suspended, and before its run ends, however it ends.
 */

const checked = { checked: true }

/** The step as it may be committed. Throws what a processor throws: then no part of the segment counts as checked. */
export async function checkSegment(run: Run, step: StepEnd): Promise<StepEnd> {
  // When the host has rejected the run, the process that continues it runs the check.
  if (step.checked || !run.processors.checksOutput || (run.signal.aborted && run.isLost(run.signal.reason))) return step
  const stored = run.history.segment()
  const segment = stored.length > 0 || !step.rows.every(isOutput) ? stored.concat(step.rows.filter(isOutput)) : step.rows
  if (segment.length === 0) return Object.assign(step, checked)
  const { recorder } = step
  try {
    const result = run.processors.outputResult(run, segment, step.rows, {
      text: run.unfinishedText + (recorder?.text ?? ''),
      usage: run.usage,
      finishReason: step.end?.reason ?? recorder?.finishReason ?? 'tool-calls',
      steps: run.shownSteps,
    })
    const changed = isPromise(result) ? await result : result
    return changed ? reviseStep(run, step, stored, changed) : Object.assign(step, checked)
  } catch (error) {
    if (!(error instanceof TripwireAbort)) run.uncheckedStep = step
    throw error
  }
}

/** Removes the text of a segment that could not be checked. Calls and results stay: the tools have run. */
export function withoutText(run: Run, step: StepEnd): StepEnd {
  const stored = run.history.segment()
  const left = [...stored, ...step.rows.filter(isOutput)].flatMap((row) => {
    const parts = row.content.parts.filter((part) => part.type === 'tool-invocation' || part.type === 'error')
    if (parts.length === row.content.parts.length) return [row]
    return parts.length === 0 ? [] : [{ ...row, content: { ...row.content, parts } }]
  })
  return reviseStep(run, step, stored, left)
}

/** Applies what is left of a segment: to the stored rows, to the rows of the step, and to the results of both. */
function reviseStep(run: Run, step: StepEnd, stored: readonly MessageRow[], changed: readonly MessageRow[]): StepEnd {
  const left = changed.map((row) => (stored.includes(row) || step.rows.includes(row) ? row : withoutProviderItems(row)))
  const leftById = new Map(left.map((row) => [row.id, row]))
  const known = new Set([...stored, ...step.rows].map(({ id }) => id))
  const kept = step.rows.flatMap((row) => (isOutput(row) ? (leftById.get(row.id) ?? []) : [row]))
  const added = left.filter(({ id }) => !known.has(id)).map((row) => ({ ...row, ...ownerOf(run) }))
  const revised = stored.flatMap((row) => leftById.get(row.id) ?? []).filter((row) => !stored.includes(row))
  const removed = stored.filter(({ id }) => !leftById.has(id))
  const changedSteps = new Set([...revised, ...removed].map((row) => row.step))
  for (const [index, result] of run.steps.entries()) {
    if (!changedSteps.has(result.stepNumber)) continue
    run.steps[index] = Object.freeze(revisedResult(result, left.filter((row) => row.step === result.stepNumber)))
  }
  const messages = new Set([...stored, ...step.rows].map(({ messageId }) => messageId))
  const ofStep = [
    ...left.filter((row) => row.step === run.step && known.has(row.id)),
    ...added.filter(({ messageId }) => messages.has(messageId)),
  ]
  step.recorder?.revise(ofStep.filter(({ role }) => role === 'assistant').flatMap(({ content }) => content.parts))
  const toolResults = step.toolResults && toolInvocations(ofStep.filter(({ role }) => role === 'tool'))
  return {
    ...step,
    ...(toolResults ? { toolResults } : {}),
    rows: [...kept, ...added],
    change: { revised, removed: removed.map(({ id }) => id) },
    checked: true,
  }
}

/** A provider that stores its items would bring back the text that was changed. */
function withoutProviderItems(row: MessageRow): MessageRow {
  return row.role === 'assistant' ? { ...row, content: { ...row.content, parts: withoutItems(row.content.parts, true) } } : row
}

function ownerOf({ id, step, threadId, resourceId }: Run): Partial<MessageRow> {
  return { runId: id, step, ...(threadId === undefined ? {} : { threadId }), ...(resourceId === undefined ? {} : { resourceId }) }
}
