import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { Violation } from '../checks/evidence.ts'
import type { LivesPlan, Order } from './child.ts'
import type { Op } from './client.ts'

/** How long a process may take for a close, or for what it is asked to do, before that counts as a hang. */
export const hangMs = 20_000

/** A process of a round, as its parent sees it. */
export class Process {
  readonly name: string
  readonly plan: LivesPlan
  readonly gone: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  readonly #child: ChildProcess
  readonly #words = new Set<string>()
  readonly #listeners = new Set<(message: unknown) => void>()
  readonly #problems: Violation[]
  #number = 0

  constructor(program: string, plan: LivesPlan, problems: Violation[]) {
    this.plan = plan
    this.name = `${plan.slot}.${plan.life}`
    this.#problems = problems
    this.#child = spawn(process.execPath, ['--no-warnings', program, JSON.stringify(plan)], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
    this.gone = once(this.#child, 'exit').then(([code, signal]) => ({ code: code as number | null, signal: signal as NodeJS.Signals | null }))
    let written = ''
    this.#child.stderr?.on('data', (text: Buffer) => (written = `${written}${text.toString()}`.slice(-2_000)))
    this.#child.once('close', () => {
      if (written !== '') problems.push({ promise: 'harness', what: `noTrouble: process ${this.name} wrote: ${written}` })
    })
    this.#child.on('message', (message) => {
      if (typeof message === 'string') this.#words.add(message)
      for (const listener of this.#listeners) listener(message)
    })
  }

  get alive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  signal(signal: NodeJS.Signals): boolean {
    return this.alive && this.#child.kill(signal)
  }

  send(order: Order): void {
    if (this.#child.connected) this.#child.send(order, () => {})
  }

  /** Resolves when the process has sent this word, or is gone. */
  async said(word: string): Promise<void> {
    if (this.#words.has(word)) return
    await this.#heard((message) => message === word)
  }

  /** Asks it to do something, and resolves with the answer. One that never comes is a violation. */
  async ask(op: Op): Promise<unknown> {
    const number = ++this.#number
    this.send({ number, op })
    const answer = await this.#heard((message) => typeof message === 'object' && (message as { number?: number }).number === number, `${JSON.stringify(op)} of ${this.name}`)
    return (answer as { answer?: unknown } | undefined)?.answer
  }

  async #heard(isWanted: (message: unknown) => boolean, what?: string): Promise<unknown> {
    const { promise, resolve } = Promise.withResolvers<unknown>()
    const listener = (message: unknown) => {
      if (isWanted(message)) resolve(message)
    }
    this.#listeners.add(listener)
    const limit = setTimeout(() => {
      if (what !== undefined) this.#problems.push({ promise: 'R11.2', what: `nothingHangs: ${what} was not answered in ${hangMs} ms` })
      resolve(undefined)
    }, what === undefined ? 3 * hangMs : hangMs)
    const found = await Promise.race([promise, this.gone.then(() => undefined)])
    clearTimeout(limit)
    this.#listeners.delete(listener)
    return found
  }

  /** Closes its Heed and ends it. A close that does not resolve is a violation. */
  async close(): Promise<boolean> {
    this.send('stop')
    const limit = setTimeout(() => {
      this.#problems.push({ promise: 'R11.4', what: `closesInTime: the close of ${this.name} did not resolve in ${hangMs} ms` })
      this.signal('SIGKILL')
    }, hangMs)
    const { code, signal } = await this.gone
    clearTimeout(limit)
    if (code !== 0 && signal !== 'SIGKILL') this.#problems.push({ promise: 'harness', what: `noTrouble: ${this.name} was asked to end and ended with ${code ?? signal}` })
    return code === 0
  }
}
