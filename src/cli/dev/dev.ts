import { relative } from 'node:path'
import type { ServeArguments } from '../serve/start.ts'
import { listenFailure, requestedPort } from '../serve/address.ts'
import { nextSteps } from '../serve/announcement.ts'
import { findUserFile, shownFile } from '../serve/user-module.ts'
import { exitCodes, Failure, reportFailure, type ExitCode } from '../shell/failure.ts'
import type { Output } from '../shell/output.ts'
import { WatchedFiles } from './file-stamps.ts'
import { FrontDoor } from './front-door.ts'
import { Generation } from './generation.ts'
import type { WorkerReport } from './messages.ts'

/** Serves the Heed of a file, and loads it again when one of the files that it loaded changes. */
export async function dev(args: ServeArguments & { debug: boolean }, output: Output): Promise<ExitCode> {
  const requested = requestedPort(args.port)
  const file = findUserFile(args.file)
  const host = args.host ?? '127.0.0.1'
  const door = new FrontDoor()
  const port = await door.listen(host, requested ?? 4111, requested !== undefined).catch((error: unknown) => {
    throw listenFailure(error, requested ?? 4111)
  })
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}`
  const { envFile, debug: isDebug } = args
  const supervisor = new Supervisor({ file, host, url, door, output, isDebug, ...(envFile === undefined ? {} : { envFile }) })
  supervisor.reload()
  const isSecond = await untilSignal(output, () => supervisor.kill())
  await supervisor.close()
  return isSecond() ? exitCodes.interrupted : exitCodes.done
}

/** Resolves at the first SIGTERM or SIGINT. At the second one, `onSecond` is called. */
function untilSignal(output: Output, onSecond: () => void): Promise<() => boolean> {
  let count = 0
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (++count > 1) return onSecond()
        output.note('closing (once more: end at once)')
        resolve(() => count > 1)
      })
    }
  })
}

interface SupervisorOptions {
  file: string
  host: string
  url: string
  envFile?: string
  door: FrontDoor
  output: Output
  isDebug: boolean
}

/**
 * Has none of the user's code. For each change it starts a process with the new code beside the one with the old code, on the same storage,
 * and closes the old one when the new one is ready: runs continue there. Code that does not load leaves the old process as it is.
 */
class Supervisor {
  readonly #options: SupervisorOptions
  readonly #files: WatchedFiles
  readonly #closing = new Set<Generation>()
  #current: Generation | undefined
  #next: Generation | undefined
  /** A file changed while the next process was starting: when that one has started, another one follows. */
  #isOutdated = false
  #hasWarned = false
  #count = 0
  #isClosed = false

  constructor(options: SupervisorOptions) {
    this.#options = options
    this.#files = new WatchedFiles((paths) => this.#onChange(paths))
  }

  reload(): void {
    if (this.#isClosed) return
    const { file, host, envFile } = this.#options
    const begun = Date.now()
    const generation = new Generation({ file, host, ...(envFile === undefined ? {} : { envFile }) }, {
      onRead: (path, stamp) => this.#files.add(path, stamp),
      onReady: (ready) => this.#onReady(generation, ready, Date.now() - begun),
      onFailed: (failed) => this.#onFailed(generation, failed),
      onCrash: (how) => this.#onCrash(generation, how),
    })
    this.#next = generation
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#files.close()
    const all = this.#all()
    await Promise.all(all.map((generation) => generation.close('now')))
    await this.#options.door.close()
  }

  kill(): void {
    for (const generation of this.#all()) generation.kill()
  }

  #all(): Generation[] {
    return [...this.#closing, this.#current, this.#next].filter((generation) => generation !== undefined)
  }

  #onChange(paths: string[]): void {
    const { output } = this.#options
    output.note(`changed: ${paths.map((path) => relative(process.cwd(), path)).join(', ')}`)
    const next = this.#next
    if (!next?.isStarting) return this.reload()
    if (!next.isLoading) return void (this.#isOutdated = true)
    next.kill()
    this.reload()
  }

  #onReady(generation: Generation, ready: Extract<WorkerReport, { type: 'ready' }>, tookMs: number): void {
    const { port, agents, prefix, studioPath, forgets } = ready
    const { door, output, url, file } = this.#options
    door.pointTo(port)
    const before = this.#current
    this.#current = generation
    this.#next = undefined
    if (before) this.#retire(before)
    this.#files.retain(generation.files)
    const studio = studioPath === undefined ? {} : { studio: `${url}${studioPath}` }
    const facts = { url, api: `${url}${prefix}`, ...studio, file: shownFile(file), agents, pid: process.pid }
    if (this.#count++ === 0) {
      output.note(`serving ${shownFile(file)}: ${agents.length === 0 ? 'no agents' : `agents ${agents.join(', ')}`}`)
      output.answer(url, { type: 'ready', ...facts })
      if (studioPath !== undefined) output.note(`Studio: ${url}${studioPath}`)
      output.note(nextSteps(url, agents))
    } else output.answer(`reloaded in ${tookMs} ms`, { type: 'reloaded', ...facts, tookMs })
    if (forgets && !this.#hasWarned) {
      this.#hasWarned = true
      output.warn("the storage is in memory: each reload forgets its threads. A file keeps them: url: 'file:./heed.db'")
    }
    if (!this.#isOutdated) return
    this.#isOutdated = false
    this.reload()
  }

  #retire(generation: Generation): void {
    this.#closing.add(generation)
    void generation.close('boundary').then(() => this.#closing.delete(generation))
  }

  #onFailed(generation: Generation, { message, options, stack }: Extract<WorkerReport, { type: 'failed' }>): void {
    if (generation !== this.#next) return
    const { door, output, isDebug } = this.#options
    const failure = new Failure(exitCodes.failed, message, options)
    if (stack !== undefined) failure.stack = stack
    process.stderr.write(`${reportFailure(failure, { command: 'dev', isJSON: output.isJSON, isDebug })}\n`)
    output.note(this.#current ? 'the code before stays in use; save the file to try again' : 'save the file to try again')
    this.#next = undefined
    if (!this.#current) door.pointNowhere()
  }

  #onCrash(generation: Generation, how: string): void {
    if (generation !== this.#current && generation !== this.#next) return
    const { door, output } = this.#options
    output.warn(`the process with your code ended (${how}); save a file to start it again`)
    if (generation === this.#next) this.#next = undefined
    else this.#current = undefined
    if (!this.#current) door.pointNowhere()
  }
}
