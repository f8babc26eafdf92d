import { signalToDataChunk } from '../../signals/echo.ts'
import { rowToSignal } from '../../signals/row.ts'
import type { Accepted, Send } from '../../store/contract/threads.ts'
import type { LiveThread } from '../watch/live.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'

/**
 * Publishes the echo of a signal that went into history without a run: between the chunks of the active run, or alone, with no chunk that
 * looks like a run.
 */
export function publishPersisted(runtime: ThreadRuntime, send: Send, accepted: Accepted): void {
  if (accepted.rows[0]?.role !== 'signal') return
  // A run that this process was given in the same moment is about to begin, and counts its epoch itself.
  if (accepted.owner !== undefined && !runtime.hostOf(send.threadId)) setImmediate(() => runtime.closing || publishEcho(runtime, send, accepted))
  else publishEcho(runtime, send, accepted)
}

function publishEcho(runtime: ThreadRuntime, { threadId, resourceId }: Send, { rows: [row], epoch, owner }: Accepted): void {
  if (!row) return
  const write = (live: LiveThread) => {
    live.resourceId = resourceId
    if (owner === undefined || runtime.hostOf(threadId)) live.begin(epoch)
    else if (live.epoch < epoch) {
      // The run that counted its epoch was this process's, and is forgotten here: it is counted on from a number that nobody had.
      if (live.epoch !== 0) live.skip()
      live.join(epoch, runtime.clock.now())
    }
    live.publish(signalToDataChunk(rowToSignal(row), row.id))
  }
  // What the store took on an idle thread comes after the last word of a run that doesn't know yet that it is over.
  const running = owner !== undefined && runtime.hostOf(threadId)?.expecting ? runtime.liveOf(threadId) : undefined
  if (running) write(running)
  else runtime.publish(threadId, write)
}
