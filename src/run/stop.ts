import type { StepResult } from './step/step-result.ts'

/** Asked after each step that would be followed by another. True ends the run. */
export type StopCondition = (context: { steps: readonly StepResult[] }) => boolean | Promise<boolean>

/** After `count` steps. */
export function stepCountIs(count: number): StopCondition {
  return ({ steps }) => steps.length >= count
}

/** After a step that called this tool. */
export function hasToolCall(toolName: string): StopCondition {
  return ({ steps }) => steps.at(-1)?.toolCalls.some((call) => call.toolName === toolName) ?? false
}
