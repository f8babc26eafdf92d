/** A request for a decision, as a decider saw it. */
export interface Shown {
  approvalId: string
  toolCallId: string
  /** The tool, its arguments and its path, as the request shows them. */
  tool: string
  args: unknown
  path: string[]
  digest: string
  kind: 'approval' | 'suspend'
  /** Of a call that suspended itself: how often it has asked. */
  asks?: number
}

/**
 * How a decision names what it is about: the request, the call, or nothing; by a method that returns the rest of the run; with a digest that
 * is not the request's; over HTTP, by a route that answers at once or at the end of the run.
 */
export type Form = 'request' | 'call' | 'nothing' | 'stream' | 'digest' | 'http' | 'http generate'

/** One decision of one decider. A repeat has the same id and says the same. */
export interface Click {
  click: string
  decider: string
  form: Form
  agent: string
  thread: string
  run: string
  shown: Shown
  /** Whether it approves; absent where it resumes with data. */
  approved?: boolean
  data?: { click: string; again?: boolean }
}

/** A decision as its decider received it. */
export interface Told {
  approvalId?: string
  approved?: boolean
  reason?: string
  by?: string
  at: number
}

/** What processes that decide note about themselves. */
export type DecisionNote =
  | ({ note: 'decides' } & Click)
  /** It was accepted; `told` is what the answer says, where the form has such an answer. */
  | { note: 'decided'; click: string; told?: Told; run?: string; call?: string }
  | { note: 'undecided'; click: string; code: string; field?: string; told?: Told }
  /** The answer of the store to a decision was lost, before or after the write. */
  | { note: 'lost'; when: 'before' | 'after' }
  /** It is about to be stored that these calls begin. */
  | { note: 'begins'; thread: string; calls: string[] }
  /** A prompt that has not one result for each call, in order. */
  | { note: 'flaw'; key: string; what: string }
  | { note: 'aborts'; thread: string; run: string }
  | { note: 'aborted'; thread: string; run: string; aborted: boolean }
  /** Another resource tried to create a thread with this id. */
  | { note: 'squats'; thread: string; refused?: string }
