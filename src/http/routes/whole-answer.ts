import { promptOf } from '../../prompt/from-rows.ts'
import type { RunResult } from '../../run/output/run-result.ts'

/**
 * The result of a run as existing clients read it: each call and each result also as the chunk it was, and what was said as messages
 * that a tool's answer can follow.
 */
export function wholeAnswer(result: RunResult<object, object>): Record<string, unknown> {
  const { runId, toolCalls, toolResults, messages } = result
  return {
    ...result,
    toolCalls: toolCalls.map((call) => ({ type: 'tool-call', runId, from: 'AGENT', payload: call, ...call })),
    toolResults: toolResults.map((answer) => ({ type: 'tool-result', runId, from: 'AGENT', payload: answer, ...answer })),
    response: { messages: promptOf(messages) },
  }
}
