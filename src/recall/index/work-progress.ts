import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { RecallProgress } from '../../store/contract/recall.ts'

/** The time between two reports to a logger that shows progress. */
const shownEveryMs = 200

interface Work {
  /** What a bar shows. */
  name: string
  /** A line of the log, which also has the numbers as fields. */
  line(progress: RecallProgress): string
  read(): Promise<RecallProgress>
  /** Work on fewer items than this is not reported. */
  least: number
}

/**
 * Reports long work to the logger: a logger that shows progress gets it several times a second, another one a line about every tenth of
 * the work. The first line is a warning, so that it is seen by default: the work takes a while.
 */
export class WorkProgress {
  readonly #work: Work
  readonly #clock: Clock
  readonly #logger: () => Logger | undefined
  #unreported = 0
  #interval: number
  #warned = false
  #shownAt = Number.NEGATIVE_INFINITY
  #isShown = false

  constructor(work: Work, clock: Clock, logger: () => Logger | undefined) {
    this.#work = work
    this.#clock = clock
    this.#logger = logger
    this.#interval = work.least
  }

  /** So many further items are done, and others are not. */
  async add(items: number): Promise<void> {
    const logger = this.#logger()
    this.#unreported += items
    const logs = this.#unreported >= this.#interval
    const shows = logger?.progress !== undefined && this.#clock.now() - this.#shownAt >= shownEveryMs
    if (!logger || !(logs || shows)) return
    const progress = await this.#work.read()
    if (shows) this.#show(logger, progress)
    if (logs) this.#log(logger, progress)
  }

  /** Nothing is left, or the work pauses. */
  end(): void {
    if (!this.#isShown) return
    this.#isShown = false
    this.#logger()?.progress?.(this.#work.name)
  }

  #show(logger: Logger, { done, total }: RecallProgress): void {
    this.#shownAt = this.#clock.now()
    if (!this.#isShown && total - done < this.#work.least) return
    this.#isShown = true
    logger.progress?.(this.#work.name, { done, total })
  }

  #log(logger: Logger, progress: RecallProgress): void {
    this.#unreported = 0
    this.#interval = Math.max(this.#work.least, Math.ceil(progress.total / 10))
    const level = this.#warned || logger.progress ? 'info' : 'warn'
    this.#warned = true
    logger[level](this.#work.line(progress), { ...progress })
  }
}
