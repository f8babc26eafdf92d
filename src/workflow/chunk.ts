/** An event of a run of a workflow. On its thread it is the data of a `data-workflow` chunk, whose cursor it shares. */
export interface WorkflowChunk {
  type:
    | 'workflow-start' | 'workflow-step-start' | 'workflow-step-result' | 'workflow-step-finish' | 'workflow-step-suspended'
    | 'workflow-step-waiting' | 'workflow-step-output' | 'workflow-step-progress' | 'workflow-suspended' | 'workflow-paused'
    | 'workflow-canceled' | 'workflow-finish'
    /** In place of chunks that are not retained any more: the status of the run, and its result. */
    | 'workflow-snapshot'
  runId: string
  from: 'WORKFLOW'
  payload: Record<string, unknown>
  /** The position in the stream of the run: `observe({ after })` continues behind it. Absent for a run in memory. */
  cursor?: string
}

/** In characters of JSON. Larger values are read with the run: every subscriber, and each process that a stream crosses, has all chunks. */
const mostInChunk = 65_536
/** The fields of payloads that have values of steps. */
const valueFields = ['payload', 'output', 'suspendPayload', 'iterationOutput', 'finalWorkflowResult']

/** A payload without values that are too large for a stream: `omitted` names them. */
export function chunkPayload(payload: Record<string, unknown>): Record<string, unknown> {
  const omitted = valueFields.filter((field) => isLarger(payload[field], mostInChunk))
  if (omitted.length === 0) return payload
  return { ...payload, ...Object.fromEntries(omitted.map((field) => [field, null])), omitted }
}

/** Whether a value has more than so many characters as JSON, about. Ends as soon as that is known. */
function isLarger(value: unknown, most: number): boolean {
  let left = most
  const waiting = [value]
  while (waiting.length > 0 && left >= 0) {
    const next = waiting.pop()
    if (typeof next === 'string') left -= next.length + 2
    else if (typeof next !== 'object' || next === null) left -= 4
    else if (Array.isArray(next)) {
      left -= 2 * next.length
      // No longer list fits.
      if (left >= 0) waiting.push(...(next as unknown[]))
    } else {
      for (const [key, field] of Object.entries(next)) {
        left -= key.length + 4
        waiting.push(field)
      }
    }
  }
  return left < 0
}
