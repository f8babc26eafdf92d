/** True for whatever can be waited for. */
export function isPromise<T>(value: T | Promise<T>): value is Promise<T>
export function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T>
export function isPromise(value: unknown): boolean {
  return typeof (value as Partial<PromiseLike<unknown>> | null | undefined)?.then === 'function'
}
