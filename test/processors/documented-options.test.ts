import { globSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

const folder = new URL('../../src/processors/', import.meta.url)
const read = (name: string) => readFileSync(new URL(name, folder), 'utf8')
const files = globSync('*.ts', { cwd: folder })
const tests = files.filter((name) => name.endsWith('.test.ts')).map(read).join('\n')
const page = readFileSync(new URL('../../docs/guardrails.md', import.meta.url), 'utf8')

/** The options of the built-in processors, as their interfaces name them. */
const options = files.filter((name) => !name.includes('.test.')).flatMap((name) =>
  [...read(name).matchAll(/^export interface (\w*Options)[^{]*\{\n(.*?)^\}/gms)].flatMap(([, owner = '', body = '']) =>
    [...body.matchAll(/^ {2}(\w+)\??[:(]/gm)].map(([, option = '']) => [owner, option] as const)))

describe('the options of built-in processors', () => {
  it('are found', () => {
    expect(options.length).toBeGreaterThan(25)
  })

  it.each(options)('%s.%s is documented and tried by a test', (_, option) => {
    expect(page).toMatch(new RegExp(`\\b${option}\\b`))
    expect(tests).toMatch(new RegExp(`\\b${option}\\b`))
  })
})
