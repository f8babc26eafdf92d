import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const file = join(import.meta.dirname, 'table.txt')

/** Which probe shows which option through which call. */
export interface Table {
  /** The title of the probe by `Call option`. */
  shown: Map<string, string>
  /** Options that no probe shows through this call: each needs one. */
  open: Set<string>
}

const openTitle = 'no probe shows it'

export function readTable(): Table {
  const table: Table = { shown: new Map(), open: new Set() }
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    const [call, title, options] = line.split(' | ')
    if (call === undefined || title === undefined || options === undefined) continue
    for (const option of options.split(' ')) {
      if (title === openTitle) table.open.add(`${call} ${option}`)
      else table.shown.set(`${call} ${option}`, title)
    }
  }
  return table
}

export function writeTable({ shown, open }: Table): void {
  const lines = new Map<string, string[]>()
  const rows = [...shown, ...[...open].map((pair) => [pair, openTitle] as const)]
  for (const [pair, title] of rows) {
    const [call = '', option = ''] = pair.split(' ')
    const key = `${call} | ${title}`
    lines.set(key, [...(lines.get(key) ?? []), option])
  }
  writeFileSync(file, `${[...lines].map(([key, options]) => `${key} | ${options.toSorted().join(' ')}`).toSorted().join('\n')}\n`)
}
