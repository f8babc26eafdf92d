/**
 * What a thread and a signal can be, and what moves them. Pure: every store calls these inside its transaction, so that all of
 * them decide alike, and the property tests need no store at all.
 */

export type ThreadStatus = 'idle' | 'running' | 'suspended'

export type ThreadEvent =
  /** A pending signal starts a run. */
  | 'wake'
  /** The run waits for an approval or for a tool's resume data. */
  | 'suspend'
  /** Everything it waited for was decided. */
  | 'resume'
  /** The run is over and more waits: the lease stays, the next run begins. */
  | 'continue'
  /** The run is over and nothing waits. */
  | 'release'
  /** Another process takes the thread of one that is gone. */
  | 'take-over'

const threadTable: Record<ThreadStatus, Partial<Record<ThreadEvent, ThreadStatus>>> = {
  idle: { wake: 'running' },
  running: { suspend: 'suspended', continue: 'running', release: 'idle', 'take-over': 'running' },
  suspended: { resume: 'running', release: 'idle' },
}

/** The next status, or `undefined` where the event can't happen. */
export function nextThreadStatus(status: ThreadStatus, event: ThreadEvent): ThreadStatus | undefined {
  return threadTable[status][event]
}

export type SignalState = 'pending' | 'taken' | 'consumed' | 'rejected' | 'cancelled'

export type SignalEvent =
  /** A run drained it: it has a place in history. */
  | 'take'
  /** The step that answered it is stored; or it went straight into history. */
  | 'consume'
  /** A guardrail refused the run that took it. */
  | 'reject'
  /** It was taken out before any run took it. */
  | 'cancel'

const signalTable: Record<SignalState, Partial<Record<SignalEvent, SignalState>>> = {
  pending: { take: 'taken', consume: 'consumed', cancel: 'cancelled' },
  taken: { consume: 'consumed', reject: 'rejected' },
  consumed: {},
  rejected: {},
  cancelled: {},
}

export function nextSignalState(state: SignalState, event: SignalEvent): SignalState | undefined {
  return signalTable[state][event]
}

export const threadStatuses = Object.keys(threadTable) as ThreadStatus[]
export const signalStates = Object.keys(signalTable) as SignalState[]
export const threadTransitions = threadTable
export const signalTransitions = signalTable

export type ActiveBehavior = 'deliver' | 'interrupt' | 'persist' | 'discard'
export type IdleBehavior = 'wake' | 'persist' | 'discard'

/** How a send is meant: into the running loop, or as a turn of its own. */
export type SendMode = 'now' | 'queue'

export interface RouteRequest {
  mode: SendMode
  agentId: string
  ifActive: ActiveBehavior
  ifIdle: IdleBehavior
}

export interface RouteState {
  status: ThreadStatus
  /** The agent of the run that is active or suspended. */
  agentId?: string
}

/**
 * Where an accepted signal goes.
 * - `wake`: it starts a run. `deliver`: it enters the run at the next boundary. `interrupt`: the same, and the model stream is cut.
 * - `queue`: a run of its own, later. `persist`: straight into history. `discard`: nowhere.
 */
export type Route = 'wake' | 'deliver' | 'interrupt' | 'queue' | 'persist' | 'discard'

/** Suspended counts as active. Nothing ever enters the loop of another agent: there, `deliver` becomes `queue`. */
export function route(state: RouteState, request: RouteRequest): Route {
  if (state.status === 'idle') return request.ifIdle
  if (request.ifActive === 'persist' || request.ifActive === 'discard') return request.ifActive
  if (request.mode === 'queue' || state.agentId !== request.agentId) return 'queue'
  return request.ifActive
}

export interface Waiting {
  id: string
  agentId: string
  /** `enter`: may join others in one run. `turn`: a run of its own. */
  kind: 'enter' | 'turn'
}

/**
 * Which of the waiting rows, given in their order, start the next run. Rows that were meant to enter a run are answered first and
 * together, as far as they are for one agent; a queued row runs alone.
 */
export function nextRun<Row extends Waiting>(waiting: readonly Row[]): Row[] {
  const first = waiting.find((row) => row.kind === 'enter') ?? waiting[0]
  if (!first) return []
  if (first.kind === 'turn') return [first]
  return waiting.filter((row) => row.kind === 'enter' && row.agentId === first.agentId)
}

/** Which of the waiting rows enter the active run of `agentId` at a step boundary. */
export function entering<Row extends Waiting>(waiting: readonly Row[], agentId: string): Row[] {
  return waiting.filter((row) => row.kind === 'enter' && row.agentId === agentId)
}
