import type { MessageRow } from '../message/row.ts'
import type { AgentExecutionOptions } from '../run/options.ts'
import { withMemory } from './local-call.ts'
import type { Runnable } from './runnable.ts'
import type { ThreadRuntime } from './runtime.ts'
import { turnOf } from './turn.ts'

/** What the run of one agent asks another, under an id that follows from the call: asked again, it is the same question. */
export interface Question {
  threadId: string
  resourceId: string
  /** The thread of the run that asks. */
  parentId: string
  /** Of the signal, and of the run that answers it. */
  id: string
  rows: MessageRow[]
  options: AgentExecutionOptions
}

/**
 * Asks, unless that was done before: then the first run is the one, whether it is over, waits, or has to be taken up. No process
 * owns the question. When this one goes, whoever continues the run that asked finds the answer.
 */
export async function askOnce(runtime: ThreadRuntime, agent: Runnable, question: Question): Promise<void> {
  const { threadId, resourceId, parentId, id, rows } = question
  runtime.register(agent)
  const options = await withMemory(agent, question.options)
  const turn = await turnOf(runtime, agent, { threadId, resourceId, id, runId: id, rows }, options)
  runtime.expectations.keepOptions(id, options)
  const { duplicate } = await runtime.accept({ ...turn, thread: { parentId } })
  if (duplicate && !runtime.hostOf(threadId)) await runtime.wake(threadId)
}
