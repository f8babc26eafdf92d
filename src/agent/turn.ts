import { HeedError } from '../base/errors.ts'
import { orderedJSON } from '../base/json.ts'
import type { AgentInput } from '../message/read/input.ts'
import type { MessageRow } from '../message/row.ts'
import type { AgentExecutionOptions } from '../run/options.ts'
import { enqueueTurn } from '../thread/send/enqueue-turn.ts'
import type { Askable } from './askable.ts'
import { checkInput, namedRows } from './input.ts'

export interface Turn {
  threadId: string
  resourceId: string
  /** On a thread, the same id is one turn. */
  id?: string | undefined
  messages: AgentInput
  options: AgentExecutionOptions
}

/**
 * A turn of its own behind whatever is active, for a caller that doesn't wait for its answer. Resolves when it is stored, with the run that answers
 * it: of a repeated one, the first's.
 */
export async function askTurn(agent: Askable, { threadId, resourceId, id, messages, options }: Turn): Promise<{ runId: string }> {
  const { rows, given } = namedRows(agent, messages)
  checkInput(rows, true)
  const here = await agent.resolveStorage(options.requestContext)
  const runtime = here.threads()
  const runId = runtime.newId()
  const thread = await agent.describeThread({}, options)
  const memory = { thread: threadId, resource: resourceId }
  const accepted = await enqueueTurn(runtime, here, { threadId, resourceId, id: id ?? runtime.newId(), runId, thread, rows, given, refuseSuspended: true, options: { ...options, memory } })
  if (accepted.duplicate) {
    runtime.waiters.takeOptions(runId)
    if (accepted.rows.length > 0 && essence(accepted.rows) !== essence(rows)) {
      throw new HeedError('idempotency_key_reused', 'This id was used for something else on this thread. Take a new one for each thing that is sent.', { details: { field: 'id' } })
    }
  }
  await runtime.sends.flush()
  return { runId: accepted.runId ?? runId }
}

/** What was said, without what the thread gave it. */
function essence(rows: readonly MessageRow[]): string {
  return orderedJSON(rows.map(({ role, content: { parts } }) => [role, parts]))
}
