/** Jobs that name the same records. */
interface Group<Job> {
  readonly key: string
  readonly jobs: Job[]
  started: boolean
  done: Promise<void>
}

/** A group that may share a transaction with others of its kind, and waits for one to begin. */
interface Ready<Job> {
  readonly group: Group<Job>
  readonly kind: string
  readonly like: string | undefined
  resolve(): void
}

/** A transaction is done again for each answer that it waits for; the first statements of so many jobs are sent together. */
const jobsAtOnce = 128
/** Jobs of different groups in one transaction: each of them waits for the locks of all. */
const sharedJobs = 64

/**
 * Orders the writes of this process: those that name a thread run in the order in which they came, one transaction at a time, and those
 * that name the same threads share the next one. Others run beside them, on other connections. Where more wait than may run beside each
 * other, they share transactions: then the disk flushes few commits instead of many.
 */
export class Lanes<Job> {
  readonly #perform: (groups: ReadonlyArray<readonly Job[]>) => Promise<void>
  /** The last group that names a thread. */
  readonly #last = new Map<string, Group<Job>>()
  readonly #running = new Set<Promise<void>>()
  readonly #ready: Array<Ready<Job>> = []
  /** How many transactions with groups that may share one can begin now. */
  #free: number
  #starting = false

  constructor(perform: (groups: ReadonlyArray<readonly Job[]>) => Promise<void>, beside: number) {
    this.#perform = perform
    this.#free = beside
  }

  /** How many groups run or wait. */
  get size(): number {
    return this.#running.size
  }

  /**
   * `kind`: may share a transaction with groups of this kind that name other records. `like`: of those that are alike, many cost little
   * more than one, so that where some have to wait they all share one.
   */
  add(names: ReadonlySet<string>, job: Job, kind?: string, like?: string): void {
    const key = [...[...names].toSorted(), kind ?? ''].join('\n')
    const before = new Set([...names].flatMap((name) => this.#last.get(name) ?? []))
    const [only] = before
    if (only && before.size === 1 && !only.started && only.key === key && only.jobs.length < jobsAtOnce) {
      only.jobs.push(job)
      return
    }
    const group: Group<Job> = { key, jobs: [job], started: false, done: Promise.resolve() }
    group.done = this.#run(group, [...before], kind, like).finally(() => {
      this.#running.delete(group.done)
      for (const name of names) if (this.#last.get(name) === group) this.#last.delete(name)
    })
    this.#running.add(group.done)
    for (const name of names) this.#last.set(name, group)
  }

  async #run(group: Group<Job>, before: ReadonlyArray<Group<Job>>, kind?: string, like?: string): Promise<void> {
    await Promise.all(before.map(({ done }) => done))
    if (kind !== undefined) {
      return new Promise((resolve) => {
        this.#ready.push({ group, kind, like, resolve })
        this.#startSoon()
      })
    }
    // What is asked for in the same turn of the event loop shares the transaction.
    await new Promise<void>((resolve) => setImmediate(resolve))
    group.started = true
    await this.#perform([group.jobs])
  }

  #startSoon(): void {
    if (this.#starting || this.#free === 0 || this.#ready.length === 0) return
    this.#starting = true
    setImmediate(() => {
      this.#starting = false
      while (this.#free > 0 && this.#ready.length > 0) this.#start(this.#takeReady())
    })
  }

  /**
   * As many as each transaction has to do so that none waits, in the order in which they came. Where more wait than may begin, those that
   * are like the first are in its transaction.
   */
  #takeReady(): Array<Ready<Job>> {
    const [first] = this.#ready
    if (!first) return []
    const most = Math.ceil(this.#ready.length / this.#free)
    const like = this.#ready.length > this.#free ? first.like : undefined
    const taken: Array<Ready<Job>> = []
    const left: Array<Ready<Job>> = []
    let jobs = 0
    for (const ready of this.#ready) {
      const isLike = like !== undefined && ready.like === like
      const fits = taken.length === 0 || ((isLike || taken.length < most) && jobs + ready.group.jobs.length <= sharedJobs)
      if (ready.kind !== first.kind || !fits) {
        left.push(ready)
        continue
      }
      taken.push(ready)
      jobs += ready.group.jobs.length
    }
    this.#ready.splice(0, this.#ready.length, ...left)
    return taken
  }

  #start(taken: ReadonlyArray<Ready<Job>>): void {
    this.#free -= 1
    for (const { group } of taken) group.started = true
    void this.#perform(taken.map(({ group }) => group.jobs)).finally(() => {
      this.#free += 1
      for (const { resolve } of taken) resolve()
      this.#startSoon()
    })
  }

  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running)
  }
}
