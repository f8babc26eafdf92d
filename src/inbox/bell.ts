/** As many in one turn of the event loop; the sweep of the others finds the rest. */
const most = 1_000

/** Tells of inboxes that changed, once for all that change in one turn of the event loop. */
export class ChangeBell {
  readonly #tell: (resourceIds: string[]) => void
  readonly #changed = new Set<string>()
  #immediate: NodeJS.Immediate | undefined

  constructor(tell: (resourceIds: string[]) => void) {
    this.#tell = tell
  }

  ring(resourceIds: readonly string[]): void {
    for (const resourceId of resourceIds) if (this.#changed.size < most) this.#changed.add(resourceId)
    this.#immediate ??= setImmediate(() => {
      this.#immediate = undefined
      const changed = [...this.#changed]
      this.#changed.clear()
      this.#tell(changed)
    })
  }

  close(): void {
    if (this.#immediate) clearImmediate(this.#immediate)
    this.#immediate = undefined
  }
}
