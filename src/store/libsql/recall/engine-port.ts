import { Worker } from 'node:worker_threads'
import { revived } from '../bulk.ts'
import type { Connection } from '../connection.ts'
import { RecallEngine, type EngineCall } from './engine.ts'
import type { EngineAnswer, EngineRequest } from './engine-worker.ts'

type Arguments<Call extends EngineCall> = Parameters<RecallEngine[Call]>
type Answer<Call extends EngineCall> = ReturnType<RecallEngine[Call]>

/** An engine, wherever it runs. */
export interface EnginePort {
  ask<Call extends EngineCall>(call: Call, ...args: Arguments<Call>): Promise<Answer<Call>>
  close(): Promise<void>
}

export async function openEngine(connection: Connection): Promise<EnginePort> {
  if (connection.path !== undefined) return new WorkerEngine(connection.path)
  const { besideMessages } = await import('./databases.ts')
  const engine = new RecallEngine(besideMessages(connection.database))
  return {
    async ask(call, ...args) {
      const act = engine[call] as (...given: typeof args) => never
      return act.apply(engine, args)
    },
    close: async () => engine.close(),
  }
}

interface Waiting {
  resolve(result: unknown): void
  reject(error: unknown): void
}

/** In a thread of its own, which keeps the process alive only while somebody waits for an answer. */
class WorkerEngine implements EnginePort {
  readonly #worker: Worker
  readonly #waiting = new Map<number, Waiting>()
  readonly #ended: Promise<unknown>
  #asked = 0
  #failure: unknown

  constructor(path: string) {
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
    this.#worker = new Worker(new URL(`./engine-worker.${extension}`, import.meta.url), { workerData: { path } })
    this.#worker.unref()
    this.#worker.on('message', (answer: EngineAnswer) => this.#settle(answer))
    this.#worker.once('error', (error) => this.#fail(error))
    this.#ended = new Promise((resolve) => {
      this.#worker.once('exit', (code) => {
        this.#fail(new Error(`the thread of the index ended with ${code}`))
        resolve(code)
      })
    })
  }

  ask<Call extends EngineCall>(call: Call, ...args: Arguments<Call>): Promise<Answer<Call>> {
    if (this.#failure) return Promise.reject(this.#failure)
    return new Promise((resolve, reject) => {
      const id = ++this.#asked
      this.#waiting.set(id, { resolve: (result) => resolve(result as Answer<Call>), reject })
      if (this.#waiting.size === 1) this.#worker.ref()
      this.#post({ id, call, args })
    })
  }

  async close(): Promise<void> {
    if (!this.#failure) this.#post({ id: 0, call: 'close', args: [] })
    this.#worker.ref()
    await this.#ended
  }

  #post(request: EngineRequest): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    this.#worker.postMessage(request)
  }

  #settle(answer: EngineAnswer): void {
    const waiting = this.#waiting.get(answer.id)
    this.#waiting.delete(answer.id)
    if (this.#waiting.size === 0) this.#worker.unref()
    if ('error' in answer) waiting?.reject(revived(answer.error))
    else waiting?.resolve(answer.result)
  }

  #fail(error: unknown): void {
    this.#failure ??= error
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }
}
