/** An event of a run of a workflow. On its thread it is the data of a `data-workflow` chunk, whose cursor it shares. */
export interface WorkflowChunk {
  type:
    | 'workflow-start' | 'workflow-step-start' | 'workflow-step-result' | 'workflow-step-finish' | 'workflow-step-suspended'
    | 'workflow-step-waiting' | 'workflow-step-output' | 'workflow-suspended' | 'workflow-canceled' | 'workflow-finish'
    /** In place of chunks that are not retained any more: the status of the run, and its result. */
    | 'workflow-snapshot'
  runId: string
  from: 'WORKFLOW'
  payload: Record<string, unknown>
  /** The position in the stream of the run: `observe({ after })` continues behind it. Absent for a run in memory. */
  cursor?: string
}
