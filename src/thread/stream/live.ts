import type { LiveEvent, LiveState } from '../../bus/message.ts'
import type { Chunk } from '../../message/chunk.ts'
import { Notifier, type KeepAlive } from '../../base/promises.ts'
import {
  committedChunks, ChunkRing, compareCursors, cursorBefore, finalChunks, formatBefore, formatCursor, parseCursor, positionAfter,
  PresentStep, SnapshotEchoes, StartMarker, type Cursor,
} from './retained-chunks.ts'

/** How many chunks one `state` message carries to a peer that begins to watch. */
const stateChunks = 4_096

/** What a snapshot needs to know about a thread at one moment. */
interface LivePosition {
  position: number
  /** A subscriber that resumes from it gets the present step and what follows. */
  cursor: string
  runId: string | undefined
  /** While a run is active: the last row that the chunks before the present step represent. */
  seq: number | undefined
  /** While a run is about to begin: the last row before it. */
  coming: number | undefined
  step: Chunk[]
  /** Grows with every run that starts here. */
  runs: number
  /** That of the chunks: a reader that continues from here starts over when it changes. */
  generation: number
}

/** Sends the events of a thread to the peers that watch it. */
export interface LiveRelay {
  /** `events`: the number of its events before the next. */
  onEpoch(epoch: number, events: number): void
  onEvent(event: LiveEvent): void
}

/** The result of one read. Subscribers at the same position share it. */
interface SharedRead {
  readonly position: number
  readonly result: IteratorResult<Chunk>
  readonly promise: Promise<IteratorResult<Chunk>>
}

/**
 * The live stream of a thread in this process. The process that runs the thread is the only writer; a subscriber is an index into the ring.
 * Publishing never waits for a subscriber: one that falls out of the ring continues from a snapshot.
 */
export class LiveThread {
  readonly threadId: string
  #resourceId: string | undefined
  /** The active or suspended run, as far as this process knows. */
  runId: string | undefined
  /** Changes when the chunks published so far are void: subscribers then start over, for this reason. */
  generation = 0
  startOverReason: 'resumed' | 'replaced' = 'resumed'
  /** The first epoch of the thread that these chunks belong to; -1 until this process knows it. Lower ones were of an earlier thread. */
  life = -1
  closed = false
  /** Set only while this process runs the thread or publishes on it. */
  relay: LiveRelay | undefined
  readonly #ring = new ChunkRing()
  #runStart = 0
  #epoch = 0
  #index = 0
  #events = 0
  #running = false
  #moreRuns = false
  /** The next epoch does not continue the events received here. */
  #hasGap = false
  /** The cursor that was current at a gap. It is ambiguous: it names the position before the gap and the one after it. */
  #skippedAt: string | undefined
  #runs = 0
  /** The position of the last run's final chunk; -1 when there is none, or another run began since. */
  #finalChunk = -1
  #seq = 0
  #coming: LiveState['coming']
  #committed = 0
  readonly #step = new PresentStep()
  readonly #start = new StartMarker()
  readonly #snapshotEchoes = new SnapshotEchoes()
  #stepCursor = formatCursor({ epoch: 0, index: 0 })
  readonly #notifier: Notifier
  #lastRead: SharedRead | undefined

  /** `keepAlive` is held while a subscriber waits for the next chunk. */
  constructor(threadId: string, keepAlive?: KeepAlive) {
    this.threadId = threadId
    this.#notifier = new Notifier(keepAlive)
  }

  /** The owner of the thread; undefined until this process knows it. */
  get resourceId(): string | undefined {
    return this.#resourceId
  }

  /** A deleted thread may be created again by another resource: the chunks of one owner are not for the other. */
  set resourceId(resourceId: string | undefined) {
    if (this.#resourceId !== undefined && this.#resourceId !== resourceId) this.startOver()
    this.#resourceId = resourceId
  }

  get end(): number {
    return this.#ring.end
  }

  get first(): number {
    return this.#ring.first
  }

  get epoch(): number {
    return this.#epoch
  }

  get index(): number {
    return this.#index
  }

  /** The number of events of this epoch, relayed or not. */
  get events(): number {
    return this.#events
  }

  /** A run is active, and its present step is known here. */
  get running(): boolean {
    return this.#running
  }

  /** The first position of the active run, or the edge when none is active; undefined when it is no longer retained. */
  get runStart(): number | undefined {
    if (this.runId === undefined) return this.#ring.end
    return this.#runStart < this.#ring.replayFrom ? undefined : this.#runStart
  }

  /** Whether this thread is known to belong to another resource. */
  belongsToOther(resourceId: string | undefined): boolean {
    return resourceId !== undefined && this.resourceId !== undefined && this.resourceId !== resourceId
  }

  /** A subscriber that has `seen` only the chunks before the final chunk of the last run still receives that chunk. */
  currentPosition(seen = this.#ring.end): LivePosition {
    const { runId, generation } = this
    const runs = this.#runs
    if (this.#running) {
      const step = this.#step.chunks()
      return { position: this.#ring.end, cursor: this.#stepCursor, runId, seq: this.#seq, coming: undefined, step, runs, generation }
    }
    const complete = seen > this.#finalChunk || this.#finalChunk < this.#ring.first
    return {
      position: complete ? this.#ring.end : this.#finalChunk,
      cursor: complete ? this.#cursor : formatBefore(this.#cursorAt(this.#finalChunk)),
      runId,
      seq: undefined,
      coming: this.#coming && this.#coming.epoch >= this.#epoch ? this.#coming.seq : undefined,
      step: [],
      runs,
      generation,
    }
  }

  /** Chunks published from here on belong to this epoch. An older epoch is ignored. */
  enterEpoch(epoch: number): void {
    if (epoch <= this.#epoch) return
    this.#epoch = epoch
    this.#index = 0
    this.#events = 0
    this.relay?.onEpoch(epoch, 0)
  }

  /**
   * An epoch begins, in this process or in another. Subscribers start over when the end of the previous epoch was not received from its
   * process, or when an epoch was missed. A takeover publishes its own chunk about it.
   */
  beginEpoch(epoch: number): void {
    if (epoch <= this.#epoch) return
    if (this.#running || this.#moreRuns || this.#hasGap || epoch !== this.#epoch + 1) this.skip()
    // The present step is in the store by now, or will be published again.
    this.#running = false
    this.#moreRuns = false
    this.#hasGap = false
    this.#step.clear()
    this.enterEpoch(epoch)
  }

  /** Chunks were or may be published that do not reach this process: subscribers start over when the next epoch begins. */
  markGap(): void {
    this.#hasGap = true
  }

  /**
   * Continues an epoch whose index is not known here. It counts on from an index that no chunk can have: the time of day. Its chunks so far
   * were missed: subscribers start over.
   */
  joinEpoch(epoch: number, now: number): void {
    if (epoch <= this.#epoch) return
    if (this.#epoch !== 0) this.skip()
    this.withdrawRun(epoch)
    this.#epoch = epoch
    this.#index = now
    // Nor is the number of its events: peers must find a gap before the next one, and not take it for one that they have.
    this.#events = now
    this.relay?.onEpoch(epoch, now)
  }

  /** The store has begun a run, which is about to begin here: its rows, those after `seq`, are still to be published. */
  announceRun(epoch: number, seq: number): void {
    this.#coming = { epoch, seq }
  }

  /** A run that was announced for this epoch or an earlier one does not begin, as far as this process knows. */
  withdrawRun(epoch: number): void {
    if (this.#coming && this.#coming.epoch <= epoch) this.#coming = undefined
  }

  /** A run is active from here on; its chunks follow the rows of history up to `seq`. */
  startRun(runId: string, seq: number): void {
    this.#coming = undefined
    if (this.runId !== runId) this.#runStart = this.#ring.end
    this.runId = runId
    this.#running = true
    this.#finalChunk = -1
    this.#runs++
    this.#seq = seq
    this.#committed = seq
    this.#step.clear()
    this.#stepCursor = this.#cursor
    this.#relayEvent({ type: 'run', runId, seq })
  }

  /** A suspended run stays the thread's run without being active. `more`: another run begins in this epoch. */
  endRun(suspended: boolean, more = false): void {
    if (!suspended) this.runId = undefined
    this.#running = false
    this.#moreRuns = more
    this.#step.clear()
    this.#relayEvent({ type: 'rest', suspended, ...(more && { more }) })
  }

  /** The present step will be published again: all subscribers start over from the stored rows. */
  startOver(): void {
    this.startOverReason = 'resumed'
    this.generation++
    this.#ring.clear()
    this.#index++
    this.#relayEvent({ type: 'anew' })
    this.notify()
  }

  /**
   * The thread in the store has `life` as its first epoch, or will have it once it is created. Chunks of lower epochs belong to an earlier
   * thread with this id, which was deleted or replaced: they are dropped, and subscribers start over.
   */
  beginLife(life: number): void {
    this.life = Math.max(this.life, life)
    if (this.#epoch >= life) return
    const isKnown = this.#epoch > 0
    this.#running = false
    this.#moreRuns = false
    this.#hasGap = false
    this.#skippedAt = undefined
    this.#finalChunk = -1
    this.#seq = 0
    this.#committed = 0
    this.#runs++
    this.#resourceId = undefined
    this.runId = undefined
    this.#step.clear()
    this.enterEpoch(life)
    this.#stepCursor = this.#cursor
    if (!isKnown) return
    this.startOverReason = 'replaced'
    this.generation++
    this.#ring.clear()
    this.notify()
  }

  /** The chunks published so far were refused: new and returning subscribers start from a snapshot; attached ones read on. */
  withdraw(): void {
    this.#ring.withdraw()
    this.#step.clear()
    this.#stepCursor = this.#cursor
    this.#relayEvent({ type: 'withdrawn' })
  }

  /** Chunks were published that did not reach this process: subscribers start over from the stored rows. */
  skip(): void {
    this.#ring.skip()
    this.#runStart = -1
    this.#skippedAt = this.#cursor
    this.notify()
  }

  /**
   * No run is active, and the end of this epoch was not received: subscribers start over from the stored rows, and late events of the epoch
   * are ignored.
   */
  endEpoch(epoch: number, suspended: boolean, now: number): void {
    if (epoch < this.#epoch) return
    this.endRun(suspended)
    this.withdrawRun(epoch)
    this.skip()
    if (epoch > this.#epoch) this.#index = 0
    this.#epoch = epoch
    this.#index = Math.max(this.#index + 1, now)
    this.#committed = 0
  }

  /** Whether a run of this epoch is still to begin, as far as this process knows. */
  get expectsRun(): boolean {
    return this.#moreRuns
  }

  /** The `seq` of the last commit known here; 0 when none is known. */
  get committedSeq(): number {
    return this.#committed
  }

  /** A commit stored the rows up to `seq`. Snapshots count them as published once the step's last chunk is out. */
  committed(seq: number | undefined): void {
    if (seq === undefined) return
    this.#committed = seq
    this.#relayEvent({ type: 'committed', seq })
  }

  publish(chunk: Chunk): void {
    chunk.cursor = `${this.#epoch}.${++this.#index}`
    this.#add(chunk, chunk.cursor)
    this.#relayEvent({ type: 'chunk', chunk })
  }

  #relayEvent(event: LiveEvent): void {
    this.#events++
    this.relay?.onEvent(event)
  }

  #add(chunk: Chunk, cursor: string): void {
    this.#ring.push(chunk)
    if (chunk.type === 'text-delta') {
      if (this.#running) this.#step.add(chunk)
    } else this.#updateState(chunk, cursor)
    this.notify()
  }

  /** Applies an event of this epoch that another process published. */
  follow(event: LiveEvent): void {
    switch (event.type) {
      case 'chunk':
        return this.#receive(event.chunk)
      case 'run':
        return this.startRun(event.runId, event.seq)
      case 'committed':
        return this.committed(event.seq)
      case 'rest':
        return this.endRun(event.suspended, event.more)
      case 'anew':
        return this.startOver()
      case 'withdrawn':
        return this.withdraw()
    }
  }

  /** A chunk that another process numbered. A repeated chunk is ignored. */
  #receive(chunk: Chunk): void {
    const { cursor = '0.0' } = chunk
    const { epoch, index } = parseCursor(cursor)
    if (compareCursors({ epoch, index }, { epoch: this.#epoch, index: this.#index }) <= 0) return
    this.#epoch = epoch
    this.#index = index
    this.#add(chunk, cursor)
    // Whether another run follows in this epoch is not known before `rest` arrives.
    if (finalChunks.has(chunk.type)) this.#moreRuns = true
  }

  /** The live state for a peer that begins to watch: the active run, and the chunks after a cursor if they are retained. */
  state(after?: string): LiveState {
    const retained = this.#ring.replayFrom
    const wanted = Math.min(this.runStart ?? retained, (after === undefined ? undefined : this.after(after)) ?? this.#ring.end)
    const start = Math.max(wanted, retained, this.#ring.end - stateChunks)
    return {
      ...(this.#resourceId === undefined ? {} : { resourceId: this.#resourceId }),
      epoch: this.#epoch, index: this.#index,
      ...(this.runId === undefined ? {} : { runId: this.runId }),
      running: this.#running,
      ...(this.#moreRuns && { more: true }),
      seq: this.#seq, committed: this.#committed,
      ...(this.#coming && { coming: this.#coming }),
      step: this.#step.chunks(), stepCursor: this.#stepCursor,
      chunks: this.#ring.from(start),
      ...(start > retained ? { before: formatCursor(this.#cursorAt(start - 1)) } : {}),
      whole: this.runStart !== undefined && start <= this.runStart,
    }
  }

  /** Continues from the live state of another process. Where it does not follow from what was published here, subscribers start over. */
  adopt(state: LiveState): void {
    if (state.resourceId !== undefined) this.resourceId = state.resourceId
    const [oldest] = state.chunks
    const edge = this.#cursor
    const follows =
      edge === state.before || edge === formatCursor(state) || state.chunks.some(({ cursor }) => cursor === edge)
      || (!this.#running && state.epoch === this.#epoch + 1 && (oldest ? oldest.cursor === `${state.epoch}.1` : state.index === 0))
    if (!follows) this.skip()
    const start = this.#ring.end
    if (!follows) {
      this.#epoch = 0
      this.#index = 0
    }
    if (this.runId !== state.runId || !follows) this.#runStart = state.whole ? start : -1
    for (const chunk of state.chunks) this.#receive(chunk)
    this.#epoch = state.epoch
    this.#index = state.index
    this.runId = state.runId
    if (state.runId !== undefined) this.#finalChunk = -1
    this.#running = state.running
    // An epoch that has begun, and nothing of it was published: if its events do not arrive, subscribers start over.
    this.#moreRuns = state.more === true || (!state.running && state.index === 0)
    this.#runs++
    this.#seq = state.seq
    this.#committed = state.committed
    this.#coming = state.coming
    this.#step.clear()
    for (const chunk of state.step) this.#step.add(chunk)
    this.#stepCursor = state.stepCursor
    this.notify()
  }

  /** Updates the state of run and step that later subscribers start from. */
  #updateState(chunk: Chunk, cursor: string): void {
    this.#snapshotEchoes.onChunk(chunk, this.#ring.end - 1)
    if (finalChunks.has(chunk.type)) {
      // A snapshot from here on is the stored state.
      this.runId = undefined
      this.#running = false
      this.#step.clear()
      this.#finalChunk = this.#ring.end - 1
    } else if (chunk.type === 'start') this.#finalChunk = -1
    if (!this.#running) return
    if (committedChunks.has(chunk.type)) {
      this.#step.clear()
      this.#seq = this.#committed
      this.#stepCursor = cursor
    } else if (chunk.runId === this.runId) this.#step.add(chunk)
    // Signals persisted beside the run are in history already.
  }

  /** Whether this thread is known to belong to this resource. */
  belongsTo(resourceId: string | undefined): boolean {
    return resourceId === undefined || this.resourceId === resourceId
  }

  /** The chunk at a position, for a subscriber that has missed nothing; undefined for one that has, and at the edge. */
  ready(position: number, generation: number): SharedRead | undefined {
    if (position < this.#ring.first || generation !== this.generation || position >= this.#ring.end) return undefined
    // Subscribers mostly read in step: the result for the first one at a position serves the others.
    if (this.#lastRead?.position !== position) {
      const result: IteratorResult<Chunk> = { done: false, value: this.#ring.at(position) as Chunk }
      this.#lastRead = { position, result, promise: Promise.resolve(result) }
    }
    return this.#lastRead
  }

  /** The chunk at a position that is not before `first`; undefined at the edge. */
  at(position: number): Chunk | undefined {
    return this.#ring.at(position)
  }

  /** Resolves at the next chunk; all waiting subscribers share one promise. */
  next(): Promise<void> {
    return this.#notifier.next()
  }

  /** Wakes all waiting subscribers. */
  notify(): void {
    this.#notifier.notify()
  }

  /** No more chunks follow: subscribers read the retained ones and end. */
  close(): void {
    this.closed = true
    this.notify()
  }

  /** A subscriber gets a snapshot with this cursor, which contains these signals. */
  onSnapshot(cursor: string, signals: ReadonlySet<string>): void {
    this.#snapshotEchoes.onSnapshot(this.#ring.replayed(this.generation), this.#positionAfter(cursor) ?? this.#ring.end, signals)
  }

  /** The position at which a subscriber that returns with this cursor reads on; undefined when it needs a snapshot. */
  after(text: string): number | undefined {
    const position = this.#positionAfter(text)
    return position === undefined || this.#snapshotEchoes.mayRepeat(position) ? undefined : position
  }

  /** The position after the chunk with this cursor; undefined when the ring does not show what followed it. */
  #positionAfter(text: string): number | undefined {
    const cursor = parseCursor(text)
    if (compareCursors(cursor, { epoch: this.#epoch, index: this.#index }) === 0) {
      return this.#skippedAt === this.#cursor ? undefined : this.#ring.end
    }
    const retained = this.#ring.replayed(this.generation)
    return this.#start.positionOf(retained, text) ?? positionAfter(retained, cursor)
  }

  /** The cursor before a position: a subscriber that returns with it reads on from there, or gets a snapshot. */
  cursorBefore(position: number): string {
    const before = cursorBefore(this, position)
    if (before === undefined && this.#skippedAt === this.#cursor) return formatCursor({ epoch: 0, index: 0 })
    return before ?? this.#start.set(this, this.#cursor)
  }

  get #cursor(): string {
    return formatCursor({ epoch: this.#epoch, index: this.#index })
  }

  #cursorAt(position: number): Cursor {
    return parseCursor(this.at(position)?.cursor ?? '0.0')
  }
}
