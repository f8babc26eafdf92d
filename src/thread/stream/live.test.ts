import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Chunk } from '../../message/chunk.ts'
import { compareCursors, formatCursor, parseCursor, PresentStep } from './retained-chunks.ts'
import { LiveThread } from './live.ts'
import type { SnapshotReader } from './snapshot.ts'
import { ThreadReader } from './subscription.ts'

const ring = 8_192

function delta(text: string, id = 't'): Chunk {
  return { type: 'text-delta', runId: 'run', from: 'AGENT', payload: { id, text } }
}

function chunk(type: 'step-start' | 'step-finish' | 'finish' | 'tool-output' | 'raw', output: unknown = null): Chunk {
  return { type, runId: 'run', from: 'AGENT', payload: { output } } as unknown as Chunk
}

describe('a cursor', () => {
  it('parses as it was formatted, and is ordered by epoch, then by index', () => {
    const cursor = fc.record({ epoch: fc.nat(), index: fc.nat() })
    fc.assert(
      fc.property(cursor, cursor, (a, b) => {
        expect(parseCursor(formatCursor(a))).toEqual(a)
        expect(Math.sign(compareCursors(a, b))).toBe(Math.sign(a.epoch - b.epoch || a.index - b.index))
      }),
    )
  })

  it.each(['', '1', '1.', '.1', '1.2.3', '-1.2', 'a.b', '1.2 ', '1.1234567890123456'])('rejects an invalid text by name: %j', (text) => {
    expect(() => parseCursor(text)).toThrow(expect.objectContaining({ code: 'invalid_argument', details: { field: 'after' } }))
  })
})

describe('a live thread', () => {
  it('[W1.1] makes early subscribers of a new thread start over when its first chunks were missed', () => {
    const runner = new LiveThread('thread')
    runner.beginEpoch(1)
    runner.startRun('run', 0)
    for (let index = 0; index < 10_000; index++) runner.publish(delta('x'))
    const watched = new LiveThread('thread')
    watched.adopt(runner.state())
    expect(watched.first).toBeGreaterThan(0)
    expect(watched.runStart).toBeUndefined()
    const second = new LiveThread('thread')
    second.beginEpoch(2)
    expect(second.first).toBeGreaterThan(0)
    const whole = new LiveThread('thread')
    whole.beginEpoch(1)
    expect(whole.first).toBe(0)
  })

  it.each(['has begun no run', 'goes on with another run'])('[W1.1] makes subscribers start over where the state of a runner that %s is the last that arrives', (what) => {
    const runner = new LiveThread('thread')
    runner.beginEpoch(1)
    if (what === 'goes on with another run') {
      runner.startRun('run', 0)
      runner.publish(chunk('finish'))
      runner.endRun(false, true)
    }
    const [left, told] = [new LiveThread('thread'), new LiveThread('thread')]
    for (const watched of [left, told]) watched.adopt(runner.state())
    const before = left.first
    told.follow({ type: 'run', runId: 'next', seq: 0 })
    told.follow({ type: 'rest', suspended: false })
    for (const watched of [left, told]) watched.beginEpoch(2)
    expect(left.first).toBe(left.end)
    expect(left.first).toBeGreaterThan(before)
    expect(told.first).toBe(before)
  })

  it('[W1.1] does not take a cursor from before a gap for one from after it', () => {
    const live = new LiveThread('thread')
    live.enterEpoch(1)
    live.publish(delta('x'))
    const before = live.currentPosition().cursor
    expect(live.after(before)).toBe(live.end)
    live.skip()
    expect(live.after(before)).toBeUndefined()
    expect(live.after(live.cursorBefore(live.end))).toBeUndefined()
    live.endEpoch(1, false, 5)
    const settled = live.currentPosition().cursor
    expect(live.after(settled)).toBe(live.end)
    live.endEpoch(1, false, 5)
    expect(live.currentPosition().cursor).not.toBe(settled)
    expect(live.after(settled)).toBeUndefined()
  })

  const events = fc.array(fc.oneof({ weight: 6, arbitrary: fc.record({ publish: fc.integer({ min: 1, max: 3_000 }) }) }, { weight: 1, arbitrary: fc.record({ epochs: fc.integer({ min: 1, max: 3 }) }) }), { maxLength: 12 })

  it('[W1.1] gives a returning subscriber exactly the chunks after its cursor, or no position', () => {
    fc.assert(
      fc.property(events, fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 20 }), (drawn, places) => {
        const live = new LiveThread('thread')
        const all: Chunk[] = []
        let epoch = 1
        live.enterEpoch(epoch)
        for (const event of drawn) {
          if ('epochs' in event) live.enterEpoch((epoch += event.epochs))
          else for (let index = 0; index < event.publish; index++) live.publish(all[all.push(delta('x')) - 1] as Chunk)
        }
        expect(live.end).toBe(all.length)
        expect(live.first).toBe(Math.max(0, all.length - ring))
        const cursors = all.map(({ cursor = '' }) => parseCursor(cursor))
        for (let index = 1; index < cursors.length; index += 97) expect(compareCursors(cursors[index - 1] as never, cursors[index] as never)).toBeLessThan(0)
        for (const place of places) {
          const index = Math.min(all.length - 1, Math.floor(place * all.length))
          if (index < 0) continue
          const position = live.after(all[index]?.cursor ?? '')
          // All later chunks are kept, or the stream cannot continue from there.
          if (position === undefined) expect(index + 1).toBeLessThan(live.first)
          else expect(position).toBe(index + 1)
        }
        expect(live.after(`${epoch + 1}.1`)).toBeUndefined()
      }),
      { numRuns: 40 },
    )
  })

  it('[W1.1] does not accept a cursor of another numbering', () => {
    const live = new LiveThread('thread')
    live.joinEpoch(5, 1_700_000_000_000)
    live.publish(delta('x'))
    for (const cursor of ['5.0', '5.1', '4.9', '6.1']) expect(live.after(cursor)).toBeUndefined()
    expect(live.after('5.1700000000000')).toBe(0)
    expect(live.after('5.1700000000001')).toBe(1)
  })

  it('begins with the active run, or at the edge', () => {
    const live = new LiveThread('thread')
    live.enterEpoch(1)
    live.publish(delta('before'))
    expect(live.runStart).toBe(1)
    live.startRun('run', 0)
    live.publish(chunk('step-start'))
    expect(live.runStart).toBe(1)
    // Suspended and continued, it is still the same run.
    live.endRun(true)
    live.startRun('run', 3)
    expect(live.runStart).toBe(1)
    live.publish(chunk('finish'))
    expect(live.runStart).toBe(live.end)
    expect(live.runId).toBeUndefined()
  })

  it('describes the present step: the rows up to its start, and its chunks since', () => {
    const live = new LiveThread('thread')
    live.enterEpoch(1)
    live.startRun('run', 4)
    live.committed(6)
    live.publish(delta('a'))
    live.publish(delta('b'))
    expect(live.currentPosition()).toMatchObject({ position: 2, cursor: '1.0', seq: 4, step: [{ payload: { text: 'ab' } }] })
    live.committed(9)
    expect(live.currentPosition()).toMatchObject({ seq: 4 })
    live.publish(chunk('step-finish'))
    expect(live.currentPosition()).toMatchObject({ position: 3, cursor: '1.3', seq: 9, step: [] })
    live.publish(chunk('finish'))
    live.endRun(false)
    expect(live.currentPosition()).toMatchObject({ position: 4, cursor: '1.4', seq: undefined, step: [] })
    // Who had not seen the run's last word is still told it.
    expect(live.currentPosition(2)).toMatchObject({ position: 3, cursor: '1.3' })
    // Once another run began, that word is history, also when the new run waits.
    live.startRun('next', 9)
    live.publish(delta('c'))
    live.endRun(true)
    expect(live.currentPosition(2)).toMatchObject({ position: 5, cursor: '1.5' })
  })

  it('[W1.2] an epoch that begins before the end of the last was received makes subscribers start over, without an error', () => {
    const live = new LiveThread('thread')
    live.beginEpoch(1)
    live.startRun('run', 0)
    live.publish(delta('a'))
    const { end, generation } = live
    live.beginEpoch(2)
    expect([live.first > end, live.generation, live.running]).toEqual([true, generation, false])
  })

  it('[W1.2] the last chunk of a run does not end its epoch: unless its end was received too, the next one makes subscribers start over', () => {
    for (const end of [undefined, false, true]) {
      const live = new LiveThread('thread')
      live.beginEpoch(1)
      live.follow({ type: 'run', runId: 'first', seq: 0 })
      live.follow({ type: 'chunk', chunk: { type: 'finish', runId: 'first', from: 'AGENT', payload: {}, cursor: '1.1' } as unknown as Chunk })
      if (end !== undefined) live.follow({ type: 'rest', suspended: false, ...(end && { more: true as const }) })
      const before = live.first
      live.beginEpoch(2)
      // A run may have followed in the epoch before, whose chunks are missing here.
      expect([end, live.first > before]).toEqual([end, end !== false])
    }
  })

  it('[W1.2] ignores late events of an epoch that was ended from the store', () => {
    const live = new LiveThread('thread')
    live.beginEpoch(3)
    live.startRun('run', 0)
    live.publish(delta('a'))
    live.endEpoch(3, false, 1_700_000_000_000)
    const { end } = live
    live.follow({ type: 'chunk', chunk: { ...chunk('finish'), cursor: '3.2' } })
    expect([live.end, live.committedSeq, live.currentPosition().cursor]).toEqual([end, 0, '3.1700000000000'])
    live.beginEpoch(4)
    live.publish(delta('b'))
    expect(live.at(end)?.cursor).toBe('4.1')
  })

  it('makes all subscribers start over when the published chunks are void', () => {
    const live = new LiveThread('thread')
    live.enterEpoch(1)
    live.startRun('run', 0)
    live.publish(delta('a'))
    const { generation } = live
    live.startOver()
    live.startRun('run', 0)
    expect(live.generation).not.toBe(generation)
    expect(live.after('1.1')).toBeUndefined()
    expect(live.first).toBe(live.end)
  })
})

describe('readers', () => {
  it('get the chunk of their position, whether others are ahead or behind', () => {
    const live = new LiveThread('thread')
    live.beginEpoch(1)
    for (let index = 0; index < ring + 10; index++) live.publish(delta(String(index)))
    const textAt = (position: number) => {
      const handed = live.ready(position, live.generation)
      return handed && [handed.position, (handed.result.value as { payload: { text: string } }).payload.text]
    }
    const positions = fc.array(fc.nat(ring + 20), { minLength: 50, maxLength: 50 })
    fc.assert(
      fc.property(positions, (drawn) => {
        for (const position of drawn) expect(textAt(position)).toEqual(position < 10 || position >= ring + 10 ? undefined : [position, String(position)])
      }),
    )
    expect(live.ready(50, live.generation)).toBe(live.ready(50, live.generation))
    expect(live.ready(50, live.generation + 1)).toBeUndefined()
  })

  it.each(['before', 'after'])('[W1.1] read one snapshot for each time that the chunks are void, also %s the snapshot has its position', async (moment) => {
    const live = new LiveThread('thread')
    live.beginEpoch(1)
    let restarts = 1
    const resume = () => {
      if (restarts-- <= 0) return
      live.startOver()
      live.startRun('run', 0)
      live.publish(delta('a'))
    }
    const read: SnapshotReader = async () => {
      if (moment === 'before') resume()
      const { position, cursor, step, generation } = live.currentPosition()
      if (moment === 'after') resume()
      return { snapshot: {} as never, cursor, position, generation, step, life: 0, signals: new Set() }
    }
    const reader = new ThreadReader(live, { position: 0, snapshot: 'expired', generation: live.generation, life: 0 }, read, () => {})
    const types: string[] = []
    while (types.at(-1) !== 'finish') {
      types.push((await reader.next()).value.type)
      if (types.at(-1) === 'text-delta') live.publish(chunk('finish'))
    }
    const snapshots = moment === 'before' ? 1 : 2
    expect(types).toEqual([...Array<string>(snapshots).fill('data-thread-snapshot'), 'text-delta', 'finish'])
  })
})

describe('the present step', () => {
  it('joins deltas, whatever pieces they arrive in', () => {
    const pieces = fc.array(fc.record({ id: fc.constantFrom('a', 'b'), text: fc.string({ maxLength: 3 }) }))
    fc.assert(
      fc.property(pieces, (drawn) => {
        const step = new PresentStep()
        for (const { id, text } of drawn) step.add(delta(text, id))
        const joined = step.chunks() as Array<{ payload: { id: string; text: string } }>
        expect(joined.map(({ payload }) => payload.text).join('')).toBe(drawn.map(({ text }) => text).join(''))
        expect(joined.every(({ payload }, index) => payload.id !== joined[index - 1]?.payload.id)).toBe(true)
      }),
    )
  })

  it('retains only the newest transient chunks', () => {
    const step = new PresentStep()
    step.add(chunk('step-start'))
    for (let index = 0; index < 100_000; index++) step.add(chunk(index % 3 === 0 ? 'raw' : 'tool-output', index))
    const chunks = step.chunks() as Array<{ type: string; payload: { output: unknown } }>
    expect(chunks.length).toBeLessThanOrEqual(1_025)
    expect(chunks.length).toBeGreaterThan(500)
    expect(chunks[0]?.type).toBe('step-start')
    expect(chunks.at(-1)?.payload.output).toBe(99_998)
  })
})
