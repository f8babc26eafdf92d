import { HeedError } from './errors.ts'

/** A JSON value with every text in it, keys included, replaced. Texts are visited in the same order each time. */
export function mapTexts(value: unknown, map: (text: string) => string): unknown {
  if (typeof value === 'string') return map(value)
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, map))
  if (typeof value !== 'object' || value === null) return value
  return fromEntries(Object.entries(value).map(([key, item]) => [map(key), mapTexts(item, map)]))
}

/** An object of these entries. Rejects two entries with the same key: one of them would be lost. */
export function fromEntries(entries: ReadonlyArray<readonly [string, unknown]>): Record<string, unknown> {
  const keys = new Set(entries.map(([key]) => key))
  if (keys.size === entries.length) return Object.fromEntries(entries)
  throw new HeedError('invalid_argument', 'A processor gave two fields of an object the same name, so that one would be lost.')
}

/** Has all texts that `visit` visits checked together, and returns what `visit` makes of those that `check` returns. */
export async function replaceTexts<T>(
  visit: (map: (text: string) => string) => T, check: (texts: readonly string[]) => Promise<readonly string[]>,
): Promise<T> {
  const texts: string[] = []
  const value = visit((text) => {
    texts.push(text)
    return text
  })
  const checked = await check(texts)
  if (texts.every((text, index) => checked[index] === text)) return value
  let next = 0
  return visit((text) => checked[next++] ?? text)
}
