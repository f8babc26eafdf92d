import type { MessageContent, MessagePart, StepStartPart, ToolInvocation } from './message.ts'

/** The parts of a message; a single text part for one that only has a plain text. */
export function partsOf(content: MessageContent): MessagePart[] {
  if (content.parts.length > 0) return content.parts
  return content.content ? [{ type: 'text', text: content.content }] : []
}

/** The text parts of a message, joined with line breaks. */
export function textOf({ content }: { content: MessageContent }): string {
  return partsOf(content).flatMap(part => (part.type === 'text' ? [part.text] : [])).join('\n')
}

/** True for a finished call: it returned, failed or was denied. */
export function hasOutcome({ state }: ToolInvocation): boolean {
  return state === 'result' || state === 'output-error' || state === 'output-denied'
}

/** The parts of one model call. */
export interface Step {
  /** Absent before the first `step-start`. */
  start?: StepStartPart
  parts: MessagePart[]
}

/** The steps of an assistant's message, without empty ones. */
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
