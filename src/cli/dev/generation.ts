import { fork, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { inheritedFlags, siblingOf } from '../../base/worker.ts'
import type { CloseOrder, WorkerReport, WorkerTask } from './messages.ts'

interface GenerationEvents {
  onRead(path: string, stamp: string): void
  onReady(ready: Extract<WorkerReport, { type: 'ready' }>): void
  onFailed(failed: Extract<WorkerReport, { type: 'failed' }>): void
  /** It ended although it was not closed. */
  onCrash(how: string): void
}

/** One process with the user's code as it was when the process began. */
export class Generation {
  readonly files = new Set<string>()
  readonly gone: Promise<void>
  readonly #child: ChildProcess
  #state: 'loading' | 'starting' | 'ready' | 'failed' | 'closing' | 'gone' = 'loading'

  constructor(task: WorkerTask, events: GenerationEvents) {
    // What user code prints is no answer of the command, so it goes to standard error.
    this.#child = fork(fileURLToPath(siblingOf(import.meta.url, 'dev-worker')), [JSON.stringify(task)], {
      stdio: ['ignore', 2, 2, 'ipc'], execArgv: inheritedFlags(),
    })
    this.#child.on('message', (report: WorkerReport) => {
      if (report.type === 'reads') {
        this.files.add(report.path)
        events.onRead(report.path, report.stamp)
      } else if (report.type === 'loaded') this.#state = 'starting'
      else if (report.type === 'ready') {
        this.#state = 'ready'
        events.onReady(report)
      } else {
        this.#state = 'failed'
        events.onFailed(report)
      }
    })
    // An order to a process that has ended fails; `exit` reports the end.
    this.#child.on('error', () => {})
    this.gone = new Promise((resolve) => {
      this.#child.once('exit', (code, signal) => {
        const wasExpected = this.#state === 'closing' || this.#state === 'failed'
        this.#state = 'gone'
        resolve()
        if (!wasExpected) events.onCrash(signal ?? `code ${code}`)
      })
    })
  }

  /** Its module is still being evaluated: it has no Heed that would leave something. */
  get isLoading(): boolean {
    return this.#state === 'loading'
  }

  get isStarting(): boolean {
    return this.#state === 'loading' || this.#state === 'starting'
  }

  /** Ends it: at the next boundary of its runs, or at once. */
  async close(at: CloseOrder['at']): Promise<void> {
    if (this.#state === 'ready') {
      this.#state = 'closing'
      this.#child.send({ type: 'close', at } satisfies CloseOrder)
    } else if (this.isStarting) this.kill()
    await this.gone
  }

  kill(): void {
    if (this.#state === 'gone') return
    this.#state = 'closing'
    this.#child.kill('SIGKILL')
  }
}
