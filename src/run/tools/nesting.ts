import type { JSONValue } from '../../base/json.ts'
import type { ChildCall, Usage } from '../chunk.ts'
import type { ToolContext } from './tool.ts'

/** The suspension of a call that runs another agent, for a suspended call of the child thread. */
export interface NestedSuspension {
  kind: 'approval' | 'suspend'
  payload?: JSONValue
  child: ChildCall
}

/** The decision about a call of a child thread. Without `approved` and `resumeData`: the child run continued by itself. */
export interface NestedDecision {
  child: ChildCall
  approved?: boolean
  reason?: string
  resumeData?: JSONValue
}

/** What a tool call that runs another agent needs besides its context. */
export interface Nesting {
  /** The step that made the call. With the ids of the run and the call it identifies the call. */
  step: number
  decision: NestedDecision | undefined
  /** True when another process continues the run: the child run must go on. */
  isHandedOver(): boolean
  /** Suspends the call until the decision about the child's call arrives. */
  suspend(suspension: NestedSuspension): never
  /** Adds the usage of the child run. */
  addUsage(usage: Usage): void
}

const nestings = new WeakMap<ToolContext, Nesting>()

export function setNesting(context: ToolContext, nesting: Nesting): void {
  nestings.set(context, nesting)
}

export function nestingOf(context: ToolContext): Nesting | undefined {
  return nestings.get(context)
}
