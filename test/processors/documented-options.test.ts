import { globSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import * as processors from '../../src/processors/index.ts'

const folder = new URL('../../src/processors/builtin/', import.meta.url)
const read = (name: string) => readFileSync(new URL(name, folder), 'utf8')
const files = globSync('**/*.ts', { cwd: folder })
const sources = files.filter((name) => !name.includes('.test.')).map(read).join('\n')
const tests = files.filter((name) => name.endsWith('.test.ts')).map(read)
const page = readFileSync(new URL('../../docs/guardrails.md', import.meta.url), 'utf8')

const judges = ['ModerationProcessor', 'PromptInjectionDetector', 'PIIDetector', 'SystemPromptScrubber']
const builtIn = ['TokenLimiter', 'ToolCallFilter', 'UnicodeNormalizer', 'RegexFilter', 'AttachmentUploader', 'fileReminder', 'browserLane', ...judges]

/** What an interface names, with what it takes from others. */
function fieldsOf(name: string): string[] {
  const found = new RegExp(`^export interface ${name}(?: extends ([^{]*))? \\{\\n(.*?)^\\}`, 'ms').exec(sources)
  if (!found) throw new Error(`there is no interface ${name}`)
  const [, from = '', body = ''] = found
  const own = [...body.matchAll(/^ {2}(\w+)\??[:(]/gm)].map(([, field = '']) => field)
  const picked = [...from.matchAll(/Pick<\w+, ([^>]*)>/g)].flatMap(([, fields = '']) => [...fields.matchAll(/'(\w+)'/g)].map(([, field = '']) => field))
  const parents = from.replaceAll(/Pick<[^>]*>/g, '').match(/\w+/g) ?? []
  return [...own, ...picked, ...parents.flatMap(fieldsOf)]
}

function optionsOf(processor: string): string[] {
  const name = processor.replace(/^[a-z]/, (letter) => letter.toUpperCase())
  return fieldsOf(processor === 'ModerationProcessor' ? 'ModerationOptions' : `${name}Options`).toSorted()
}

/** The table of options: which processors a row is about, and its options. */
function documented(): Map<string, string[]> {
  const [, table = ''] = /^## Every option\n\n(.*?)\n\n/ms.exec(page) ?? []
  const options = new Map<string, string[]>(builtIn.map((name) => [name, []]))
  let about: string[] = []
  for (const row of table.split('\n').slice(2)) {
    const [, whose = '', names = ''] = row.split('|').map((cell) => cell.trim())
    const named = [...whose.matchAll(/`(\w+)`/g)].map(([, name = '']) => name)
    if (whose === 'all judges') about = judges
    else if (whose.startsWith('these and ')) about = [...about, ...named]
    else if (whose !== '') about = named
    for (const [, option = ''] of names.matchAll(/`(\w+)`/g)) for (const name of about) options.get(name)?.push(option)
  }
  return options
}

describe('the options of built-in processors', () => {
  it('every one of them is looked at', () => {
    const makers = Object.entries(processors).filter(([name, value]) => typeof value === 'function' && !['MessageHistory', 'WorkingMemory', 'SemanticRecall'].includes(name)).map(([name]) => name)
    expect(makers.toSorted()).toEqual(builtIn.toSorted())
  })

  it.each(builtIn)('%s: the table of the page has each of its options, and no other', (name) => {
    expect(documented().get(name)?.toSorted()).toEqual(optionsOf(name))
  })

  const all = builtIn.flatMap((name) => optionsOf(name).map((option) => [name, option] as const))

  it.each(all)('%s.%s is given in a test of that processor', (name, option) => {
    const about = tests.filter((test) => new RegExp(`\\b${name}\\b`).test(test))
    expect(about.some((test) => new RegExp(`[{,(]\\s*${option}\\b\\s*[:,}(]`, 'm').test(test))).toBe(true)
  })
})
