import type { BusMessage } from './message.ts'

/**
 * How the processes on one store speak to each other: doorbells, and the chunks of threads that are watched elsewhere.
 *
 * Nothing rests on it. A bus may lose what it carries, and truth is only ever in the store: whoever hears a bell looks there, and a slow
 * sweep finds what no bell told. What every implementation keeps (its conformance suite is `busConformance` in `heed/testing`):
 * - What one member says, another hears in that order, and at most once.
 * - Nobody hears itself, nor what is addressed to somebody else.
 * - Saying something takes no time and never fails. What waits to be carried is bounded; beyond that it is lost.
 * - A member that lost something is told so, as far as the bus knows.
 */
export interface Bus {
  /** Takes a seat under a name that nobody else has. What is said from here on is heard until `leave`. */
  join(member: string, listener: BusListener): Promise<Seat>
}

export interface BusListener {
  /** Must not throw. */
  hear(message: BusMessage, from: string): void
  /** Something that was said since `join` didn't arrive, and it is not known what. */
  lost(): void
  /**
   * Nobody can be reached from here, and others may be there: what is said is lost until `reached`, and the bus tries again by itself. Told
   * once each time.
   */
  unreachable?(error: unknown): void
  reached?(): void
  /** Whether somebody here waits for what others say. A bus that has to ask for news asks more often then. */
  attentive(): boolean
}

export interface Seat {
  /** False when it is certain that nobody else is there: then nothing needs to be said. True also where that is not known. */
  readonly company: boolean
  /** True while nothing that is said can reach anybody, although others may be there. Absent where that can't be. */
  readonly mute?: boolean
  /**
   * Resolves when those who were there first had a moment to answer a `hello`, which is soon whatever they do. Absent where everybody hears at
   * once.
   */
  met?(): Promise<void>
  /** To one member, or to all others. */
  say(message: BusMessage, to?: string): void
  /** Resolves when what was said can be heard by whoever listens, or is lost. */
  settle(): Promise<void>
  /** Hears now what can be heard, where the bus can tell without waiting: before something is done that depends on it. */
  listen(): void
  /** Resolves when what was said is on its way. */
  leave(): Promise<void>
}
