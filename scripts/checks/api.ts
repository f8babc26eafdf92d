import { Declarations, fileOf, keyOf, type Target } from './declarations.ts'
import type { Entry } from './entries.ts'

/** File name and content of each report. */
type ApiReport = Record<string, string>

const origin = 'Written by `npm run api` from the emitted declarations; comments and paths are left out.'
const heading = (title: string) => `// ${title}\n// ${origin}\n`

/**
 * The public surface as text: a report for each entry with the declarations it exports, and one with those that they refer to without
 * exporting them. A declaration is in one report; entries that export it too name it. File names are not part of the text, so that moving
 * a module changes nothing.
 */
export function apiReport(types: string, entries: readonly Entry[]): ApiReport {
  const program = new Declarations()
  const reports: ApiReport = {}
  const printed = new Map<string, string>()
  const pending: Target[] = []
  for (const { specifier, name, source } of entries) {
    const file = fileOf(types, source)
    const texts: string[] = []
    for (const [exported, target] of [...program.exportsOf(file)].toSorted(([a], [b]) => compare(a, b))) {
      const key = keyOf(target)
      const first = printed.get(key)
      if (first !== undefined) {
        texts.push(`export ${exported}: see ${first}`)
        continue
      }
      printed.set(key, specifier)
      for (const declaration of program.declarationsOf(target)) {
        const label = declaration.name === exported ? '' : `// ${exported} is\n`
        texts.push(label + declaration.text)
        pending.push(...declaration.refersTo)
      }
    }
    reports[`${name}.d.txt`] = `${heading(specifier)}\n${texts.join('\n\n')}\n`
  }
  reports['unexported.d.txt'] = unexported(program, pending, printed)
  return reports
}

function unexported(program: Declarations, pending: Target[], printed: Map<string, string>): string {
  const texts: Array<[string, string]> = []
  for (let target = pending.pop(); target !== undefined; target = pending.pop()) {
    const key = keyOf(target)
    if (printed.has(key)) continue
    printed.set(key, '')
    for (const { name, text, refersTo } of program.declarationsOf(target)) {
      texts.push([name, text])
      pending.push(...refersTo)
    }
  }
  texts.sort(([a, one], [b, other]) => compare(a, b) || compare(one, other))
  const title = heading('Declarations that the exported ones refer to, and that no entry exports')
  return `${title}\n${texts.map(([, text]) => text).join('\n\n')}\n`
}

/** What differs between two reports, each with what to do about it. */
export function apiProblems(stored: ApiReport, current: ApiReport): string[] {
  const problems: string[] = []
  for (const name of [...new Set([...Object.keys(stored), ...Object.keys(current)])].toSorted()) {
    const [before, now] = [stored[name], current[name]]
    if (before === now) continue
    const lines = changedLines(before ?? '', now ?? '')
    problems.push(`api/${name} differs from the public surface. Run \`npm run api\` and commit it where the change is meant:\n${lines}`)
  }
  return problems
}

function changedLines(before: string, now: string): string {
  const [old, current] = [before.split('\n'), now.split('\n')]
  const [had, has] = [new Set(old), new Set(current)]
  const gone = old.filter((line) => !has.has(line)).map((line) => `- ${line}`)
  const added = current.filter((line) => !had.has(line)).map((line) => `+ ${line}`)
  return [...gone.slice(0, 20), ...added.slice(0, 20)].join('\n') || '(the order of lines)'
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
