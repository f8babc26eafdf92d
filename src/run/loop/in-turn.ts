import { isPromise } from '../../base/is-promise.ts'

/** Work that is done one after the other, in the order in which it came. What can be done at once is, if nothing is before it. */
export class InTurn {
  /** Settles when all that came before is over. */
  #turn: Promise<void> | undefined

  /** Never throws: what the work throws rejects. */
  do<T>(work: () => T | Promise<T>): T | Promise<T> {
    const before = this.#turn
    const { promise: turn, resolve: over } = Promise.withResolvers<void>()
    // Also for what the work itself asks for: that comes after it.
    this.#turn = turn
    const end = () => {
      over()
      if (this.#turn === turn) this.#turn = undefined
    }
    let result: T | Promise<T>
    try {
      result = before ? before.then(work) : work()
    } catch (error) {
      result = Promise.reject(error)
    }
    if (isPromise(result)) result.then(end, end)
    else end()
    return result
  }
}
