import { HeedError } from '../../src/base/errors.ts'
import type { ThreadStore } from '../../src/store/contract/threads.ts'

type Fault = (args: readonly unknown[]) => Error | Promise<void> | undefined

interface FaultyStore {
  store: ThreadStore
  /** Calls `fault` before each call of a method: an error that it returns is thrown, a promise is awaited. Without one, the method works. */
  on(method: keyof ThreadStore, fault?: Fault): void
}

/** A store whose methods fail or wait where the test says so. */
export function faulty(store: ThreadStore): FaultyStore {
  const faults = new Map<PropertyKey, Fault>()
  const way = new Proxy<ThreadStore>(store, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key)
      if (typeof value !== 'function') return value
      return (...args: unknown[]): unknown => {
        const fault = faults.get(key)?.(args)
        if (fault instanceof Error) return Promise.reject(fault)
        return fault ? fault.then(() => Reflect.apply(value, target, args) as unknown) : Reflect.apply(value, target, args)
      }
    },
  })
  return { store: way, on: (method, fault) => void (fault ? faults.set(method, fault) : faults.delete(method)) }
}

export const unavailable = () => new HeedError('store_failed', 'The connection broke.', { retryable: true })
export const full = () => new HeedError('store_full', 'There is no space left.', { retryable: true })

/** The first `count` calls fail. */
export function first(count: number, failure: () => Error): Fault {
  let calls = 0
  return () => (calls++ < count ? failure() : undefined)
}
