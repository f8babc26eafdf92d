import type { PromptHead } from '../../contract/threads.ts'
import { headKnownMs } from './steps.ts'

/** More are forgotten: they are stored again, which has no effect. */
const maxKnown = 2_000

/** The heads of prompts that this process has stored within the last hour. The database removes none that was used within a day. */
export class KnownHeads {
  readonly #since = new Map<string, number>()

  /** The head without the texts that the database has. */
  withoutKnown(head: PromptHead, now: number): PromptHead {
    if (head.text === undefined) return head
    const { hash, text, tools } = head
    const toolsKnown = this.#knows(tools.hash, now)
    if (toolsKnown && this.#knows(hash, now)) return { hash, tools: { hash: tools.hash } }
    return toolsKnown ? { hash, text, tools: { hash: tools.hash } } : head
  }

  /** Call after the commit that stored it. */
  add({ hash, text, tools }: PromptHead, now: number): void {
    if (this.#since.size >= maxKnown) this.#since.clear()
    if (text !== undefined) this.#since.set(hash, now)
    if (tools.text !== undefined) this.#since.set(tools.hash, now)
  }

  clear(): void {
    this.#since.clear()
  }

  #knows(hash: string, now: number): boolean {
    const age = now - (this.#since.get(hash) ?? -Infinity)
    return age >= 0 && age < headKnownMs
  }
}
