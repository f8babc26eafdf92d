import type { MessageRow } from '../../message/row.ts'
import type { AgentExecutionOptions } from '../../run/options.ts'
import type { Accepted, Send } from '../../store/contract/threads.ts'
import type { Runnable } from '../runtime/runnable.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'
import { storedOptions, withMemory } from './stored-options.ts'

/** A turn that is known by its id: asked again, it is the same one. */
export interface Question extends Pick<Send, 'thread' | 'askedBy' | 'given' | 'refuseSuspended'> {
  threadId: string
  resourceId: string
  /** Of the signal. */
  id: string
  /** Of the run that answers it. */
  runId: string
  rows: MessageRow[]
  options: AgentExecutionOptions
}

/**
 * Asks, unless that was done before: then the first run is the one, whether it is over, waits, or has to be taken up. No process
 * owns the question. When this one goes, whoever takes the thread up answers it.
 */
export async function enqueueTurn(runtime: ThreadRuntime, agent: Runnable, question: Question): Promise<Accepted> {
  const { threadId, resourceId, id, runId, rows, given, thread, askedBy, refuseSuspended } = question
  runtime.register(agent)
  const options = await withMemory(agent, question.options)
  const turn = await turnSend(runtime, agent, { threadId, resourceId, id, runId, rows }, options)
  runtime.waiters.keepOptions(runId, options)
  // From here on it may be stored: a process that goes waits until its sender knows.
  runtime.sends.inFlight.begin()
  try {
    const accepted = await runtime.sends.accept({ ...turn, ...(given?.length ? { given } : {}), ...(thread ? { thread } : {}), ...(askedBy ? { askedBy } : {}), ...(refuseSuspended ? { refuseSuspended } : {}) })
    const isElsewhere = accepted.duplicate ? !runtime.hostOf(threadId) : accepted.owner === undefined
    if (isElsewhere && !(await runtime.wake(threadId)) && !accepted.duplicate) runtime.peers.mail(threadId)
    return accepted
  } finally {
    runtime.sends.inFlight.end()
  }
}

/** A send that is a turn of its own behind whatever is active, and is run here where it wakes the thread. */
export async function turnSend(
  runtime: ThreadRuntime, agent: Runnable, what: Pick<Send, 'threadId' | 'resourceId' | 'id' | 'rows' | 'runId'>, options: AgentExecutionOptions,
): Promise<Send> {
  const stored = await storedOptions(agent, options)
  return {
    ...what,
    agentId: agent.id,
    mode: 'queue',
    ifActive: { behavior: 'deliver' },
    ifIdle: { behavior: 'wake' },
    claim: { owner: runtime.owner },
    ...(stored ? { options: stored } : {}),
    now: runtime.clock.now(),
  }
}
