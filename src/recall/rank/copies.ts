/** The fields of a message that its copy in a cloned thread shares. */
export interface MessageStamp {
  role: string
  createdAt: number
}

/** A set of messages that recognises copies: a cloned thread has messages of the same role, time and text as its source. */
export class Copies {
  readonly #texts = new Map<string, Array<() => string>>()

  /** `text` is only called when another message has the same role and time. */
  add(stamp: MessageStamp, text: () => string): void {
    const key = stampKey(stamp)
    const texts = this.#texts.get(key)
    if (texts) texts.push(text)
    else this.#texts.set(key, [text])
  }

  has(stamp: MessageStamp, text: () => string): boolean {
    const texts = this.#texts.get(stampKey(stamp))
    if (!texts) return false
    const own = text()
    return texts.some((other) => other() === own)
  }
}

function stampKey({ role, createdAt }: MessageStamp): string {
  return `${createdAt} ${role}`
}
