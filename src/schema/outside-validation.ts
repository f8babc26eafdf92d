import type { JSONSchema7 } from '@ai-sdk/provider'
import type { Worker } from 'node:worker_threads'
import { HeedError } from '../base/errors.ts'
import { openWorker } from '../base/worker.ts'
import type { Validation } from './schema.ts'

/** How long one validation may take, its compilation included. */
const deadlineMs = 2_000
const maxWaiting = 1_000
const heapMb = 64

interface WaitingValidation {
  schema: JSONSchema7
  value: unknown
  resolve(validation: Validation): void
  reject(error: unknown): void
}

export type ValidationAnswer = { validation: Validation } | { error: string }

/**
 * Validates with schemas of callers outside this process, in a worker thread, one after the other. A validation that exceeds its deadline
 * or its memory fails alone: the thread ends, and the next one begins in another.
 */
class OutsideValidation {
  readonly #waiting: WaitingValidation[] = []
  #worker: Promise<Worker> | undefined
  #busy = false

  validate(schema: JSONSchema7, value: unknown): Promise<Validation> {
    if (this.#waiting.length >= maxWaiting) {
      const message = `${maxWaiting} validations wait. Try again later.`
      return Promise.reject(new HeedError('rate_limited', message, { retryable: true, details: { retryAfterMs: deadlineMs } }))
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ schema, value, resolve, reject })
      if (!this.#busy) void this.#work()
    })
  }

  async #work(): Promise<void> {
    this.#busy = true
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
      try {
        next.resolve(await this.#ask(next))
      } catch (error) {
        next.reject(error)
      }
    }
    this.#busy = false
  }

  async #ask({ schema, value }: WaitingValidation): Promise<Validation> {
    this.#worker ??= startWorker()
    this.#worker.catch(() => (this.#worker = undefined))
    const worker = await this.#worker
    const answer = await new Promise<ValidationAnswer | undefined>((resolve) => {
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
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
      worker.postMessage({ schema, value })
    })
    if (answer && 'validation' in answer) return answer.validation
    if (answer) throw new HeedError('invalid_schema', `JSON Schema can't be compiled: ${answer.error}`)
    this.#worker = undefined
    await worker.terminate()
    const message = `The validation with a schema took more than ${deadlineMs} ms or ${heapMb} MB. Send a simpler schema.`
    throw new HeedError('invalid_schema', message)
  }
}

/** Resolves when the thread has loaded its modules, so that a deadline does not include that. */
async function startWorker(): Promise<Worker> {
  const worker = openWorker(import.meta.url, 'validation-worker', { resourceLimits: { maxOldGenerationSizeMb: heapMb } })
  // An error of the thread, such as that of its memory, ends it.
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

const validation = new OutsideValidation()

export function validateOutside(schema: JSONSchema7, value: unknown): Promise<Validation> {
  return validation.validate(schema, value)
}
