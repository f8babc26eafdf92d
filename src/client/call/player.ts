import { fromBytes, Resampler } from './resampler.ts'
import { processorNames, type FromPlayer, type ToPlayer } from './worklet.ts'

/** How far an item was played. */
export interface PlayedReport {
  itemId: string
  ms: number
}

/** The item that arrives. */
interface ArrivingItem {
  itemId: string
  resampler: Resampler
  /** How much of it was given to the player, in milliseconds. */
  ms: number
}

/** Plays the items of a session on the device of a page, and reports how much of each the user heard. */
export class Player {
  readonly #context: AudioContext
  readonly #node: AudioWorkletNode
  readonly #report: (report: PlayedReport) => void
  #item: ArrivingItem | undefined
  /** Reports of what is on its way from the player to the ear. */
  readonly #waiting = new Set<ReturnType<typeof setTimeout>>()
  #clears = 0

  /** The code of the worklet is loaded. */
  constructor(context: AudioContext, output: AudioNode, report: (report: PlayedReport) => void) {
    this.#context = context
    this.#report = report
    this.#node = new AudioWorkletNode(context, processorNames.player, { numberOfInputs: 0, outputChannelCount: [1] })
    this.#node.port.addEventListener('message', ({ data }: MessageEvent<FromPlayer>) => this.#onReport(data))
    this.#node.port.start()
    this.#node.connect(output)
  }

  /** An item begins. */
  begin(itemId: string, rate: number): void {
    this.#endItem()
    this.#item = { itemId, resampler: new Resampler(rate, this.#context.sampleRate), ms: 0 }
  }

  /** Samples of 16 bits of an item, from `atMs` on. Those of an item that has not begun, or was cleared, are not played. */
  play(itemId: string, atMs: number, audio: Uint8Array): void {
    const item = this.#item
    if (item?.itemId !== itemId) return
    // Its own count is exact, and that of the session rounded. They differ where sound is missing.
    if (Math.abs(item.ms - atMs) > 20) item.ms = atMs
    this.#give(item, item.resampler.push(fromBytes(audio)))
  }

  /** All of an item is here. */
  end(itemId: string): void {
    if (this.#item?.itemId === itemId) this.#endItem()
  }

  /** Stops the sound at once, and reports how far the user heard it. */
  clear(): void {
    this.#item = undefined
    for (const timer of this.#waiting) clearTimeout(timer)
    this.#waiting.clear()
    this.#tell({ type: 'clear', id: ++this.#clears })
  }

  close(): void {
    for (const timer of this.#waiting) clearTimeout(timer)
    this.#waiting.clear()
    this.#tell({ type: 'close' })
    this.#node.port.close()
    this.#node.disconnect()
  }

  #endItem(): void {
    if (this.#item) this.#give(this.#item, this.#item.resampler.end())
    this.#item = undefined
  }

  #give(item: ArrivingItem, samples: Float32Array): void {
    if (samples.length === 0) return
    const { itemId, ms } = item
    item.ms += (samples.length / this.#context.sampleRate) * 1_000
    this.#tell({ type: 'samples', itemId, ms, samples })
  }

  #tell(message: ToPlayer): void {
    this.#node.port.postMessage(message, [])
  }

  /** From the player to the ear a sound takes a while, which is longest for wireless devices. */
  get #latencyMs(): number {
    const { outputLatency, baseLatency } = this.#context
    return 1_000 * (outputLatency || baseLatency || 0)
  }

  #onReport({ itemId, ms, cleared }: FromPlayer): void {
    if (itemId === undefined) return
    // What was on its way when it was cleared is not heard any more.
    if (cleared !== undefined) return this.#report({ itemId, ms: Math.max(0, ms - this.#latencyMs) })
    const timer = setTimeout(() => {
      this.#waiting.delete(timer)
      this.#report({ itemId, ms })
    }, this.#latencyMs)
    this.#waiting.add(timer)
  }
}
