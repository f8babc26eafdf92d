import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { lines } from './lines.ts'

const root = join(import.meta.dirname, '../..')

describe.each(Object.entries(lines))('what a new user meets: %s', (_, behaviors) => {
  it.each(Object.entries(behaviors))('%s is shown', (_behavior, shown) => {
    for (const [file, text] of shown) expect(readFileSync(join(root, file), 'utf8').includes(text), `${file}: ${text}`).toBe(true)
  })
})
