import { describe, expect, it } from 'vitest'
import { readEvents } from './connection.ts'

/** A stream whose next events have always arrived, as they have for a reader that is slower than the server. */
function neverEmpty(): Response {
  const frames = new TextEncoder().encode(Array.from({ length: 20 }, (_, index) => `data: ${index}\n\n`).join(''))
  return new Response(new ReadableStream({ pull: (controller) => controller.enqueue(frames) }))
}

describe('a stream of events', () => {
  it('[U1.16] leaves the other tasks their turn, though its next events have always arrived', async () => {
    let hadTurn = false
    setTimeout(() => (hadTurn = true))
    let read = 0
    for await (const _ of readEvents(neverEmpty(), 60_000)) {
      read += 1
      if (hadTurn || read === 500_000) break
    }
    expect([hadTurn, read < 500_000]).toEqual([true, true])
  })
})
