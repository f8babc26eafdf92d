/**
 * The states of threads and signals, their transitions, and the routing of signals. Pure functions: every store calls them inside of its
 * transactions, so that all stores decide alike, and property tests need no store.
 */

export type ThreadStatus = 'idle' | 'running' | 'suspended'

export type ThreadEvent =
  /** A pending signal starts a run. */
  | 'wake'
  /** The run needs an approval, or resume data for a tool. */
  | 'suspend'
  /** All suspended calls of the run were decided. */
  | 'resume'
  /** The run ended and signals are pending: the owner keeps the lease, and the next run begins. */
  | 'continue'
  /** The run ended and no signal is pending. */
  | 'release'
  /** Another process claims the thread from one that is gone. */
  | 'take-over'

const threadTable: Record<ThreadStatus, Partial<Record<ThreadEvent, ThreadStatus>>> = {
  idle: { wake: 'running' },
  running: { suspend: 'suspended', continue: 'running', release: 'idle', 'take-over': 'running' },
  suspended: { resume: 'running', release: 'idle' },
}

/** The next status, or `undefined` if the event is not possible. */
export function nextThreadStatus(status: ThreadStatus, event: ThreadEvent): ThreadStatus | undefined {
  return threadTable[status][event]
}

/** The state of a signal in the mailbox. */
export type SignalState = 'pending' | 'taken' | 'consumed' | 'rejected' | 'cancelled'

export type SignalEvent =
  /** A run drained it: its rows are in history. */
  | 'take'
  /** The run that took it ended or was sealed; or it was persisted without a run. */
  | 'consume'
  /** A guardrail rejected the run that took it. */
  | 'reject'
  /** It was cancelled before a run took it. */
  | 'cancel'

const signalTable: Record<SignalState, Partial<Record<SignalEvent, SignalState>>> = {
  pending: { take: 'taken', consume: 'consumed', cancel: 'cancelled' },
  taken: { consume: 'consumed', reject: 'rejected' },
  consumed: {},
  rejected: {},
  cancelled: {},
}

/** The next state, or `undefined` if the event is not possible. */
export function nextSignalState(state: SignalState, event: SignalEvent): SignalState | undefined {
  return signalTable[state][event]
}

export const threadStatuses = Object.keys(threadTable) as ThreadStatus[]
export const signalStates = Object.keys(signalTable) as SignalState[]
export const threadTransitions = threadTable
export const signalTransitions = signalTable

/** What a signal does on an active thread. */
export type ActiveBehavior = 'deliver' | 'interrupt' | 'persist' | 'discard'
/** What a signal does on an idle thread. */
export type IdleBehavior = 'wake' | 'persist' | 'discard'

/** All values, in the order in which errors and schemas list them. The compiler demands that none is missing. */
export const activeBehaviors = Object.keys(
  { deliver: true, interrupt: true, persist: true, discard: true } satisfies Record<ActiveBehavior, true>,
) as ActiveBehavior[]
export const idleBehaviors = Object.keys(
  { wake: true, persist: true, discard: true } satisfies Record<IdleBehavior, true>,
) as IdleBehavior[]

/** `now`: into the active run. `queue`: a run of its own. */
export type SendMode = 'now' | 'queue'

interface RouteRequest {
  mode: SendMode
  agentId: string
  ifActive: ActiveBehavior
  ifIdle: IdleBehavior
}

interface RouteState {
  status: ThreadStatus
  /** The agent of the active or suspended run. */
  agentId?: string
}

/**
 * The route of an accepted signal.
 * - `wake`: it starts a run. `deliver`: it enters the active run at the next boundary. `interrupt`: the same, and cuts the model's stream.
 * - `queue`: it starts a run of its own, later. `persist`: it is stored in history without a run. `discard`: it is not stored.
 */
export type Route = 'wake' | 'deliver' | 'interrupt' | 'queue' | 'persist' | 'discard'

/** A suspended thread counts as active. A signal never enters the run of another agent: there, `deliver` and `interrupt` become `queue`. */
export function chooseRoute(state: RouteState, request: RouteRequest): Route {
  if (state.status === 'idle') return request.ifIdle
  if (request.ifActive === 'persist' || request.ifActive === 'discard') return request.ifActive
  if (request.mode === 'queue' || state.agentId !== request.agentId) return 'queue'
  return request.ifActive
}

/** A pending signal. */
export interface Waiting {
  id: string
  agentId: string
  /** `enter`: may share a run with others. `turn`: gets a run of its own. */
  kind: 'enter' | 'turn'
}

/**
 * The pending signals, given in order, that start the next run. Signals that may share a run come first, all of one agent together; a
 * queued signal starts its run alone.
 */
export function startingSignals<Signal extends Waiting>(pending: readonly Signal[]): Signal[] {
  const first = pending.find((signal) => signal.kind === 'enter') ?? pending[0]
  if (!first) return []
  if (first.kind === 'turn') return [first]
  return pending.filter((signal) => signal.kind === 'enter' && signal.agentId === first.agentId)
}

/** The pending signals that enter the active run of `agentId` at a step boundary. */
export function enteringSignals<Signal extends Waiting>(pending: readonly Signal[], agentId: string): Signal[] {
  return pending.filter((signal) => signal.kind === 'enter' && signal.agentId === agentId)
}
