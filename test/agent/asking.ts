import { afterEach, beforeEach, expect } from 'vitest'
import type { Clock } from '../../src/base/clock.ts'
import { Heed } from '../../src/heed/heed.ts'
import type { Chunk, DataChunk } from '../../src/message/chunk.ts'

type ChunkOf<Type extends Chunk['type']> = Type extends `data-${string}` ? DataChunk : Extract<Chunk, { type: Type }>

/** Everything a run said. */
export async function chunksOf(stream: { fullStream: AsyncIterable<Chunk> }): Promise<Chunk[]> {
  const chunks: Chunk[] = []
  for await (const chunk of stream.fullStream) chunks.push(chunk)
  return chunks
}

export function typesOf(chunks: readonly Chunk[]): string[] {
  return chunks.map((chunk) => chunk.type)
}

/** The chunks of one type. */
export function of<Type extends Chunk['type']>(chunks: readonly Chunk[], type: Type): Array<ChunkOf<Type>> {
  return chunks.filter((chunk): chunk is ChunkOf<Type> => chunk.type === type)
}

/** What a promise rejects with. */
export function rejection(promise: PromiseLike<unknown>): Promise<unknown> {
  return Promise.resolve(promise).then(() => expect.fail('did not reject'), (error: unknown) => error)
}

/** What a function throws. */
export function thrownBy(act: () => unknown): unknown {
  try {
    act()
  } catch (error) {
    return error
  }
  return expect.fail('did not throw')
}

/** A Heed whose log is kept in place of being written. */
export function recordedHeed(clock?: Clock): { heed: Heed; logged: string[] } {
  const logged: string[] = []
  const keep = (message: string) => void logged.push(message)
  const heed = new Heed({ logger: { debug: keep, info: keep, warn: keep, error: keep }, ...(clock ? { clock } : {}) })
  return { heed, logged }
}

/** Fails every test of the file in which a promise is rejected that no code awaits. */
export function refuseStrayRejections(): void {
  const strays: unknown[] = []
  const keep = (reason: unknown) => void strays.push(reason)
  beforeEach(() => {
    strays.length = 0
    process.on('unhandledRejection', keep)
  })
  afterEach(async () => {
    await turn()
    process.off('unhandledRejection', keep)
    expect(strays).toEqual([])
  })
}

/** Every promise that can settle without time passing has settled. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
