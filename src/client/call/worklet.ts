/** The names of the two processors. */
export const processorNames = { microphone: 'heed-microphone', player: 'heed-player' } as const

/** What is posted to the player. `ms`: where the samples stand in their item. */
export type ToPlayer =
  | { type: 'samples'; itemId: string; ms: number; samples: Float32Array }
  | { type: 'clear'; id: number }
  | { type: 'close' }

/** What the player says: how far an item was given to the device, by the clock of the sound. `cleared` answers `clear`. */
export interface FromPlayer {
  itemId?: string
  ms: number
  cleared?: number
}

/**
 * The code of the thread that makes sound, as a module of JavaScript. The microphone posts blocks of about 20 ms. The player plays what
 * it is given, one item after the other, and reports how far it is: every 50 ms, at the end of each item, when it has nothing more, and
 * when it is cleared. It forgets at once what it had not played.
 */
export const voiceCallWorklet = `
class Microphone extends AudioWorkletProcessor {
  constructor() {
    super()
    this.size = Math.round(sampleRate / 50)
    this.block = new Float32Array(this.size)
    this.filled = 0
    this.open = true
    this.port.onmessage = () => { this.open = false }
  }
  process([[samples]]) {
    if (!samples) return this.open
    for (let at = 0; at < samples.length;) {
      const part = samples.subarray(at, at + this.size - this.filled)
      this.block.set(part, this.filled)
      at += part.length
      this.filled += part.length
      if (this.filled === this.size) {
        this.port.postMessage(this.block, [this.block.buffer])
        this.block = new Float32Array(this.size)
        this.filled = 0
      }
    }
    return this.open
  }
}

class Player extends AudioWorkletProcessor {
  constructor() {
    super()
    this.queue = []
    this.itemId = undefined
    this.ms = 0
    this.reported = 0
    this.sounds = false
    this.open = true
    this.port.onmessage = ({ data }) => {
      if (data.type === 'samples') this.queue.push({ itemId: data.itemId, ms: data.ms, samples: data.samples, at: 0 })
      else if (data.type === 'close') this.open = false
      else {
        this.queue = []
        this.sounds = false
        this.report({ cleared: data.id })
      }
    }
  }
  report(more) {
    this.reported = currentTime
    this.port.postMessage({ itemId: this.itemId, ms: this.ms, ...more })
  }
  process(_, [[output]]) {
    let at = 0
    while (at < output.length && this.queue.length > 0) {
      const head = this.queue[0]
      if (head.itemId !== this.itemId) {
        if (this.itemId !== undefined) this.report()
        this.itemId = head.itemId
      }
      const part = head.samples.subarray(head.at, head.at + output.length - at)
      output.set(part, at)
      at += part.length
      head.at += part.length
      this.ms = head.ms + (head.at / sampleRate) * 1000
      if (head.at === head.samples.length) this.queue.shift()
    }
    const sounds = at > 0
    if (sounds !== this.sounds || (sounds && currentTime - this.reported >= 0.05)) {
      this.sounds = sounds
      this.report()
    }
    return this.open
  }
}

registerProcessor('${processorNames.microphone}', Microphone)
registerProcessor('${processorNames.player}', Player)
`
