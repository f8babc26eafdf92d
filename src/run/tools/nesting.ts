import type { JSONValue } from '../../base/json.ts'
import type { ChildCall, Usage } from '../chunk.ts'
import type { ToolContext } from './tool.ts'

/** What a call waits with that stands for one of another run. */
export interface NestedWait {
  kind: 'approval' | 'suspend'
  payload?: JSONValue
  child: ChildCall
}

/** What was decided about a call that stood for one of another run. Neither yes, no nor data: that run went on by itself. */
export interface NestedDecision {
  child: ChildCall
  approved?: boolean
  reason?: string
  resumeData?: JSONValue
}

/** What a tool has to know of its call that is itself the run of another agent. */
export interface Nesting {
  /** The step that made the call. With the run and the call's id it names the call for good. */
  step: number
  decision: NestedDecision | undefined
  /** True when the call is only left to whoever continues the run: what it asked for is to go on. */
  isLeft(): boolean
  /** Ends the call here until what the other run waits for is decided. */
  wait(wait: NestedWait): never
  /** Counts what the other run cost. */
  spend(usage: Usage): void
}

const nestings = new WeakMap<ToolContext, Nesting>()

export function nest(context: ToolContext, nesting: Nesting): ToolContext {
  nestings.set(context, nesting)
  return context
}

export function nestingOf(context: ToolContext): Nesting | undefined {
  return nestings.get(context)
}
