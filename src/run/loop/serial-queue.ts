import { isPromise } from '../../base/promises.ts'

/** Runs tasks one after the other, in the order of the calls. A task that finds the queue empty runs synchronously. */
export class SerialQueue {
  /** Resolves when the last task is done. */
  #last: Promise<void> | undefined

  /** Never throws: an error of the task rejects the promise. */
  run<T>(task: () => T | Promise<T>): T | Promise<T> {
    const before = this.#last
    const { promise: done, resolve } = Promise.withResolvers<void>()
    // Set before the task runs: a task that the task itself adds runs after it.
    this.#last = done
    const end = () => {
      resolve()
      if (this.#last === done) this.#last = undefined
    }
    let result: T | Promise<T>
    try {
      result = before ? before.then(task) : task()
    } catch (error) {
      result = Promise.reject(error)
    }
    if (isPromise(result)) result.then(end, end)
    else end()
    return result
  }
}
