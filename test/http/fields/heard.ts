import { RequestContext } from '../../../src/index.ts'

type Call = (...args: unknown[]) => unknown

/** What the calls of a class, or of an object, are given while a request is answered. */
export class Heard {
  readonly #texts: string[] = []
  readonly #restore: Array<() => void> = []

  /** All that was given since the last time, as text. */
  take(): string {
    return this.#texts.splice(0).join('\n')
  }

  /** Records the methods of a prototype, and of those that it extends. */
  methodsOf(prototype: object): void {
    for (let each: object | null = prototype; each && each !== Object.prototype; each = Object.getPrototypeOf(each) as object | null) {
      const at = each
      for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
        if (typeof value !== 'function' || name === 'constructor') continue
        const original = value as Call
        this.#restore.push(() => Object.defineProperty(at, name, { configurable: true, writable: true, value: original }))
        const hear = (args: unknown[]) => void this.#texts.push(`${name} ${textOf(args)}`)
        Object.defineProperty(at, name, {
          configurable: true, writable: true,
          value(this: unknown, ...args: unknown[]) {
            hear(args)
            return original.apply(this, args)
          },
        })
      }
    }
  }

  /** The classes are as they were. */
  restore(): void {
    for (const one of this.#restore.splice(0).toReversed()) one()
  }

  note(value: unknown): void {
    this.#texts.push(textOf(value))
  }
}

/** Plain values as JSON; of other objects what they show. */
function textOf(value: unknown, depth = 0): string {
  if (value instanceof Date) return JSON.stringify(Number.isNaN(value.getTime()) ? 'none' : value.toISOString())
  if (value instanceof RequestContext) return textOf(Object.fromEntries(value.entries()), depth)
  if (typeof value !== 'object' || value === null) return typeof value === 'function' ? '"function"' : (JSON.stringify(value) ?? 'null')
  if (depth > 7) return '"…"'
  if (Array.isArray(value)) return `[${value.map((one) => textOf(one, depth + 1)).join(',')}]`
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return '"object"'
  return `{${Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}:${textOf(one, depth + 1)}`).join(',')}}`
}
