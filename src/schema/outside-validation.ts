import type { JSONSchema7 } from '@ai-sdk/provider'
import type { Worker } from 'node:worker_threads'
import { HeedError } from '../base/errors.ts'
import { openWorker } from '../base/worker.ts'
import type { Validation } from './schema.ts'

/** How long one validation may take, its compilation included. The processor may be busy with other work. */
const deadlineMs = 5_000
/** Of all senders, and of one. */
const maxWaiting = 1_000
const maxWaitingOfOne = 100
/** One of them is free for the others while a sender uses the time of the other up. */
const maxThreads = 2
const heapMb = 64

interface WaitingValidation {
  schema: JSONSchema7
  value: unknown
  resolve(validation: Validation): void
  reject(error: unknown): void
}

export type ValidationAnswer = { validation: Validation } | { error: string }

/**
 * Validates with schemas of callers outside this process, in worker threads. Each sender has a queue of its own and at most one validation
 * in work; the senders take turns. A validation that exceeds its deadline or its memory fails alone: its thread ends, and the next one
 * begins in another.
 */
export class OutsideValidation {
  /** By sender, in the order of their turns. */
  readonly #waiting = new Map<string, WaitingValidation[]>()
  /** The senders whose validations are in work. */
  readonly #served = new Set<string>()
  readonly #free: SchemaThread[]
  #count = 0

  constructor(threads: readonly SchemaThread[] = Array.from({ length: maxThreads }, () => new ValidationThread())) {
    this.#free = [...threads]
  }

  validate(sender: string, schema: JSONSchema7, value: unknown): Promise<Validation> {
    const own = this.#waiting.get(sender) ?? []
    if (this.#count >= maxWaiting || own.length >= maxWaitingOfOne) return Promise.reject(tooMany(own.length))
    return new Promise((resolve, reject) => {
      own.push({ schema, value, resolve, reject })
      this.#waiting.set(sender, own)
      this.#count++
      this.#begin()
    })
  }

  /** Begins what may begin: the next sender that has no validation in work, while a worker thread is free. */
  #begin(): void {
    for (const [sender, own] of this.#waiting) {
      if (this.#served.has(sender)) continue
      // The thread that was used last has its modules, and the schemas of the last runs.
      const thread = this.#free.pop()
      if (!thread) return
      const next = own.shift() as WaitingValidation
      if (own.length === 0) this.#waiting.delete(sender)
      this.#count--
      this.#served.add(sender)
      void this.#work(thread, sender, next)
    }
  }

  async #work(thread: SchemaThread, sender: string, { schema, value, resolve, reject }: WaitingValidation): Promise<void> {
    try {
      resolve(await thread.validate(schema, value))
    } catch (error) {
      reject(error)
    }
    this.#served.delete(sender)
    this.#free.push(thread)
    // Its next turn is after those of the others.
    const own = this.#waiting.get(sender)
    if (own && this.#waiting.delete(sender)) this.#waiting.set(sender, own)
    this.#begin()
  }
}

interface SchemaThread {
  validate(schema: JSONSchema7, value: unknown): Promise<Validation>
}

/** One worker thread, which is started when it is first needed and replaced where it ended. */
class ValidationThread implements SchemaThread {
  #worker: Promise<Worker> | undefined

  async validate(schema: JSONSchema7, value: unknown): Promise<Validation> {
    this.#worker ??= startWorker()
    this.#worker.catch(() => (this.#worker = undefined))
    const worker = await this.#worker
    const answer = await ask(worker, schema, value)
    if (answer && 'validation' in answer) return answer.validation
    if (answer) throw new HeedError('invalid_schema', `JSON Schema can't be compiled: ${answer.error}`)
    this.#worker = undefined
    await worker.terminate()
    const message = `The validation with a schema took more than ${deadlineMs} ms or ${heapMb} MB. Send a simpler schema.`
    throw new HeedError('invalid_schema', message)
  }
}

/** The answer of the worker thread; undefined when it ended, or did not answer in time. */
function ask(worker: Worker, schema: JSONSchema7, value: unknown): Promise<ValidationAnswer | undefined> {
  return new Promise((resolve) => {
    const done = (answered: ValidationAnswer | undefined) => {
      clearTimeout(timer)
      worker.off('message', done).off('exit', failed)
      worker.unref()
      resolve(answered)
    }
    const failed = () => done(undefined)
    const timer = setTimeout(failed, deadlineMs)
    worker.on('message', done).on('exit', failed)
    worker.ref()
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
    worker.postMessage({ schema, value })
  })
}

/** Resolves when the worker thread has loaded its modules, so that a deadline does not include that. */
async function startWorker(): Promise<Worker> {
  const worker = openWorker(import.meta.url, 'validation-worker', { resourceLimits: { maxOldGenerationSizeMb: heapMb } })
  // An error of the worker thread, such as that of its memory, ends it.
  worker.on('error', () => {})
  await new Promise<void>((resolve, reject) => {
    const ended = (code: number) => reject(new HeedError('invalid_schema', `The thread of validations ended with code ${code}. Try again.`))
    worker.once('exit', ended)
    worker.once('message', () => {
      worker.off('exit', ended)
      resolve()
    })
  })
  worker.unref()
  return worker
}

function tooMany(own: number): HeedError {
  const message = `${own >= maxWaitingOfOne ? `${own} of your` : maxWaiting} validations wait. Try again later.`
  return new HeedError('rate_limited', message, { retryable: true, details: { retryAfterMs: deadlineMs } })
}

const validation = new OutsideValidation()

/** `sender`: whose schema it is. The validations of one sender delay those of others by no more than one at a time. */
export function validateOutside(sender: string, schema: JSONSchema7, value: unknown): Promise<Validation> {
  return validation.validate(sender, schema, value)
}
