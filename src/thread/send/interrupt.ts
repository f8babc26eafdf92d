import type { Send } from '../../store/contract/threads.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'

/** Cuts the stream of the run that a signal is to interrupt, wherever it is at work. */
export function interrupt(runtime: ThreadRuntime, { threadId, id }: Send, owner: string | undefined): void {
  if (owner === undefined || owner === runtime.owner) runtime.hostOf(threadId)?.interrupt(id)
  else runtime.neighbours.interrupt(owner, threadId, id)
}
