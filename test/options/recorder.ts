import { AsyncLocalStorage } from 'node:async_hooks'
import type { Declared } from './declared.ts'

type Call = (...given: unknown[]) => unknown
type Constructor = new (...given: never[]) => object

const isPlain = (value: unknown): value is Record<string, unknown> => {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** Whether a value has an option, in itself or in an entry of a list. */
function has(value: unknown, [name = '', ...rest]: readonly string[]): boolean {
  if (Array.isArray(value)) return value.some((one) => has(one, [name, ...rest]))
  if (!isPlain(value)) return false
  if (name === '*') return Object.values(value).some((one) => has(one, rest))
  if (value[name] === undefined) return false
  return rest.length === 0 || has(value[name], rest)
}

/** The value without an option; what the caller gave is left as it is. */
function without(value: unknown, [name = '', ...rest]: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((one) => without(one, [name, ...rest]))
  if (!isPlain(value)) return value
  if (name === '*') return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, without(one, rest)]))
  if (!(name in value)) return value
  if (rest.length > 0) return { ...value, [name]: without(value[name], rest) }
  const { [name]: _, ...others } = value
  return others
}

/**
 * Records which options a program passes to the public calls, and can take one of them away, to show that a probe needs it. The calls that
 * Heed makes itself while it answers one of the program are not recorded.
 */
export class Recorder {
  /** The paths of the options of each call, those of shared types with the call's paths to them. */
  readonly #paths = new Map<string, ReadonlyArray<{ option: string; path: readonly string[] }>>()
  readonly #within = new AsyncLocalStorage<boolean>()
  /** What a program is recorded to: one that is given up, and goes on, does not disturb the next. */
  readonly #program = new AsyncLocalStorage<{ passed: Set<string>; removed: string | undefined }>()

  constructor(declared: Declared) {
    for (const call of declared.keys()) this.#paths.set(call, [...pathsOf(declared, call, [], [])])
  }

  /** Runs a program; the options that it passed, as `Call option`. With `removed`, this option does not arrive. */
  async record(run: () => Promise<void>, removed?: string): Promise<ReadonlySet<string>> {
    const passed = new Set<string>()
    await this.#program.run({ passed, removed }, run)
    return passed
  }

  /** A class whose constructor and methods are recorded. The class itself is changed: its instances of any origin are recorded too. */
  class<T extends Constructor>(name: string, given: T): T {
    for (const call of this.#paths.keys()) {
      const [owner, method] = call.split('.')
      if (owner !== name || method === undefined) continue
      const prototype = given.prototype as Record<string, unknown>
      const original = prototype[method]
      if (typeof original !== 'function') throw new Error(`'${call}' is no method of the prototype.`)
      const record = (...rest: [Call, unknown[]]) => this.#call(call, ...rest)
      prototype[method] = function (this: unknown, ...args: unknown[]) {
        return record((...changed) => (original as Call).apply(this, changed), args)
      }
    }
    return new Proxy(given, {
      construct: (target, args, newTarget) => this.#call(name, (...changed) => Reflect.construct(target, changed, newTarget), args) as object,
    })
  }

  /** The methods of the object that a getter returns. */
  getter(name: string, prototype: object, property: string): void {
    const original = Object.getOwnPropertyDescriptor(prototype, property)?.get
    const record = (given: object) =>
      Object.fromEntries(Object.entries(given).map(([method, run]) => [method, this.function(`${name}.${method}`, run)]))
    Object.defineProperty(prototype, property, {
      get(this: object) {
        return record(original?.call(this) as object)
      },
    })
  }

  /** A function whose calls are recorded. */
  function<T>(name: string, given: T): T {
    return ((...args: unknown[]) => this.#call(name, given as Call, args)) as T
  }

  #call(call: string, run: Call, args: unknown[]): unknown {
    const program = this.#program.getStore()
    if (!program || this.#within.getStore()) return run(...args)
    let changed = args
    for (const { option, path } of this.#paths.get(call) ?? []) {
      if (!args.some((arg) => has(arg, path))) continue
      program.passed.add(option)
      if (option === program.removed) changed = changed.map((arg) => without(arg, path))
    }
    return this.#within.run(true, () => run(...changed))
  }
}

function* pathsOf(declared: Declared, owner: string, before: readonly string[], within: readonly string[]): Iterable<{ option: string; path: readonly string[] }> {
  for (const [option, type] of declared.get(owner) ?? []) {
    const path = [...before, ...option.split('.')]
    yield { option: `${owner} ${option}`, path }
    if (type !== undefined && !within.includes(type)) yield* pathsOf(declared, type, path, [...within, type])
  }
}
