/** When something was said, and by whom. */
export interface Said {
  role: string
  createdAt: number
}

/** Messages that were said, by whatever threads have them: a copy of a thread has what was said in another, at the same time and in the same words. */
export class Copies {
  readonly #texts = new Map<string, Array<() => string>>()

  /** Its text is only asked for when something else was said at that time. */
  add(said: Said, text: () => string): void {
    const there = this.#texts.get(keyOf(said))
    if (there) there.push(text)
    else this.#texts.set(keyOf(said), [text])
  }

  has(said: Said, text: () => string): boolean {
    const there = this.#texts.get(keyOf(said))
    if (!there) return false
    const own = text()
    return there.some((other) => other() === own)
  }
}

function keyOf({ role, createdAt }: Said): string {
  return `${createdAt} ${role}`
}
