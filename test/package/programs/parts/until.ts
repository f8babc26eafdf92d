import { isDeepStrictEqual } from 'node:util'
import { setTimeout } from 'node:timers/promises'

/** Reads until the value is the expected one. */
export async function until<T>(read: () => T | Promise<T>, expected: T): Promise<void> {
  const deadline = Date.now() + 100_000
  for (let value = await read(); !isDeepStrictEqual(value, expected); value = await read()) {
    if (Date.now() > deadline) throw new Error(`expected ${JSON.stringify(expected)}, read ${JSON.stringify(value)}`)
    await setTimeout(10)
  }
}
