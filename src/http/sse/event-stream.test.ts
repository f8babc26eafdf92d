import { describe, expect, it } from 'vitest'
import { silentLogger } from '../../base/logger.ts'
import { virtualClock } from '../../testing/virtual-clock.ts'
import { EventStreams } from './event-stream.ts'
import { joinDeltas } from './frames.ts'

const limits = { all: 10, perPrincipal: 10 }
const principal = { id: 'ada', resources: ['ada'] }

function delta(text: string, cursor: string, id = 't') {
  return { type: 'text-delta', runId: 'r', from: 'AGENT', payload: { id, text }, cursor }
}

/** A source that counts what was taken from it. */
function counted(total: number) {
  const taken = { count: 0 }
  const chunks = {
    async *[Symbol.asyncIterator]() {
      for (; taken.count < total; taken.count++) yield { type: 'data-x', data: 'y'.repeat(1_000), cursor: `1.${taken.count}` }
    },
  }
  return { chunks, taken }
}

function silent() {
  return { [Symbol.asyncIterator]: () => ({ next: () => new Promise<IteratorResult<never>>(() => {}) }) }
}

async function readText(response: Response): Promise<string> {
  const { value } = await (response.body as ReadableStream<Uint8Array>).getReader().read()
  return new TextDecoder().decode(value)
}

describe('a stream of events', () => {
  it('[H2.3] takes no more from its source than a client has room for, and lets go of one that stops reading', async () => {
    const clock = virtualClock()
    const streams = new EventStreams({ clock, logger: silentLogger, heartbeatMs: 25_000, stallMs: 30_000, limits })
    const { chunks, taken } = counted(1_000_000)
    let released = 0
    const response = streams.of(principal).respond(chunks, { ids: false }, () => released++)
    await clock.advance(25_000)
    expect(taken.count).toBeLessThan(1_000)
    expect([streams.size, released]).toEqual([1, 0])
    await clock.advance(60_000)
    expect([streams.size, released]).toEqual([0, 1])
    expect(await response.text()).toMatch(/: closed, too slow\n\n$/)
  })

  it('sends a heartbeat into silence', async () => {
    const clock = virtualClock()
    const streams = new EventStreams({ clock, logger: silentLogger, heartbeatMs: 25_000, stallMs: 30_000, limits })
    const response = streams.of(principal).respond(silent(), { ids: false })
    const reader = (response.body as ReadableStream<Uint8Array>)
      .pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>)
      .getReader()
    expect((await reader.read()).value).toBe(': connected\n\n')
    const beat = reader.read()
    await clock.advance(25_000)
    expect((await beat).value).toBe(': heartbeat\n\n')
  })

  it('ends with [DONE] when the server goes, and frees what it watched', async () => {
    const streams = new EventStreams({ clock: virtualClock(), logger: silentLogger, heartbeatMs: 25_000, stallMs: 30_000, limits })
    let released = 0
    const response = streams.of(principal).respond(silent(), { ids: false }, () => released++)
    streams.close()
    expect(await response.text()).toBe(': connected\n\ndata: [DONE]\n\n')
    expect(released).toBe(1)
    expect(await readText(streams.of(principal).respond(silent(), { ids: false }))).toContain(': connected')
  })

  it('joins deltas that wait for one client, and leaves those of the others alone', () => {
    const chunks = [
      delta('a', '1.1'),
      delta('b', '1.2'),
      delta('c', '1.3', 'other'),
      { type: 'text-end', runId: 'r', cursor: '1.4', payload: {} },
      delta('d', '1.5'),
    ]
    expect(joinDeltas(chunks).map(({ payload, cursor }) => [(payload as { text?: string }).text, cursor])).toEqual([
      ['ab', '1.2'],
      ['c', '1.3'],
      [undefined, '1.4'],
      ['d', '1.5'],
    ])
    expect(chunks[0]).toEqual(delta('a', '1.1'))
  })
})
