import { rowToSignal, signalToDataChunk } from '../../signals/conversions.ts'
import type { Accepted, Send } from '../../store/contract/threads.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'
import type { LiveThread } from './live.ts'

/**
 * Counts, per thread, the changes that this process stores and then publishes itself. Code that finds such a change in the store first
 * waits for the publication instead of taking it for a change of another process.
 */
export class PendingEchoes {
  readonly #threads = new Map<string, Count>()

  /** `work` stores the change, and has published it when it resolves. */
  during<T>(threadId: string, work: () => Promise<T>): Promise<T> {
    this.#begin(threadId)
    return work().finally(() => this.#end(threadId))
  }

  #begin(threadId: string): void {
    let count = this.#threads.get(threadId)
    if (!count) this.#threads.set(threadId, (count = { begun: 0, ended: 0, waiting: [], held: [] }))
    count.begun++
  }

  /** The change was published, or needs no publication. */
  #end(threadId: string): void {
    const count = this.#threads.get(threadId)
    if (!count) return
    count.ended++
    if (count.ended === count.begun) this.publishHeld(threadId)
    for (let [first] = count.waiting; first && first.until <= count.ended; [first] = count.waiting) {
      count.waiting.shift()
      first.resolve()
    }
    if (count.ended === count.begun) this.#threads.delete(threadId)
  }

  /**
   * Holds a publication back while a change of the thread is pending: which of both the store made first is known when its answer is here.
   * False where none is pending.
   */
  hold(threadId: string, epoch: number, publish: () => void): boolean {
    const count = this.#threads.get(threadId)
    count?.held.push({ epoch, publish })
    return count !== undefined
  }

  /** Publishes what was held back and belongs to an epoch before this one, in the order of the epochs. */
  publishHeld(threadId: string, before = Infinity): void {
    const count = this.#threads.get(threadId)
    if (!count) return
    const held = count.held.toSorted((a, b) => a.epoch - b.epoch)
    count.held = held.filter(({ epoch }) => epoch >= before)
    for (const { epoch, publish } of held) if (epoch < before) publish()
  }

  /** Resolves when the changes pending now are published; undefined when there are none. */
  flushed(threadId: string): Promise<void> | undefined {
    const count = this.#threads.get(threadId)
    if (!count) return undefined
    return new Promise((resolve) => count.waiting.push({ until: count.begun, resolve }))
  }
}

interface Count {
  begun: number
  ended: number
  /** In order of `until`. */
  waiting: Array<{ until: number; resolve(): void }>
  held: Array<{ epoch: number; publish(): void }>
}

/**
 * Publishes the echo of a signal that went into history without a run: between the chunks of the active run, or alone, with no chunk that
 * looks like a run.
 */
export function publishPersisted(runtime: ThreadRuntime, send: Send, accepted: Accepted): void {
  if (accepted.rows[0]?.role !== 'signal') return
  const publish = () => publishEcho(runtime, send, accepted)
  // A run that has begun here began after the end of the run before was published.
  const follows = accepted.owner === undefined || runtime.hostOf(send.threadId)?.started === false
  if (follows && runtime.pendingEchoes.ended.hold(send.threadId, accepted.epoch, publish)) return
  // This process may have been given the lease in the same moment: that run is about to begin and sets the epoch itself.
  if (accepted.owner !== undefined && !runtime.hostOf(send.threadId))
    setImmediate(() => runtime.closing || publish())
  else publish()
}

function publishEcho(runtime: ThreadRuntime, { threadId, resourceId }: Send, { rows: [row], epoch, owner }: Accepted): void {
  if (!row) return
  const write = (live: LiveThread) => {
    // The thread was deleted since.
    if (epoch < live.life) return
    live.resourceId = resourceId
    const host = runtime.hostOf(threadId)
    // The run before has ended in the store, and this process publishes its end when it has the answer: until then its epoch goes on.
    const isEnding = host !== undefined && !host.started && live.running && live.epoch < epoch
    if (owner === undefined || (host && !isEnding)) live.beginEpoch(epoch)
    else if (!isEnding && live.epoch < epoch) {
      // A run of this process set the epoch, and its live thread was released: continue with an index that no chunk has.
      live.joinEpoch(epoch, runtime.clock.now())
    }
    live.publish(signalToDataChunk(rowToSignal(row), row.id))
  }
  // The store persisted the signal on an idle thread, so that its echo follows the last chunk of a run that is still ending here.
  const running = owner !== undefined && runtime.hostOf(threadId)?.hasWork ? runtime.liveOf(threadId) : undefined
  if (running) write(running)
  else runtime.publish(threadId, epoch, write)
}
