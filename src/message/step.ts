import type { MessagePart, StepStartPart } from './message.ts'

/** What a model said in one call. */
export interface Step {
  /** Absent before the first `step-start`. */
  start?: StepStartPart
  parts: MessagePart[]
}

/** The steps of an assistant's message, without those that have nothing in them. */
export function stepsOf(parts: readonly MessagePart[]): Step[] {
  const steps: Step[] = []
  let step: Step = { parts: [] }
  for (const part of parts) {
    if (part.type !== 'step-start') {
      if (step.parts.push(part) === 1) steps.push(step)
    } else {
      step = { start: part, parts: [] }
    }
  }
  return steps
}
