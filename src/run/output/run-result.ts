import { joinRows } from '../../message/join.ts'
import type { FilePart, Message, SourcePart } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import type { FinishReason, Tripwire, Usage } from '../../message/chunk.ts'
import { noUsage } from '../model/model-parts.ts'
import type { Ending, StepResult, ToolCall, ToolResult, WaitingCall } from '../step/step-result.ts'

/** The result of a run that ended. */
export interface RunResult<Calls = ToolCall, Results = ToolResult, Obj = unknown> {
  runId: string
  /** Of the last step, preceded by the steps before it whose stream broke: the last step continues them. */
  text: string
  /** Of the last step. */
  reasoningText: string
  /** The validated value of `structuredOutput`. */
  object: Obj
  toolCalls: Calls[]
  toolResults: Results[]
  files: FilePart[]
  sources: SourcePart['source'][]
  /** Of all steps. */
  usage: Usage
  totalUsage: Usage
  finishReason: FinishReason
  steps: StepResult[]
  warnings: unknown[]
  /** Set when a processor rejected the run. */
  tripwire: Tripwire | undefined
  /** The suspended calls, when `finishReason` is `suspended`. */
  suspended: WaitingCall[]
  error: Error | undefined
  /** The messages that the run added to the conversation. */
  messages: Message[]
}

/** The result of a run that failed before its first step. */
export function failedResult(runId: string, error: Error): RunResult {
  return {
    runId, text: '', reasoningText: '', object: undefined, toolCalls: [], toolResults: [], files: [], sources: [], usage: noUsage,
    totalUsage: noUsage, finishReason: 'error', steps: [], warnings: [], tripwire: undefined, suspended: [], error, messages: [],
  }
}

/** The part of a run that its result is made of. */
interface EndedRun {
  readonly id: string
  readonly text: string
  readonly steps: StepResult[]
  readonly usage: Usage
  readonly rows: readonly MessageRow[]
}

export function runResult(run: EndedRun, end: Ending): RunResult {
  const rejected = end.status === 'rejected'
  // A rejection removes the answer; the usage stays.
  const steps = rejected ? [] : run.steps
  const last = steps.at(-1)
  return {
    runId: run.id,
    text: rejected ? '' : run.text,
    reasoningText: last?.reasoningText ?? '',
    object: end.object,
    toolCalls: collect(steps, 'toolCalls'),
    toolResults: collect(steps, 'toolResults'),
    files: collect(steps, 'files'),
    sources: collect(steps, 'sources'),
    usage: run.usage,
    totalUsage: run.usage,
    finishReason: end.reason,
    steps,
    warnings: collect(steps, 'warnings'),
    tripwire: end.tripwire,
    suspended: end.suspended ?? [],
    error: end.error,
    messages: rejected ? [] : addedMessages(run),
  }
}

type StepList = 'toolCalls' | 'toolResults' | 'files' | 'sources' | 'warnings'

function collect<List extends StepList>(steps: readonly StepResult[], list: List): Array<StepResult[List][number]> {
  const all: Array<StepResult[List][number]> = []
  for (const step of steps) for (const item of step[list]) all.push(item)
  return all
}

/** Copies, which the caller may change. */
function addedMessages({ id, rows }: EndedRun): Message[] {
  const added: MessageRow[] = []
  for (const row of rows) if (row.runId === id && row.role !== 'signal' && row.role !== 'user') added.push(row)
  const messages = joinRows(added)
  for (const message of messages) {
    message.createdAt = new Date(message.createdAt)
    message.content = { ...message.content }
    message.content.parts = message.content.parts.map((part) => ({ ...part }))
  }
  return messages
}
