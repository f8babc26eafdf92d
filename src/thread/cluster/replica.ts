import type { BusMessage } from '../../bus/message.ts'
import type { LiveThread } from '../watch/live.ts'

type Events = Extract<BusMessage, { kind: 'events' }>
type State = Extract<BusMessage, { kind: 'state' }>

/**
 * A thread that is watched here and may run elsewhere: what is told from there is followed, number by number. Where something is
 * missing, watchers start over from a snapshot, or the runner is asked.
 */
export class Replica {
  readonly live: LiveThread
  /** How many watch it here. */
  watchers = 0
  /** Where the stream comes from that is followed, in which epoch, and the number that comes next. */
  #from: string | undefined
  #epoch = 0
  #next = 0
  /** The runner didn't answer: what it says later doesn't follow from what was seen. */
  #torn = false
  /** The runner was asked and has not answered. */
  #asked = false
  /** Which epoch the store had, and what was heard, when the two last differed. */
  #missing: string | undefined
  /** What the store had when nobody could tell. */
  #found: string | undefined
  #synced: PromiseWithResolvers<void> | undefined

  constructor(live: LiveThread) {
    this.live = live
  }

  get asked(): boolean {
    return this.#asked
  }

  /** Resolves when what another process says is followed here. */
  synced(): Promise<void> {
    this.#synced ??= Promise.withResolvers()
    return this.#synced.promise
  }

  /** Nobody told what should have been told. */
  tear(): void {
    this.#torn = true
    this.#asked = false
  }

  /** Whether the store has something else than when this was last asked. */
  found(state: string): boolean {
    const changed = this.#found !== state
    this.#found = state
    return changed
  }

  /** What ended an epoch may still be on its way: it counts as missed when the next look finds nothing more heard. */
  waitedInVain(epoch: number): boolean {
    const { live } = this
    const at = `${epoch} ${live.epoch}.${live.index}`
    const again = this.#missing === at
    this.#missing = again ? undefined : at
    return again
  }

  /** This process speaks for the thread from here on. */
  mend(): void {
    if (this.#torn) this.live.tear()
    this.#torn = false
    this.#asked = false
  }

  /** Answers whether `from` has to be asked, because something is missing. */
  hear({ epoch, first, events, resourceId }: Events, from: string): boolean {
    const { live } = this
    if (epoch < live.epoch) return false
    const begins = first === 1 && epoch > live.epoch
    if (!begins && (from !== this.#from || epoch !== this.#epoch || first !== this.#next)) return this.#missed(epoch, first)
    // What was told by a snapshot meanwhile would be told again, and what was asked for and never came is left out.
    if (this.#torn || (begins && this.#asked)) live.skip()
    this.#torn = false
    if (begins) {
      if (resourceId !== undefined) live.resourceId = resourceId
      live.begin(epoch)
      this.#at(from, epoch)
    }
    for (const event of events) live.follow(event)
    this.#next = first + events.length
    this.#settle()
    return false
  }

  adopt({ number, state }: State, from: string): void {
    if (state.epoch < this.live.epoch) return
    if (this.#torn) this.live.skip()
    this.live.adopt(state)
    this.#at(from, state.epoch)
    this.#next = number + 1
    this.#settle()
  }

  #at(from: string, epoch: number): void {
    this.#from = from
    this.#epoch = epoch
    this.#torn = false
    this.#asked = false
  }

  #settle(): void {
    this.#synced?.resolve()
    this.#synced = undefined
  }

  #missed(epoch: number, first: number): boolean {
    // It was told, and is in what is followed by now; or it is of an event that was over as watching began.
    if (epoch === this.#epoch && first < this.#next) return false
    if (first === 1 && this.#from === undefined) return false
    if (this.#asked) return false
    this.#asked = true
    return true
  }
}
