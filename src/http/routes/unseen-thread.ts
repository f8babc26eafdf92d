import type { Agent } from '../../agent/agent.ts'
import { isHeedError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import type { Chunk } from '../../run/chunk.ts'
import type { ThreadSnapshot } from '../../thread/watch/snapshot.ts'
import type { AgentThreadSubscription } from '../../thread/watch/subscription.ts'

type Watched = Parameters<Agent['subscribeToThread']>[0]

/**
 * Watches a thread for somebody who may not learn whether it is there. One of another resource is told like one that nobody has begun:
 * nothing ever happens on it. So is one that another resource begins while it is watched.
 */
export async function subscribeUnseen(agent: Agent, watched: Watched): Promise<Pick<AgentThreadSubscription, 'stream' | 'cursor' | 'unsubscribe'>> {
  try {
    const { stream, cursor, unsubscribe } = await agent.subscribeToThread(watched)
    return { stream: { [Symbol.asyncIterator]: () => new SilentOnceForbidden(stream[Symbol.asyncIterator]()) }, cursor, unsubscribe }
  } catch (error) {
    if (!isForbidden(error)) throw error
  }
  // A thread that can't be there behaves as one that isn't, whatever was asked for.
  const { stream, cursor, unsubscribe } = await agent.subscribeToThread({ ...watched, threadId: newId() })
  return { stream: renamed(stream, watched.threadId), cursor, unsubscribe }
}

/** True for what concerns a thread of another resource. */
export function isForbidden(error: unknown): boolean {
  return isHeedError(error) && error.code === 'thread_forbidden'
}

class SilentOnceForbidden implements AsyncIterator<Chunk> {
  readonly #source: AsyncIterator<Chunk>
  readonly #over = Promise.withResolvers<IteratorResult<Chunk>>()

  constructor(source: AsyncIterator<Chunk>) {
    this.#source = source
  }

  next(): Promise<IteratorResult<Chunk>> {
    return this.#source.next().catch((error: unknown) => {
      if (isForbidden(error)) return this.#over.promise
      throw error
    })
  }

  async return(): Promise<IteratorResult<Chunk>> {
    this.#over.resolve({ done: true, value: undefined })
    await this.#source.return?.()
    return { done: true, value: undefined }
  }
}

/** Snapshots name their thread. */
async function* renamed(stream: AsyncIterable<Chunk>, threadId: string): AsyncGenerator<Chunk> {
  for await (const chunk of stream) yield chunk.type === 'data-thread-snapshot' ? { ...chunk, data: { ...(chunk.data as ThreadSnapshot), threadId } } : chunk
}
