/**
 * The states of a run of a workflow and of its steps, and their transitions: pure functions. A step never leaves an end; a run leaves one
 * only when it is begun again from a step, with a new generation of rows.
 */

/** The state of a run. */
export type WorkflowRunStatus =
  | 'pending' | 'running' | 'waiting' | 'suspended' | 'paused' | 'success' | 'failed' | 'tripwire' | 'canceled' | 'parked'

export type WorkflowRunEvent =
  /** A process runs its steps. */
  | 'run'
  /** No step can begin before a time or an event. */
  | 'wait'
  /** No step can begin before a caller resumes one. */
  | 'suspend'
  /** The step that it was to run has ended: a caller lets it go on. */
  | 'pause'
  | 'succeed' | 'fail' | 'refuse' | 'cancel'
  /** The code no longer has the recorded steps, or its processes ended ten times without progress. */
  | 'park'
  /** A caller begins it again from a step. */
  | 'restart'

const open: Partial<Record<WorkflowRunEvent, WorkflowRunStatus>> = { run: 'running', cancel: 'canceled', park: 'parked' }
const over: Partial<Record<WorkflowRunEvent, WorkflowRunStatus>> = { restart: 'running' }

export const runTransitions: Record<WorkflowRunStatus, Partial<Record<WorkflowRunEvent, WorkflowRunStatus>>> = {
  pending: open,
  running: {
    ...open, wait: 'waiting', suspend: 'suspended', pause: 'paused', succeed: 'success', fail: 'failed',
    refuse: 'tripwire',
  },
  waiting: { ...open, ...over },
  suspended: { ...open, ...over },
  paused: { ...open, ...over },
  success: over,
  failed: over,
  tripwire: over,
  canceled: over,
  parked: { ...over, run: 'running', cancel: 'canceled' },
}

/** The next status of a run, or `undefined` if the event is not possible. */
export function nextRunStatus(status: WorkflowRunStatus, event: WorkflowRunEvent): WorkflowRunStatus | undefined {
  return runTransitions[status][event]
}

/** Whether a run with this status has ended: only a caller begins it again. */
export function isOver(status: WorkflowRunStatus): boolean {
  return status === 'success' || status === 'failed' || status === 'tripwire' || status === 'canceled'
}

/** The state of a step of a run. */
export type StepStatus = 'running' | 'waiting' | 'suspended' | 'success' | 'failed' | 'canceled'

export type StepEvent = 'begin' | 'wait' | 'suspend' | 'succeed' | 'fail' | 'cancel'

const ends: Partial<Record<StepEvent, StepStatus>> = { fail: 'failed', cancel: 'canceled' }

export const stepTransitions: Record<StepStatus, Partial<Record<StepEvent, StepStatus>>> = {
  // A step that was interrupted begins again; one that failed waits for its next attempt.
  running: { ...ends, begin: 'running', wait: 'waiting', suspend: 'suspended', succeed: 'success' },
  waiting: { ...ends, begin: 'running', succeed: 'success' },
  suspended: { ...ends, begin: 'running' },
  success: {},
  failed: {},
  canceled: {},
}

/** The next status of a step, or `undefined` if the event is not possible. */
export function nextStepStatus(status: StepStatus, event: StepEvent): StepStatus | undefined {
  return stepTransitions[status][event]
}
