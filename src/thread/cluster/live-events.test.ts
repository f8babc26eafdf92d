import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { BusConnection } from '../../bus/contract.ts'
import type { BusMessage } from '../../bus/message.ts'
import type { Chunk } from '../../message/chunk.ts'
import { virtualClock } from '../../testing/index.ts'
import { LiveThread } from '../stream/live.ts'
import { Relay, Replica } from './live-events.ts'

type Act = 'say' | 'flush' | 'end' | 'take over' | 'lose' | 'keep' | 'idle echo'
const acts = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: fc.constant<Act>('say') },
    { weight: 4, arbitrary: fc.constant<Act>('flush') },
    { weight: 2, arbitrary: fc.constantFrom<Act>('end', 'take over', 'idle echo') },
    { weight: 2, arbitrary: fc.constantFrom<Act>('lose', 'keep') },
  ),
  { minLength: 5, maxLength: 120 },
)

/** A thread that is run in one place after the other, and its copy elsewhere, with a bus between them that loses things. */
class Pair {
  /** Cursors of all published chunks, in order. */
  readonly said: string[] = []
  readonly copy = new LiveThread('t')
  readonly replica = new Replica(this.copy)
  losing = false
  #live = new LiveThread('t')
  #relay: Relay
  #owner = 1
  #epoch = 0
  #runs = 0

  constructor() {
    this.#relay = this.#relayOf(this.#live)
    this.begin()
  }

  begin(): void {
    this.#live.enterEpoch(++this.#epoch)
    this.#live.startRun(`run-${++this.#runs}`, this.said.length)
    this.say('start')
  }

  say(type: 'start' | 'text-delta' | 'finish' = 'text-delta'): void {
    if (this.#live.runId === undefined) return this.begin()
    const chunk = { type, runId: 'r', from: 'AGENT', payload: { id: 't', text: 'x' } } as Chunk
    this.#live.publish(chunk)
    this.said.push(chunk.cursor ?? '')
  }

  end(): void {
    if (this.#live.runId === undefined) return
    this.say('finish')
    this.#live.endRun(false)
  }

  echo(): void {
    if (this.#live.runId !== undefined) return
    this.#live.enterEpoch(++this.#epoch)
    const chunk: Chunk = { type: 'data-signal', runId: '', data: {} }
    this.#live.publish(chunk)
    this.said.push(chunk.cursor ?? '')
    this.flush()
  }

  /** Another process goes on, knowing nothing of what is live. */
  takeOver(): void {
    if (this.#live.runId === undefined) return
    const runId = this.#live.runId
    this.#live.relay = undefined
    this.#owner++
    this.#live = new LiveThread('t')
    this.#relay = this.#relayOf(this.#live)
    this.#live.enterEpoch(++this.#epoch)
    this.#live.startOver()
    this.#live.startRun(runId, this.said.length)
  }

  flush(): void {
    this.#relay.flush()
  }

  #relayOf(live: LiveThread): Relay {
    const owner = String(this.#owner)
    const connection: BusConnection = {
      hasPeers: true,
      send: (message) => this.#carry(message, owner),
      flush: () => Promise.resolve(),
      poll: () => Promise.resolve(),
      close: () => Promise.resolve(),
    }
    return new Relay(live, connection, virtualClock())
  }

  #carry(message: BusMessage, from: string): void {
    if (this.losing) return
    if (message.kind === 'state') this.replica.adopt(structuredClone(message), from)
    if (message.kind !== 'events' || !this.replica.receive(structuredClone(message), from)) return
    // The question is asked and answered, after the chunks that are on their way.
    queueMicrotask(() => this.answer())
  }

  answer(): void {
    if (!this.losing) this.#relay.sendState('copy', `${this.copy.epoch}.${this.copy.index}`)
  }
}

/** What a watcher of the copy sees: cursors, and where it received a snapshot to start over from. */
class Watcher {
  readonly seen: Array<string | null> = []
  #position = 0
  #generation = 0
  readonly #live: LiveThread

  constructor(live: LiveThread) {
    this.#live = live
  }

  read(): void {
    if (this.#generation !== this.#live.generation || this.#position < this.#live.first) {
      this.#generation = this.#live.generation
      this.#position = this.#live.currentPosition().position
      this.seen.push(null)
    }
    for (let chunk = this.#live.at(this.#position); chunk; chunk = this.#live.at(++this.#position)) this.seen.push(chunk.cursor ?? '')
  }
}

describe('a replica of a live thread', () => {
  it('[W1.2] neither omits nor repeats an event without a snapshot, whatever messages the bus loses', async () => {
    await fc.assert(
      fc.asyncProperty(acts, async (drawn) => {
        const pair = new Pair()
        const watcher = new Watcher(pair.copy)
        for (const act of drawn) {
          if (act === 'say') pair.say()
          else if (act === 'end') pair.end()
          else if (act === 'idle echo') pair.echo()
          else if (act === 'take over') pair.takeOver()
          else if (act === 'lose') pair.losing = true
          else if (act === 'keep') pair.losing = false
          else pair.flush()
          await Promise.resolve()
          watcher.read()
        }
        const places = watcher.seen.map((cursor) => (cursor === null ? null : pair.said.indexOf(cursor)))
        expect(places).not.toContain(-1)
        for (const [index, place] of places.entries()) {
          const before = places[index - 1]
          if (place === null || before === null || before === undefined) continue
          expect(place).toBe(before + 1)
        }
      }),
      { numRuns: 2_000 },
    )
  })

  it('[W1.2] finds a gap before the echo of a later epoch, also when the process that sends it ran the thread last', () => {
    const [live, copy] = [new LiveThread('t'), new LiveThread('t')]
    const replica = new Replica(copy)
    const watcher = new Watcher(copy)
    const gaps: boolean[] = []
    const connection: BusConnection = {
      hasPeers: true,
      send: (message) => void (message.kind === 'events' && gaps.push(replica.receive(structuredClone(message), 'runner'))),
      flush: () => Promise.resolve(),
      poll: () => Promise.resolve(),
      close: () => Promise.resolve(),
    }
    const run = new Relay(live, connection, virtualClock())
    live.beginEpoch(1)
    live.startRun('r', 0)
    for (const type of ['start', 'finish']) live.publish({ type, runId: 'r', from: 'AGENT', payload: {} } as Chunk)
    live.endRun(false)
    run.close()
    // Other processes had the thread in epoch 2, and published what never arrived here.
    const echo = new Relay(live, connection, virtualClock())
    live.skip()
    live.joinEpoch(3, 1_000_000)
    live.publish({ type: 'data-signal', runId: '', data: {} })
    echo.close()
    watcher.read()
    expect(watcher.seen).toEqual(['1.1', '1.2'])
    expect(gaps.at(-1)).toBe(true)
  })

  it('[W2.2] has the same chunks when no message is lost', () => {
    fc.assert(
      fc.property(acts, (drawn) => {
        const pair = new Pair()
        for (const act of drawn) {
          if (act === 'say') pair.say()
          else if (act === 'end') pair.end()
          else if (act === 'idle echo') pair.echo()
          else if (act === 'flush') pair.flush()
        }
        pair.end()
        pair.flush()
        const copied: string[] = []
        for (let position = pair.copy.first; position < pair.copy.end; position++) copied.push(pair.copy.at(position)?.cursor ?? '')
        expect(copied).toEqual(pair.said)
      }),
      { numRuns: 500 },
    )
  })
})
