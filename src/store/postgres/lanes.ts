/** Jobs that one transaction does together. */
interface Group<Job> {
  readonly key: string
  readonly jobs: Job[]
  started: boolean
  done: Promise<void>
}

/** A transaction is done again for each answer that it waits for; the first statements of so many jobs are sent together. */
const jobsAtOnce = 128

/**
 * Orders the writes of this process: those that name a thread run in the order in which they came, one transaction at a time, and those
 * that name the same threads share the next one. Others run beside them, on another connection.
 */
export class Lanes<Job> {
  readonly #perform: (jobs: readonly Job[]) => Promise<void>
  /** The last group that names a thread. */
  readonly #last = new Map<string, Group<Job>>()
  readonly #running = new Set<Promise<void>>()

  constructor(perform: (jobs: readonly Job[]) => Promise<void>) {
    this.#perform = perform
  }

  /** How many groups run or wait. */
  get size(): number {
    return this.#running.size
  }

  add(names: ReadonlySet<string>, job: Job): void {
    const key = [...names].toSorted().join('\n')
    const before = new Set([...names].flatMap((name) => this.#last.get(name) ?? []))
    const [only] = before
    if (only && before.size === 1 && !only.started && only.key === key && only.jobs.length < jobsAtOnce) {
      only.jobs.push(job)
      return
    }
    const group: Group<Job> = { key, jobs: [job], started: false, done: Promise.resolve() }
    group.done = this.#run(group, [...before]).finally(() => {
      this.#running.delete(group.done)
      for (const name of names) if (this.#last.get(name) === group) this.#last.delete(name)
    })
    this.#running.add(group.done)
    for (const name of names) this.#last.set(name, group)
  }

  async #run(group: Group<Job>, before: ReadonlyArray<Group<Job>>): Promise<void> {
    await Promise.all(before.map(({ done }) => done))
    // What is asked for in the same turn of the event loop shares the transaction.
    await new Promise<void>((resolve) => setImmediate(resolve))
    group.started = true
    await this.#perform(group.jobs)
  }

  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running)
  }
}
