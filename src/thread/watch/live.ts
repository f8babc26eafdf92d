import type { LiveEvent, LiveState } from '../../bus/message.ts'
import type { Chunk } from '../../run/chunk.ts'
import { ChunkRing } from './chunk-ring.ts'
import { compareCursors, formatBefore, formatCursor, parseCursor, type Cursor } from './cursor.ts'
import { Handing, type Handed } from './shared-read.ts'
import type { LiveMark } from './live-position.ts'
import { News } from '../../base/notifier.ts'
import { Beginning, cursorBefore, positionAfter } from './cursor-index.ts'
import type { LiveRelay } from './live-relay.ts'
import { boundaries, ends, PresentStep } from './present-step.ts'
import type { Vigil } from '../../base/keep-alive.ts'

/** How many chunks are told at once to a process that begins to watch. */
const stateChunks = 4_096

/**
 * What happens on a thread right now, for everyone here who watches. The runner is the only writer; a watcher is an index.
 * Nobody is waited for: a watcher that falls out of the ring is told so by a snapshot.
 */
export class LiveThread {
  readonly threadId: string
  #resourceId: string | undefined
  /** The run that is active, or suspended, as far as is known here. */
  runId: string | undefined
  /** Changes when what was said before no longer counts: watchers then start over. */
  generation = 0
  closed = false
  /** There only while the thread is run, or spoken for, by this process. */
  relay: LiveRelay | undefined
  readonly #ring = new ChunkRing()
  #runStart = 0
  #epoch = 0
  #index = 0
  #events = 0
  #running = false
  #more = false
  /** What the next epoch begins with doesn't follow from what was heard. */
  #torn = false
  /** The cursor that was current as something was left out: it stands for a place before that, and for one after it. */
  #skippedAt: string | undefined
  #runs = 0
  /** Where the last run said that it is over; -1 when none did, or another began since. */
  #lastWord = -1
  #seq = 0
  #committed = 0
  readonly #step = new PresentStep()
  readonly #begun = new Beginning()
  #stepCursor = formatCursor({ epoch: 0, index: 0 })
  readonly #news: News
  readonly #handing = new Handing()

  /** `vigil`: kept while anybody waits here. */
  constructor(threadId: string, vigil?: Vigil) {
    this.threadId = threadId
    this.#news = new News(vigil)
  }

  /** Whose thread it is, as soon as that is known here. */
  get resourceId(): string | undefined {
    return this.#resourceId
  }

  /** A thread that was deleted may come again as somebody else's: nothing of the first is for them, nor the other way round. */
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

  /** How many events of this epoch there were, told to others or not. */
  get events(): number {
    return this.#events
  }

  /** A run is at work here, and its present step is known. */
  get running(): boolean {
    return this.#running
  }

  /** Where the active run began, or the edge when none is active; undefined when that is no longer kept. */
  get runStart(): number | undefined {
    if (this.runId === undefined) return this.#ring.end
    return this.#runStart < this.#ring.replayFrom ? undefined : this.#runStart
  }

  /** Whether this is known to be the thread of somebody else. */
  foreignTo(resourceId: string | undefined): boolean {
    return resourceId !== undefined && this.resourceId !== undefined && this.resourceId !== resourceId
  }

  /** Whoever has `seen` the chunks up to a position only, and not the last word of the last run, is still told that. */
  mark(seen = this.#ring.end): LiveMark {
    const { runId } = this
    if (this.#running) return { position: this.#ring.end, cursor: this.#stepCursor, runId, seq: this.#seq, step: this.#step.chunks(), runs: this.#runs }
    const told = seen > this.#lastWord || this.#lastWord < this.#ring.first
    return {
      position: told ? this.#ring.end : this.#lastWord,
      cursor: told ? this.#cursor : formatBefore(this.#cursorAt(this.#lastWord)),
      runId,
      seq: undefined,
      step: [],
      runs: this.#runs,
    }
  }

  /** Everything from here on belongs to this epoch. An older one changes nothing. */
  enter(epoch: number): void {
    if (epoch <= this.#epoch) return
    this.#epoch = epoch
    this.#index = 0
    this.#events = 0
    this.relay?.entered(epoch)
  }

  /**
   * An epoch begins, here or elsewhere. Where the one before was told from elsewhere and its end never came, or where one was never heard
   * of, watchers start over. Whoever takes a run over says so by itself.
   */
  begin(epoch: number): void {
    if (epoch <= this.#epoch) return
    if (this.#running || this.#more || this.#torn || epoch !== this.#epoch + 1) this.skip()
    // Its present step is in the store by now, or will be said again.
    this.#running = false
    this.#more = false
    this.#torn = false
    this.#step.clear()
    this.enter(epoch)
  }

  /** Something was said, or may still be, that nobody tells here: when the next epoch begins, watchers start over. */
  tear(): void {
    this.#torn = true
  }

  /** Watches an epoch that was counted elsewhere, or before. It is counted on from a number that nobody had: the time of day. */
  join(epoch: number, now: number): void {
    if (epoch <= this.#epoch) return
    this.#epoch = epoch
    this.#index = now
    // What is told of it is not its beginning.
    this.#events = 1
  }

  /** A run is at work from here on; its chunks follow what history has up to `seq`. */
  startRun(runId: string, seq: number): void {
    if (this.runId !== runId) this.#runStart = this.#ring.end
    this.runId = runId
    this.#running = true
    this.#lastWord = -1
    this.#runs++
    this.#seq = seq
    this.#committed = seq
    this.#step.clear()
    this.#stepCursor = this.#cursor
    this.#happened({ type: 'run', runId, seq })
  }

  /** A suspended run stays the thread's run, and nobody is at work. `more`: another begins in this epoch. */
  endRun(suspended: boolean, more = false): void {
    if (!suspended) this.runId = undefined
    this.#running = false
    this.#more = more
    this.#step.clear()
    this.#happened({ type: 'rest', suspended, ...(more && { more }) })
  }

  /** What the present step said is said again: everyone starts over from what is stored. */
  startOver(): void {
    this.generation++
    this.#ring.clear()
    this.#index++
    this.#happened({ type: 'anew' })
    this.ring()
  }

  /** What was said up to here was refused: those who come, or come back, begin with a snapshot. Those who are there read on. */
  withdraw(): void {
    this.#ring.withdraw()
    this.#step.clear()
    this.#stepCursor = this.#cursor
    this.#happened({ type: 'withdrawn' })
  }

  /** Something was said that isn't known here: watchers start over from what is stored. */
  skip(): void {
    this.#ring.skip()
    this.#runStart = -1
    this.#skippedAt = this.#cursor
    this.ring()
  }

  /**
   * Nobody is at work on the thread, and the end of this epoch was not heard here: watchers start over from what is stored, and what is still
   * heard of it is no news.
   */
  settle(epoch: number, suspended: boolean, now: number): void {
    if (epoch < this.#epoch) return
    this.endRun(suspended)
    this.skip()
    if (epoch > this.#epoch) this.#index = 0
    this.#epoch = epoch
    this.#index = Math.max(this.#index + 1, now)
    this.#committed = 0
  }

  /** The last row that was heard of; 0 where that is not known. */
  get heard(): number {
    return this.#committed
  }

  /** A commit reached this row. Watchers count it as told once the step's last chunk is out. */
  committed(seq: number | undefined): void {
    if (seq === undefined) return
    this.#committed = seq
    this.#happened({ type: 'committed', seq })
  }

  publish(chunk: Chunk): void {
    chunk.cursor = `${this.#epoch}.${++this.#index}`
    this.#add(chunk, chunk.cursor)
    this.#happened({ type: 'chunk', chunk })
  }

  #happened(event: LiveEvent): void {
    this.#events++
    this.relay?.happened(event)
  }

  #add(chunk: Chunk, cursor: string): void {
    this.#ring.push(chunk)
    if (chunk.type === 'text-delta') {
      if (this.#running) this.#step.add(chunk)
    } else this.#account(chunk, cursor)
    this.ring()
  }

  /** What happened on the thread in another process, in this epoch. */
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

  /** A chunk that was numbered elsewhere. One that was here before changes nothing. */
  #receive(chunk: Chunk): void {
    const { cursor = '0.0' } = chunk
    const { epoch, index } = parseCursor(cursor)
    if (compareCursors({ epoch, index }, { epoch: this.#epoch, index: this.#index }) <= 0) return
    this.#epoch = epoch
    this.#index = index
    this.#add(chunk, cursor)
  }

  /** What is live, for a process that begins to watch: the active run, and what came after a cursor if that is kept. */
  state(after?: string): LiveState {
    const kept = this.#ring.replayFrom
    const wanted = Math.min(this.runStart ?? kept, (after === undefined ? undefined : this.after(after)) ?? this.#ring.end)
    const start = Math.max(wanted, kept, this.#ring.end - stateChunks)
    return {
      ...(this.#resourceId === undefined ? {} : { resourceId: this.#resourceId }),
      epoch: this.#epoch, index: this.#index,
      ...(this.runId === undefined ? {} : { runId: this.runId }),
      running: this.#running,
      seq: this.#seq, committed: this.#committed,
      step: this.#step.chunks(), stepCursor: this.#stepCursor,
      chunks: this.#ring.from(start),
      ...(start > kept ? { before: formatCursor(this.#cursorAt(start - 1)) } : {}),
      whole: this.runStart !== undefined && start <= this.runStart,
    }
  }

  /** Goes on from what another process says is live. Where that doesn't follow from what was seen here, watchers start over. */
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
    if (state.runId !== undefined) this.#lastWord = -1
    this.#running = state.running
    this.#more = false
    this.#runs++
    this.#seq = state.seq
    this.#committed = state.committed
    this.#step.clear()
    for (const chunk of state.step) this.#step.add(chunk)
    this.#stepCursor = state.stepCursor
    this.ring()
  }

  /** What a chunk means for those who come after it. */
  #account(chunk: Chunk, cursor: string): void {
    if (ends.has(chunk.type)) {
      // Whoever looks from here on finds the thread as the store has it.
      this.runId = undefined
      this.#running = false
      this.#step.clear()
      this.#lastWord = this.#ring.end - 1
    } else if (chunk.type === 'start') this.#lastWord = -1
    if (!this.#running) return
    if (boundaries.has(chunk.type)) {
      this.#step.clear()
      this.#seq = this.#committed
      this.#stepCursor = cursor
    } else if (chunk.runId === this.runId) this.#step.add(chunk)
    // What is persisted beside the run is in history already.
  }

  /** Whether this is known to be the thread of this resource. */
  isOf(resourceId: string | undefined): boolean {
    return resourceId === undefined || this.resourceId === resourceId
  }

  /** What a reader that has nothing to make up for gets at a position; undefined when it has, and at the edge. */
  ready(position: number, generation: number): Handed | undefined {
    return position >= this.#ring.first && generation === this.generation && position < this.#ring.end ? this.#handing.at(position, this.#ring.at(position) as Chunk) : undefined
  }

  /** The chunk at a position that is not before `first`; undefined at the edge. */
  at(position: number): Chunk | undefined {
    return this.#ring.at(position)
  }

  /** Resolves at the next chunk, for all who wait with one promise. */
  news(): Promise<void> {
    return this.#news.next()
  }

  /** Makes everyone who waits look again. */
  ring(): void {
    this.#news.ring()
  }

  /** Nothing more is said here: watchers read what there is and end. */
  close(): void {
    this.closed = true
    this.ring()
  }

  /** The position after the place with this cursor; undefined when the ring can't tell what came after it. */
  after(text: string): number | undefined {
    const cursor = parseCursor(text)
    if (compareCursors(cursor, { epoch: this.#epoch, index: this.#index }) === 0) return this.#skippedAt === this.#cursor ? undefined : this.#ring.end
    const kept = this.#ring.replayed(this.generation)
    return this.#begun.positionOf(kept, text) ?? positionAfter(kept, cursor)
  }

  /** The cursor of the place before a position: whoever returns with it reads on from there, or is told by a snapshot. */
  placeOf(position: number): string {
    const before = cursorBefore(this, position)
    if (before === undefined && this.#skippedAt === this.#cursor) return formatCursor({ epoch: 0, index: 0 })
    return before ?? this.#begun.note(this, this.#cursor)
  }

  get #cursor(): string {
    return formatCursor({ epoch: this.#epoch, index: this.#index })
  }

  #cursorAt(position: number): Cursor {
    return parseCursor(this.at(position)?.cursor ?? '0.0')
  }
}
