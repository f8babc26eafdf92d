import { isObject } from '../base/json.ts'
import type { Message, ToolInvocation } from '../message/message.ts'
import type { AgentScorerInput, TrajectoryStep } from './contract.ts'

/** The text of messages, or a text as it is; other values as JSON. Tool calls, reasoning and files are left out. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (isMessages(value)) return value.flatMap(textParts).join('\n')
  return value === undefined ? '' : JSON.stringify(value)
}

/** The text of the messages that a run was given. */
export function questionOf(input: unknown): string {
  return isAgentInput(input) ? textOf(input.inputMessages) : textOf(input)
}

/** The tool calls of messages that have a result or an error, in their order. */
export function trajectoryOf(messages: readonly Message[]): TrajectoryStep[] {
  return messages.flatMap(toolInvocations).map(({ toolName, args, state, result }) => ({
    stepType: 'tool_call', name: toolName, toolArgs: args, success: state === 'result',
    ...(result === undefined ? {} : { toolResult: result }),
  }))
}

/** The steps of an output: the tool calls of messages, or a trajectory as it is. Undefined for other values. */
export function stepsIn(output: unknown): TrajectoryStep[] | undefined {
  if (isMessages(output)) return trajectoryOf(output)
  const isTrajectory = Array.isArray(output) && output.every((one) => isObject(one) && 'stepType' in one)
  return isTrajectory ? (output as TrajectoryStep[]) : undefined
}

/** Whether `value` has everything that `part` has. */
export function hasPart(value: unknown, part: unknown): boolean {
  if (Array.isArray(part)) {
    return Array.isArray(value) && value.length === part.length && part.every((one, index) => hasPart(value[index], one))
  }
  if (!isObject(part)) return value === part
  return isObject(value) && Object.entries(part).every(([name, one]) => Object.hasOwn(value, name) && hasPart(value[name], one))
}

/** What an answer may rest on: the results of its tools, and what the prompt had of history. */
export function groundsOf(input: unknown, output: unknown): string[] {
  const results = isMessages(output) ? output.flatMap(toolInvocations) : []
  return [
    ...(isAgentInput(input) ? [textOf(input.rememberedMessages)] : []),
    ...results.filter(({ state }) => state === 'result').map(({ toolName, result }) => `${toolName}: ${textOf(result)}`),
  ].filter((text) => text.trim() !== '')
}

export function isAgentInput(input: unknown): input is AgentScorerInput {
  return isObject(input) && isMessages(input.inputMessages) && Array.isArray(input.systemMessages)
}

export function isMessages(value: unknown): value is Message[] {
  return Array.isArray(value) && value.every((one) => isObject(one) && isObject(one.content) && Array.isArray(one.content.parts))
}

function textParts({ content }: Message): string[] {
  const texts = content.parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  return texts.length > 0 || content.content === undefined ? texts : [content.content]
}

function toolInvocations({ content }: Message): ToolInvocation[] {
  return content.parts.flatMap((part) => (part.type === 'tool-invocation' ? [part.toolInvocation] : []))
}
